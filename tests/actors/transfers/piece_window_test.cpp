// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/piece_window.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>

#include <boost/test/unit_test.hpp>

using troupe::transfers::piece_window;

namespace {

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000 * us;
constexpr std::int64_t second = 1'000 * ms;

/// A way that takes one piece at a time, `piece_ns` for each, and whose answers come `delay_ns` later. A sender has as many pieces
/// on their way as the window allows, and always has more to send.
struct way {
  std::int64_t piece_ns;
  std::int64_t delay_ns;
  piece_window window = {};
  std::int64_t now = second;

  struct sent {
    piece_window::piece piece;
    std::int64_t answer_ns;
  };
  std::deque<sent> under_way = {};
  std::int64_t free_ns = 0;  // when the way can take the next piece
  std::int64_t taken = 0;

  void send() {
    free_ns = std::max(free_ns, now) + piece_ns;
    const auto piece = window.leaves(static_cast<int>(under_way.size()) + 1, now);
    under_way.push_back({piece, free_ns + delay_ns});
  }
  void take_answer() {
    now = under_way.front().answer_ns;
    window.answered(under_way.front().piece, now);
    under_way.pop_front();
    ++taken;
  }
  /// Sends without a pause for so long. Returns the share of the way that was used.
  double run(std::int64_t ns) {
    const auto begin = now;
    const auto before = taken;
    while (now < begin + ns) {
      while (static_cast<int>(under_way.size()) < window.size()) send();
      take_answer();
    }
    return static_cast<double>(taken - before) * static_cast<double>(piece_ns) / static_cast<double>(now - begin);
  }
  double holds() const { return static_cast<double>(delay_ns + piece_ns) / static_cast<double>(piece_ns); }
  /// The largest window with which pieces wait as long as they may.
  double most_wanted() const {
    const auto wait = 2 * piece_window::most_wait_ns + piece_window::least * piece_ns;
    return holds() + static_cast<double>(wait) / static_cast<double>(piece_ns);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(windows)

BOOST_AUTO_TEST_CASE(before_any_answer_the_window_is_small) {  // WD-1
  BOOST_TEST(piece_window().size() == piece_window::least);
}

BOOST_AUTO_TEST_CASE(a_long_way_is_used_and_its_queue_stays_short) {  // WD-1, WD-2
  for (const auto piece_ns : {100 * us, 2 * ms, 20 * ms})
    for (const auto delay_ns : {10 * us, 1 * ms, 10 * ms, 50 * ms, 200 * ms}) {
      way to{piece_ns, delay_ns};
      to.run(5 * second);
      const auto used = to.run(60 * second);
      const auto reached = std::min(1.0, piece_window::most / to.holds());
      BOOST_TEST(used >= 0.9 * reached, "piece " << piece_ns << " ns, delay " << delay_ns << " ns: " << used);
      BOOST_TEST(to.window.size() <= to.most_wanted());
      BOOST_TEST(to.window.size() <= piece_window::most);
    }
}

BOOST_AUTO_TEST_CASE(the_window_grows_within_a_few_round_trips) {  // WD-2
  way to{1 * ms, 50 * ms};
  to.run(500 * ms);
  BOOST_TEST(to.run(500 * ms) >= 0.9);
}

BOOST_AUTO_TEST_CASE(the_window_follows_a_way_that_gets_longer_or_slower_or_shorter) {  // WD-3
  way to{1 * ms, 5 * ms};
  to.run(30 * second);
  to.delay_ns = 50 * ms;
  to.run(2 * piece_window::memory_ns);
  BOOST_TEST(to.run(20 * second) >= 0.9);
  to.piece_ns = 10 * ms;
  to.run(2 * piece_window::memory_ns + second);
  BOOST_TEST(to.window.size() <= to.most_wanted());
  to.delay_ns = 1 * ms;
  to.run(2 * piece_window::memory_ns + second);
  BOOST_TEST(to.window.size() <= to.most_wanted());
  BOOST_TEST(to.run(20 * second) >= 0.9);
}

BOOST_AUTO_TEST_CASE(a_sender_with_little_to_send_does_not_shrink_the_window) {  // WD-2
  way to{1 * ms, 50 * ms};
  to.run(5 * second);
  const auto before = to.window.size();
  for (int i = 0; i < 50; ++i) {
    to.now += 100 * ms;
    while (!to.under_way.empty()) to.take_answer();
    to.send();
    to.take_answer();
  }
  BOOST_TEST(to.window.size() >= before);
}

BOOST_AUTO_TEST_SUITE_END()
