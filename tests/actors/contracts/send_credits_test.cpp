// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/contracts/send_credits.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include <troupe/actors/future.hpp>

namespace {

using namespace std::chrono_literals;
using troupe::node_id;
using troupe::contracts::send_credits;
using outcome = send_credits::outcome;

constexpr send_credits::account there{node_id{2}, 0};

auto in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// Says when a thread begins to wait and when the thread goes on.
struct told : troupe::blocking_observer {
  std::promise<void> waits;
  int resumes = 0;
  void blocked() override { waits.set_value(); }
  void resumed() override { ++resumes; }
};

/// A thread that takes 50 bytes of 100, of which 80 are taken, and waits.
struct waiting_thread {
  send_credits& all;
  told observer = {};
  std::future<send_credits::result> result = std::async(std::launch::async, [this] {
    troupe::blocking_observer::current() = &observer;
    return all.take(there, 50, in(20s));
  });
  explicit waiting_thread(send_credits& from) : all(from) { observer.waits.get_future().wait(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(credits_of_sends)

BOOST_AUTO_TEST_CASE(a_thread_waits_until_bytes_are_given_back) {  // SQ-2
  send_credits all(100);
  auto first = all.take(there, 80, in(0s));
  BOOST_TEST((first.how == outcome::taken));
  waiting_thread waiter(all);
  BOOST_TEST((waiter.result.wait_for(0s) == std::future_status::timeout));
  first.taken.give_back();
  const auto second = waiter.result.get();
  BOOST_TEST((second.how == outcome::taken));
  BOOST_TEST(waiter.observer.resumes == 1);
  BOOST_TEST(all.under_way(there) == 50U);
}

BOOST_AUTO_TEST_CASE(a_deadline_ends_the_wait) {  // SQ-1
  send_credits all(100);
  const auto first = all.take(there, 80, in(0s));
  BOOST_TEST((all.take(there, 50, in(1ms)).how == outcome::deadline_passed));
  BOOST_TEST((all.take(there, 20, in(0s)).how == outcome::taken));
}

BOOST_AUTO_TEST_CASE(the_end_of_the_node_ends_the_wait) {  // SQ-1
  send_credits all(100);
  const auto first = all.take(there, 80, in(0s));
  waiting_thread waiter(all);
  all.stop();
  BOOST_TEST((waiter.result.get().how == outcome::stopped));
  BOOST_TEST((all.take(there, 1, in(0s)).how == outcome::stopped));
}

BOOST_AUTO_TEST_CASE(what_is_not_wanted_any_more_ends_the_wait) {  // SQ-1
  send_credits all(100);
  const auto first = all.take(there, 80, in(0s));
  std::atomic<bool> stop{false};
  told observer;
  auto result = std::async(std::launch::async, [&] {
    troupe::blocking_observer::current() = &observer;
    return all.take(there, 50, std::chrono::steady_clock::time_point::max(), &stop).how;
  });
  observer.waits.get_future().wait();
  all.wake();
  BOOST_TEST((result.wait_for(0s) == std::future_status::timeout));
  stop = true;
  all.wake();
  BOOST_TEST((result.get() == outcome::stopped));
  BOOST_TEST((all.take(there, 20, in(0s)).how == outcome::taken));
}

BOOST_AUTO_TEST_CASE(a_continuation_does_not_wait) {  // SQ-3
  send_credits all(100);
  const troupe::detail::continuation_scope continuation;
  const auto first = all.take(there, 80, in(20s));
  BOOST_TEST((first.how == outcome::taken));
  BOOST_TEST((all.take(there, 50, in(20s)).how == outcome::busy));
}

BOOST_AUTO_TEST_CASE(a_credit_gives_its_bytes_back_once_whoever_holds_it) {  // SQ-4
  std::optional<send_credits> all(std::in_place, 100);
  {
    auto first = all->take(there, 30, in(0s)).taken;
    auto second = all->take(there, 20, in(0s)).taken;
    send_credits::credit holder = std::move(first);
    first.give_back();
    BOOST_TEST(all->under_way(there) == 50U);
    holder = std::move(second);
    BOOST_TEST(all->under_way(there) == 20U);
    holder.give_back();
    holder.give_back();
    BOOST_TEST(all->under_way(there) == 0U);
    second = all->take(there, 10, in(0s)).taken;
    BOOST_TEST(all->under_way(there) == 10U);
  }
  BOOST_TEST(all->under_way(there) == 0U);
  const auto late = all->take(there, 10, in(0s));
  all.reset();  // a credit may outlive its node
}

BOOST_AUTO_TEST_SUITE_END()
