// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/piece_window.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <vector>

#include <boost/test/unit_test.hpp>

using troupe::transfers::piece_window;

namespace {

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000 * us;
constexpr std::int64_t second = 1'000 * ms;

/// A way that takes one piece at a time, `large_ns` for a large one, and whose answers come `delay_ns` later. A sender has as many
/// bytes on their way as the window allows, and always has more to send. The receiver's clock shows `ahead_ns` more than the sender's,
/// and gains `gains` for each nanosecond.
struct way {
  std::int64_t large_ns;
  std::int64_t delay_ns;
  piece_window window = {};
  std::int64_t now = second;

  struct sent {
    piece_window::piece piece;
    std::int64_t taken_ns;
    std::int64_t answer_ns;
  };
  std::deque<sent> under_way = {};
  std::uint64_t bytes = 0;    // under way
  std::int64_t free_ns = 0;   // when the way can take the next piece
  std::int64_t used_ns = 0;   // in which it took pieces that were answered
  std::int64_t stall_ns = 0;  // for so long the way takes nothing, every two seconds
  std::int64_t stalls_ns = 0;
  std::int64_t burst_ns = 0;  // what it takes at once after a pause of this length
  std::int64_t back_ns = 0;   // answers wait for up to so long on their way back, first longer and longer, then less and less
  std::int64_t answered_ns = 0;
  std::int64_t ahead_ns = 0;
  double gains = 0;
  bool tells_time = true;

  std::int64_t takes_ns(std::uint64_t size) const {
    return large_ns * static_cast<std::int64_t>(size) / static_cast<std::int64_t>(piece_window::large_piece);
  }
  void send() {
    const auto size = window.piece_bytes();
    free_ns = std::max(free_ns, now - burst_ns) + takes_ns(size);
    if (free_ns / (2 * second) != stalls_ns / (2 * second)) stalls_ns = free_ns += stall_ns;
    bytes += size;
    const auto taken = std::max(free_ns, now) + delay_ns;
    answered_ns = std::max(answered_ns, taken + waits_back(taken));
    under_way.push_back({window.leaves(size, bytes, now), taken, answered_ns});
  }
  std::int64_t waits_back(std::int64_t at) const {
    constexpr auto rises = 500 * ms;
    const auto in_turn = at % (2 * rises);
    return back_ns * std::min(in_turn, 2 * rises - in_turn) / rises;
  }
  std::int64_t clock_there(std::int64_t at) const {
    return at + ahead_ns + static_cast<std::int64_t>(gains * static_cast<double>(at));
  }
  void take_answer() {
    const auto [piece, taken_ns, answer_ns] = under_way.front();
    now = answer_ns;
    under_way.pop_front();
    window.answered(piece, now, tells_time ? std::optional(clock_there(taken_ns)) : std::nullopt);
    bytes -= piece.bytes;
    used_ns += takes_ns(piece.bytes);
  }
  /// Sends without a pause for so long. Returns the share of the way that was used.
  double run(std::int64_t ns) {
    const auto begin = now;
    const auto before = used_ns;
    while (now < begin + ns) {
      while (bytes < window.size()) send();
      take_answer();
    }
    return static_cast<double>(used_ns - before) / static_cast<double>(now - begin);
  }
  double in_bytes(std::int64_t ns) const {
    return static_cast<double>(ns) * piece_window::large_piece / static_cast<double>(large_ns);
  }
  double rate() const { return in_bytes(second); }
  double piece() const { return static_cast<double>(window.piece_bytes()); }
  double holds() const { return in_bytes(delay_ns) + piece(); }
  /// The largest window with which pieces wait as long as they may.
  double least() const {
    return window.piece_bytes() == piece_window::small_piece ? piece_window::least_small : piece_window::least_large;
  }
  double most_wanted() const { return holds() + in_bytes(2 * piece_window::most_wait_ns) + least(); }
};

/// Two nodes that always have more to send to each other. A way takes one piece at a time. An answer takes no space, and waits behind the
/// pieces of its way. The second node begins a second later.
struct two_ways {
  struct one_way {
    piece_window window = {};
    std::uint64_t bytes = 0;  // under way
    std::int64_t free_ns = 0;
    std::int64_t busy_ns = 0;

    double used(std::int64_t of_ns) const { return static_cast<double>(busy_ns) / static_cast<double>(of_ns); }
  };
  struct event {
    std::int64_t at_ns;
    std::size_t way;  // of the piece
    piece_window::piece piece;
    std::optional<std::int64_t> taken_ns;  // none: the piece comes; else its answer

    bool operator>(const event& other) const { return at_ns > other.at_ns; }
  };

  std::int64_t large_ns;
  std::int64_t delay_ns;
  std::array<one_way, 2> ways = {};
  std::priority_queue<event, std::vector<event>, std::greater<>> events = {};
  std::int64_t now = 0;

