// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/write_scheduler.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <boost/test/unit_test.hpp>

#include "actors/network/basp_messages.hpp"

namespace {

using troupe::network::message_head;
using troupe::network::write_queue;
using troupe::network::write_scheduler;
using troupe::support::recent_peak;
using troupe::test::basp_message;
using troupe::test::broker_at_the_end;

constexpr std::uint64_t gateway = 3;
constexpr std::size_t large = 3 * write_scheduler::fragment_bytes;

void add(write_scheduler& to, const std::string& message) {
  to.open().insert(to.open().end(), message.begin(), message.end());
  to.seal();
}

/// Takes at most `most` of the bytes that leave next.
std::string take(write_scheduler& from, std::size_t most) {
  const auto next = from.front();
  const auto bytes = std::min(most, next.size());
  std::string result(next.data(), bytes);
  from.pop(bytes);
  return result;
}

std::string take_all(write_scheduler& from) {
  std::string result;
  while (!from.empty()) result += take(from, 100'000);
  return result;
}

write_scheduler splitting() {
  write_scheduler result;
  result.split_large(gateway);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(the_write_scheduler)

BOOST_AUTO_TEST_CASE(all_bytes_leave_unchanged_to_an_end_that_reads_no_fragments) {  // WS-1
  write_scheduler scheduler;
  const auto added = basp_message(1, large) + basp_message(2, 10) + "no message of BASP";
  add(scheduler, added);
  BOOST_TEST((take_all(scheduler) == added));
}

BOOST_AUTO_TEST_CASE(the_next_message_says_once_that_this_end_reads_fragments) {
  write_scheduler scheduler;
  const auto first = basp_message(1, 10);
  add(scheduler, first);
  scheduler.announce_reading();
  add(scheduler, basp_message(1, 10));
  scheduler.announce_reading();
  add(scheduler, basp_message(1, 10));
  const auto left = take_all(scheduler);
  BOOST_TEST(message_head::read(left.data()).note == 0);
  BOOST_TEST(message_head::read(left.data() + first.size()).note ==
             (message_head::reads_fragments | message_head::reads_trailing));
  BOOST_TEST(message_head::read(left.data() + 2 * first.size()).note == 0);
  broker_at_the_end end;
  BOOST_TEST(end.feed(left));
  BOOST_TEST(end.reader.other_end_reads());
  BOOST_TEST(end.reader.other_end_reads_trailing());
  BOOST_TEST((end.messages == std::vector<std::string>(3, first)));  // the broker sees no note
}

// WS-5: a fragment may leave between two blocks, and not between a message and the elements that trail it.
BOOST_AUTO_TEST_CASE(elements_leave_directly_behind_their_message) {
  auto scheduler = splitting();
  scheduler.let_trail();
  const auto bulk = basp_message(1, large);
  const auto piece = basp_message(gateway, 50);
  const auto prompt = basp_message(2, 100);
  const auto elements = std::make_shared<std::string>(write_scheduler::fragment_bytes, 'e');
  broker_at_the_end end;
  end.trailing = elements->size();
  add(scheduler, bulk);
  for (int i = 0; i < 3; ++i) {
    add(scheduler, prompt);
    scheduler.open().insert(scheduler.open().end(), piece.begin(), piece.end());
    scheduler.seal({*elements, elements});
  }
  BOOST_TEST(scheduler.waiting() == bulk.size() + 3 * (prompt.size() + piece.size() + elements->size()));
  bool goes_on = false;
  while (!scheduler.empty()) {
    const auto next = scheduler.front();
    BOOST_TEST((next.data() == elements->data()) == (next.size() == elements->size() && next[0] == 'e'));
    if (std::string(next.data(), next.size()).find(piece.substr(message_head::bytes)) != std::string::npos) goes_on = true;
    if (goes_on) BOOST_TEST(scheduler.goes_on() == (next.data() != elements->data()));
    if (next.data() == elements->data()) goes_on = false;
    BOOST_REQUIRE(end.feed(std::string(next.data(), next.size())));
    scheduler.pop(next.size());
  }
  BOOST_TEST((end.came == std::vector<std::string>(3, *elements)));
  BOOST_TEST(std::count(end.messages.begin(), end.messages.end(), piece) == 3);
  BOOST_TEST(std::count(end.messages.begin(), end.messages.end(), prompt) == 3);
  BOOST_TEST(std::count(end.messages.begin(), end.messages.end(), bulk) == 1);
  BOOST_TEST(elements.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_message_of_another_sender_leaves_after_the_fragment_that_has_begun) {  // WS-2
  auto scheduler = splitting();
  const auto bulk = basp_message(1, large);
  const auto prompt = basp_message(2, 100);
  add(scheduler, bulk);
  broker_at_the_end end;
  end.feed(take(scheduler, 1'000'000));  // the header of the fragment
  end.feed(take(scheduler, 1'000));
  add(scheduler, prompt);
  while (end.messages.empty()) end.feed(take(scheduler, 1'000'000));
  BOOST_TEST((end.messages.at(0) == prompt));
  BOOST_TEST(end.fragments == 1U);
  BOOST_TEST(end.feed(take_all(scheduler)));
  BOOST_REQUIRE(end.messages.size() == 2U);
  BOOST_TEST((end.messages[1] == bulk));
}

BOOST_AUTO_TEST_CASE(both_queues_leave_in_turns) {  // WS-2
  auto scheduler = splitting();
  add(scheduler, basp_message(1, large));
  broker_at_the_end end;
  std::size_t most = 0;
  std::size_t fragments = 0;
  for (std::uint32_t i = 0; !scheduler.empty(); ++i) {
    if (end.messages.size() < 50) add(scheduler, basp_message(2, write_scheduler::most_whole, i));
    end.feed(take(scheduler, 1'000'000));
    if (end.fragments == fragments) continue;
    fragments = end.fragments;
    most = std::max(most, end.messages.size());
  }
  BOOST_TEST(fragments == 2U);
  BOOST_TEST(most < 10U);  // of 50: the large message does not wait for all of them
}

BOOST_AUTO_TEST_CASE(messages_to_another_receiver_overtake_and_those_to_the_broker_do_not) {  // WS-3
  auto scheduler = splitting();
  const std::vector<std::string> added{basp_message(1, large, 0, 8), basp_message(1, 10, 0, 7), basp_message(1, 0, 0, 0)};
  for (const auto& each : added) add(scheduler, each);
  broker_at_the_end end;
  BOOST_TEST(end.feed(take_all(scheduler)));
  BOOST_TEST((end.messages == std::vector{added[1], added[0], added[2]}));
}

BOOST_AUTO_TEST_CASE(messages_of_one_sender_keep_their_order) {  // WS-3
  auto scheduler = splitting();
  const std::vector<std::string> added{basp_message(1, large), basp_message(1, 10), basp_message(1, large), basp_message(1, 0)};
  for (const auto& each : added) add(scheduler, each);
  broker_at_the_end end;
  BOOST_TEST(end.feed(take_all(scheduler)));
  BOOST_TEST((end.messages == added));
}

// WS-3, WS-4: two blocks of earlier messages wait, and the large message has only two fragments.
BOOST_AUTO_TEST_CASE(a_large_message_ends_after_all_that_was_added_before) {
  for (const auto source : {std::uint64_t{1}, gateway}) {
    auto scheduler = splitting();
    std::vector<std::string> added;
    for (std::uint32_t i = 0; i < 7; ++i) added.push_back(basp_message(source, write_scheduler::fragment_bytes, i));
    added.push_back(basp_message(source, write_scheduler::most_whole + 1, 7));
    for (const auto& each : added) add(scheduler, each);
    broker_at_the_end end;
    BOOST_TEST(end.feed(take_all(scheduler)));
    BOOST_TEST((end.messages == added), "source " << source);
  }
}

BOOST_AUTO_TEST_CASE(the_sender_without_order_overtakes_itself) {  // WS-3
  auto scheduler = splitting();
  add(scheduler, basp_message(gateway, large));
  add(scheduler, basp_message(gateway, 10));
  broker_at_the_end end;
  BOOST_TEST(end.feed(take_all(scheduler)));
  BOOST_REQUIRE(end.messages.size() == 2U);
  BOOST_TEST((end.messages[0] == basp_message(gateway, 10)));
}

BOOST_AUTO_TEST_CASE(several_messages_of_one_flush_are_sorted) {  // WS-2, WS-3
  auto scheduler = splitting();
  add(scheduler, basp_message(1, 10, 1) + basp_message(2, large, 2) + basp_message(1, 10, 3) + basp_message(2, 10, 4));
  broker_at_the_end end;
  BOOST_TEST(end.feed(take_all(scheduler)));
  BOOST_TEST((end.messages ==
              std::vector{basp_message(1, 10, 1), basp_message(1, 10, 3), basp_message(2, large, 2), basp_message(2, 10, 4)}));
}

// WS-2, WS-3, FR-1: random messages, which leave in random portions.
BOOST_AUTO_TEST_CASE(every_message_arrives_whole_and_in_its_senders_order) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    auto scheduler = splitting();
    broker_at_the_end end;
    std::map<std::uint64_t, std::deque<std::string>> expected;
    std::size_t added = 0;
    const bool bursts = seed % 2 == 0;  // 20 messages are added before any byte leaves
    for (std::uint32_t i = 0; i < 100 || !scheduler.empty(); ++i) {
      if (i < 100) {
        constexpr auto whole = write_scheduler::most_whole;
        const std::size_t sizes[] = {0, 1, 500, 500, 5'000, whole, whole + 1, 2 * write_scheduler::fragment_bytes, 800'000};
        const auto source = random() % 5;
        const auto message = basp_message(source, sizes[random() % std::size(sizes)], i);
        expected[source].push_back(message);
        added += 1;
        add(scheduler, message);
      }
      if (bursts && i < 100 && i % 20 != 19) continue;
      const std::size_t portions[] = {1, 32, 1'000, 100'000, 2'000'000};
      for (auto times = random() % 6; times > 0 && !scheduler.empty(); --times)
        BOOST_REQUIRE(end.feed(take(scheduler, portions[random() % std::size(portions)])));
    }
    BOOST_REQUIRE(end.messages.size() == added);
    for (const auto& each : end.messages) {
      auto& of_sender = expected[message_head::read(each.data()).source];
      const auto found = std::find(of_sender.begin(), of_sender.end(), each);
      const bool in_order =
        message_head::read(each.data()).source == gateway ? found != of_sender.end() : found == of_sender.begin();
      BOOST_REQUIRE(in_order);
      of_sender.erase(found);
    }
    BOOST_TEST(scheduler.waiting() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_large_message_alone_is_not_copied) {
  auto scheduler = splitting();
  add(scheduler, basp_message(1, 300'000));
  auto& open = scheduler.open();
  const auto message = basp_message(1, 10 * write_queue::full_block);
  open.insert(open.end(), message.begin(), message.end());
  const auto* where = open.data();
  scheduler.seal();
  std::string left;
  bool found = false;
  while (!scheduler.empty()) {
    const auto next = scheduler.front();
    found = found || next.data() == where + message_head::bytes;
    scheduler.pop(next.size());
  }
  BOOST_TEST(found);
}

BOOST_AUTO_TEST_CASE(memory_of_large_messages_is_freed_after_many_small_ones) {  // TS-7
  auto scheduler = splitting();
  for (int i = 0; i < 20; ++i) add(scheduler, basp_message(1, 5'000'000));
  take_all(scheduler);
  for (int i = 0; i < 2 * recent_peak::window; ++i) {
    add(scheduler, basp_message(2, 100));
    take_all(scheduler);
  }
  BOOST_TEST(scheduler.held() <= 8 * write_queue::kept_bytes);
}

BOOST_AUTO_TEST_SUITE_END()
