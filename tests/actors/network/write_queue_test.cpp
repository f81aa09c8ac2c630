// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/write_scheduler.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include <boost/test/unit_test.hpp>

namespace {

using troupe::network::write_queue;
using troupe::support::recent_peak;

constexpr auto full = write_queue::full_block;

/// Adds a message as a serializer does, and seals it.
void add(write_queue& to, const std::string& message) {
  to.open().insert(to.open().end(), message.begin(), message.end());
  to.seal();
}

void add(write_queue& to, std::size_t bytes) { add(to, std::string(bytes, 'x')); }

/// Takes all bytes, at most `most` at once.
std::string take_all(write_queue& from, std::size_t most = full) {
  std::string result;
  while (!from.empty()) {
    const auto next = from.front();
    const auto bytes = std::min(most, next.size());
    result.append(next.data(), bytes);
    from.pop(bytes);
  }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(write_queues)

BOOST_AUTO_TEST_CASE(a_peak_counts_for_one_window_to_two) {
  recent_peak peak;
  BOOST_TEST(peak.add(7) == 7U);
  BOOST_TEST(peak.add(100) == 100U);
  int uses = 0;
  while (peak.add(1) == 100U) ++uses;
  BOOST_TEST(uses >= recent_peak::window - 2);
  BOOST_TEST(uses < 2 * recent_peak::window);
  BOOST_TEST(peak.add(2) == 2U);
}

BOOST_AUTO_TEST_CASE(bytes_leave_in_the_order_in_which_they_were_added) {  // WQ-1
  std::mt19937 random(1);
  std::string added;
  std::string left;
  write_queue all;
  for (int round = 0; round < 300; ++round) {
    const std::size_t sizes[] = {1, 72, 5'000, full / 3, full - 1, full, 2 * full};
    std::string message(sizes[random() % std::size(sizes)], '\0');
    for (auto& each : message) each = static_cast<char>(random());
    add(all, message);
    added += message;
    for (auto times = random() % 4; times > 0 && !all.empty(); --times) {
      const auto next = all.front();
      const auto bytes = 1 + random() % next.size();
      left.append(next.data(), bytes);
      all.pop(bytes);
    }
    BOOST_REQUIRE(all.waiting() == added.size() - left.size());
  }
  left += take_all(all);
  BOOST_TEST((left == added));
}

// WQ-1, WQ-4
BOOST_AUTO_TEST_CASE(trailing_bytes_leave_behind_their_message_out_of_their_own_memory) {
  write_queue all;
  const auto elements = std::make_shared<std::string>(1000, 'e');
  add(all, "a");
  add(all, "b");
  all.close_block({*elements, elements});
  add(all, "c");
  BOOST_TEST(all.waiting() == 1003U);
  BOOST_TEST(all.front_block() == 1002U);
  BOOST_TEST(std::string(all.front().data(), all.front().size()) == "ab");
  all.pop(2);
  BOOST_TEST(all.front().data() == elements->data());
  all.pop(999);
  BOOST_TEST(all.front_block() == 1U);
  BOOST_TEST(elements.use_count() == 2);
  all.pop(1);
  BOOST_TEST(elements.use_count() == 1);
  BOOST_TEST(take_all(all) == "c");
}

BOOST_AUTO_TEST_CASE(what_was_added_and_not_sealed_leaves_too) {  // WQ-1
  write_queue all;
  all.open().push_back('a');
  BOOST_TEST(!all.empty());
  BOOST_TEST(take_all(all) == "a");
}

BOOST_AUTO_TEST_CASE(a_full_block_stays_where_it_is) {  // WQ-2
  write_queue all;
  add(all, 10);
  BOOST_TEST(all.front().size() == 10U);
  for (int i = 0; i < 4; ++i) add(all, full / 4);
  BOOST_TEST(all.open().empty());
  add(all, full - 1);
  const auto* open = all.open().data();
  all.open().insert(all.open().end(), full - 1, 'y');  // fits: the open block holds less than `full`
  BOOST_TEST(all.open().data() == open);
}

BOOST_AUTO_TEST_CASE(a_long_queue_takes_little_more_memory_than_its_bytes) {  // WQ-2
  write_queue all;
  for (int i = 0; i < 200; ++i) add(all, 300 << 10);
  BOOST_TEST(all.waiting() == 200U * (300 << 10));
  BOOST_TEST(all.held() < 2 * all.waiting());
}

BOOST_AUTO_TEST_CASE(blocks_are_used_again_while_as_much_leaves) {  // WQ-3
  write_queue all;
  const auto round = [&] {
    for (int i = 0; i < 4; ++i) add(all, 260 << 10);
    take_all(all);
  };
  for (int i = 0; i < 5; ++i) round();
  const auto held = all.held();
  for (int i = 0; i < 5 * recent_peak::window; ++i) {
    round();
    BOOST_REQUIRE(all.held() == held);
  }
  BOOST_TEST(held <= 8 * full);
}

BOOST_AUTO_TEST_CASE(what_a_burst_took_is_freed_after_many_short_rounds) {  // WQ-3
  for (const std::size_t message : {std::size_t{300} << 10, std::size_t{10'000}, std::size_t{20} << 20}) {
    write_queue all;
    for (std::size_t sent = 0; sent < 60U << 20; sent += message) add(all, message);
    take_all(all, 65'536);
    BOOST_TEST(all.held() < std::max(8 * full, 3 * message));
    for (int i = 0; i < 2 * recent_peak::window; ++i) {
      add(all, 100);
      take_all(all);
    }
    BOOST_TEST(all.held() <= 4 * write_queue::kept_bytes, message);
  }
}

BOOST_AUTO_TEST_SUITE_END()