  void send(std::size_t which) {
    auto& by = ways[which];
    while (by.bytes < by.window.size()) {
      const auto size = by.window.piece_bytes();
      const auto takes_ns = large_ns * static_cast<std::int64_t>(size) / static_cast<std::int64_t>(piece_window::large_piece);
      by.bytes += size;
      const auto piece = by.window.leaves(size, by.bytes, now + second);
      by.free_ns = std::max(by.free_ns, now) + takes_ns;
      by.busy_ns += takes_ns;
      events.push({by.free_ns + delay_ns, which, piece, {}});
    }
  }
  void run(std::int64_t until_ns) {
    send(0);
    for (bool both = false; now < until_ns;) {
      if (!both && now >= second) {
        both = true;
        send(1);
      }
      const auto next = events.top();
      events.pop();
      now = next.at_ns;
      auto& by = ways[next.way];
      if (!next.taken_ns) {
        events.push({std::max(ways[1 - next.way].free_ns, now) + delay_ns, next.way, next.piece, now});
        continue;
      }
      by.bytes -= next.piece.bytes;
      by.window.answered(next.piece, now + second, *next.taken_ns);
      send(next.way);
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(windows)

BOOST_AUTO_TEST_CASE(before_any_answer_the_window_is_small) {  // WD-1
  BOOST_TEST(piece_window().size() == piece_window::least_large);
}

BOOST_AUTO_TEST_SUITE(simulated_ways, *boost::unit_test::label("explored"))

BOOST_AUTO_TEST_CASE(a_long_way_is_used_and_its_queue_stays_short) {  // WD-1, WD-2
  for (const auto large_ns : {100 * us, 2 * ms, 6 * ms, 20 * ms})
    for (const auto delay_ns : {10 * us, 1 * ms, 10 * ms, 50 * ms, 200 * ms}) {
      way to{large_ns, delay_ns};
      to.run(5 * second);
      const auto used = to.run(60 * second);
      const auto reached = std::min(1.0, double{piece_window::most} / to.holds());
      BOOST_TEST(used >= 0.9 * reached, "large piece " << large_ns << " ns, delay " << delay_ns << " ns: " << used);
      BOOST_TEST(to.window.size() <= to.most_wanted());
      BOOST_TEST(to.window.size() <= piece_window::most);
    }
}

BOOST_AUTO_TEST_CASE(pieces_are_small_on_a_slow_way_and_large_on_a_fast_one) {  // WD-4
  for (const auto delay_ns : {10 * us, 10 * ms, 50 * ms}) {
    way to{20 * ms, delay_ns};
    BOOST_TEST(to.piece() == piece_window::large_piece);
    to.run(2 * second);
    BOOST_TEST(to.piece() == piece_window::small_piece);
    to.large_ns = 6 * ms;  // between the two rates
    BOOST_TEST((to.rate() > piece_window::slow && to.rate() < piece_window::fast));
    to.run(2 * piece_window::memory_ns);
    BOOST_TEST(to.piece() == piece_window::small_piece);
    to.large_ns = 1 * ms;
    to.run(2 * piece_window::memory_ns);
    BOOST_TEST(to.piece() == piece_window::large_piece);
    BOOST_TEST(to.run(20 * second) >= 0.9);
    to.large_ns = 6 * ms;
    to.run(2 * piece_window::memory_ns);
    BOOST_TEST(to.piece() == piece_window::large_piece);
  }
}

BOOST_AUTO_TEST_CASE(a_sender_with_little_to_send_does_not_change_the_size_of_pieces) {  // WD-4
  way to{1 * ms, 50 * ms};
  to.run(2 * second);
  for (int i = 0; i < 50; ++i) {
    while (!to.under_way.empty()) to.take_answer();
    to.send();
  }
  BOOST_TEST(to.piece() == piece_window::large_piece);
}

BOOST_AUTO_TEST_CASE(pieces_stay_small_on_a_slow_way_that_takes_some_at_once_after_a_pause) {  // WD-4
  way to{20 * ms, 100 * us};
  to.burst_ns = 40 * ms;  // two large pieces
  to.run(2 * second);
  BOOST_TEST(to.piece() == piece_window::small_piece);
  for (int i = 0; i < 50; ++i) {
    to.run(200 * ms);
    while (!to.under_way.empty()) to.take_answer();
    to.now += 100 * ms;
    BOOST_TEST(to.piece() == piece_window::small_piece);
  }
}

BOOST_AUTO_TEST_CASE(pieces_stay_large_on_a_fast_way_that_stops_for_moments) {  // WD-2, WD-4
  for (const auto delay_ns : {50 * ms, 100 * ms}) {
    way to{4'400 * us, delay_ns};  // 60 MB/s
    to.stall_ns = 100 * ms;
    for (int i = 0; i < 60; ++i) {
      to.run(second);
      BOOST_TEST(to.piece() == piece_window::large_piece);
    }
    const auto used = to.run(60 * second);
    BOOST_TEST(used >= 0.8, "delay " << delay_ns << " ns: " << used);
  }
}

BOOST_AUTO_TEST_CASE(what_leaves_between_two_pieces_waits_a_little_on_a_slow_way) {  // WD-2, WD-4
  way to{20 * ms, 10 * us};                                                          // 100 Mbit/s
  to.run(2 * second);
  std::int64_t longest = 0;
  for (int i = 0; i < 1'000; ++i) {
    to.run(1);
    longest = std::max(longest, to.free_ns - to.now);
  }
  BOOST_TEST(longest <= 30 * ms);
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
  to.large_ns = 10 * ms;
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

BOOST_AUTO_TEST_CASE(answers_that_wait_on_their_way_back_do_not_shrink_the_window) {  // WD-2
  for (const auto delay_ns : {100 * us, 10 * ms})
    for (const auto ahead_ns : {std::int64_t{0}, -3'600 * second, 3'600 * second}) {
      way to{2 * ms, delay_ns};
      to.ahead_ns = ahead_ns;
      to.run(5 * second);
      to.back_ns = 40 * ms;
      const auto used = to.run(60 * second);
      BOOST_TEST(used >= 0.85, "delay " << delay_ns << " ns: " << used);
      BOOST_TEST(to.window.size() <= to.most_wanted() + to.in_bytes(to.back_ns));
      BOOST_TEST(to.piece() == piece_window::large_piece);
    }
}

BOOST_AUTO_TEST_CASE(two_nodes_that_send_to_each_other_use_both_ways) {  // WD-2, WD-4
  for (const auto large_ns : {4'369 * us, 2'097 * us})                   // 60 and 125 MB/s
    for (const auto delay_ns : {100 * us, 5 * ms, 25 * ms}) {
      two_ways between{large_ns, delay_ns};
      between.run(60 * second);
      for (const auto& way : between.ways) {
        BOOST_TEST(way.used(between.now) >= 0.5,
                   "large piece " << large_ns << " ns, delay " << delay_ns << " ns: " << way.used(between.now));
        BOOST_TEST(way.window.piece_bytes() == piece_window::large_piece);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_receiver_that_tells_no_time_is_measured_by_its_answers) {
  way silent{1 * ms, 10 * ms};
  silent.tells_time = false;
  silent.run(5 * second);
  BOOST_TEST(silent.run(60 * second) >= 0.9);
  BOOST_TEST(silent.window.size() <= silent.most_wanted());
}

BOOST_AUTO_TEST_CASE(whatever_the_clock_of_a_receiver_shows_the_way_is_used) {  // WD-5
  for (const double gains : {-1.0, -5e-4, 5e-4, 0.5}) {
    way to{1 * ms, 10 * ms};
    to.gains = gains;
    to.run(5 * second);
    BOOST_TEST(to.run(60 * second) >= 0.9, "a clock that gains " << gains);
    const bool drifts = gains > -1e-3;  // else it lies
    if (drifts) BOOST_TEST(to.window.size() <= to.most_wanted() + to.in_bytes(10 * ms));
    BOOST_TEST(to.window.size() <= piece_window::most);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(a_time_beyond_all_bounds_never_makes_the_window_smaller) {  // WD-5
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  piece_window told;
  piece_window not_told;
  auto now = second;
  for (const auto taken_ns : {most, least, std::int64_t{0}, least, most, most, std::int64_t{-1}, least}) {
    const auto size = piece_window::large_piece;
    const auto delay = taken_ns == 0 ? ms : 100 * ms;  // all but one have waited
    for (auto* window : {&told, &not_told}) {
      const auto piece = window->leaves(size, window->size(), now);
      window->answered(piece, now + delay, window == &told ? std::optional(taken_ns) : std::nullopt);
    }
    now += delay;
    BOOST_TEST(told.size() >= not_told.size());
  }
  BOOST_TEST(not_told.size() < piece_window::least_large);  // these waits made it smaller
}

BOOST_AUTO_TEST_CASE(a_span_without_an_answer_does_not_drain_the_path) {
  piece_window window;
  constexpr auto size = piece_window::large_piece;
  window.leaves(size, size, second);
  BOOST_TEST(window.leaves(size, window.size(), second + piece_window::memory_ns).fills);
  window.answered(window.leaves(size, size, 2 * second + piece_window::memory_ns), 3 * second + piece_window::memory_ns, {});
  BOOST_TEST(!window.leaves(size, window.size(), 3 * second + 2 * piece_window::memory_ns).fills);  // now it drains
}

BOOST_AUTO_TEST_SUITE_END()
