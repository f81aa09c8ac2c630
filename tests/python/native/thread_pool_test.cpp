// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <string>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/future.hpp>

namespace {

using torchtroupe::thread_pool;
using torchtroupe::waiting_thread;
constexpr std::chrono::seconds patience{20};

/// While it lives, the system gives no thread: there is no memory for the stack of one.
class no_more_threads {
 public:
  no_more_threads() {
    pthread_attr_t with;
    BOOST_TEST_REQUIRE(pthread_getattr_default_np(&with) == 0);
    pthread_attr_getstacksize(&with, &usual_);
    set(std::size_t{1} << 62);
    pthread_attr_destroy(&with);
  }
  ~no_more_threads() { set(usual_); }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;

 private:
  static void set(std::size_t size) {
    pthread_attr_t with;
    pthread_attr_init(&with);
    pthread_attr_setstacksize(&with, size);
    BOOST_TEST_REQUIRE(pthread_setattr_default_np(&with) == 0);
    pthread_attr_destroy(&with);
  }

  std::size_t usual_ = 0;
};

/// Work that goes on when the test says so.
struct held_work {
  std::promise<void> begun, go_on;
  std::function<void()> work() {
    return [this] {
      begun.set_value();
      go_on.get_future().wait_for(patience);
    };
  }
};

struct counting_observer : troupe::blocking_observer {
  int waits = 0, most = 0;
  counting_observer() { current() = this; }
  ~counting_observer() override { current() = nullptr; }
  void blocked() override { most = std::max(most, ++waits); }
  void resumed() override { --waits; }
};

bool comes(std::future<void> what) { return what.wait_for(patience) == std::future_status::ready; }

std::string text_of_failure(const std::function<void()>& run) {
  try {
    run();
  } catch (const troupe::error& why) {
    return why.what();
  }
  return "no error";
}

}  // namespace

// WY-1: a request that is open and a wait for a future of troupe free one slot together.
BOOST_AUTO_TEST_CASE(a_thread_that_waits_in_two_ways_frees_its_slot_once) {
  counting_observer outer;
  {
    const waiting_thread told;
    const auto answered = waiting_thread::request();
    const troupe::future<int> other;
    BOOST_CHECK_THROW(static_cast<void>(other.get(std::chrono::milliseconds(1))), troupe::error);
    BOOST_TEST((outer.waits == 1 && outer.most == 1));
    answered();
    BOOST_TEST(outer.waits == 0);
    BOOST_CHECK_THROW(static_cast<void>(other.get(std::chrono::milliseconds(1))), troupe::error);
  }
  BOOST_TEST((outer.waits == 0 && outer.most == 1));
  BOOST_TEST(troupe::blocking_observer::current() == &outer);
}

// QK-1
BOOST_AUTO_TEST_CASE(a_task_that_waits_for_a_future_of_troupe_leaves_its_slot_to_others) {
  troupe::future<int> result;
  std::promise<int> told;
  thread_pool pool(1);
  pool.run([&] { told.set_value(result.get(patience)); });
  pool.run([result]() mutable { result.set_value(7); });
  BOOST_TEST(told.get_future().get() == 7);
}

// QK-3
BOOST_AUTO_TEST_CASE(tasks_start_later_if_the_system_gives_no_thread) {
  held_work first;
  std::promise<void> second;
  thread_pool pool(4);
  pool.run(first.work());
  BOOST_TEST_REQUIRE(comes(first.begun.get_future()));
  {
    const no_more_threads meanwhile;
    pool.run([&] { second.set_value(); });
  }
  first.go_on.set_value();
  BOOST_TEST(comes(second.get_future()));
}

// QK-3
BOOST_AUTO_TEST_CASE(the_last_thread_does_not_wait_if_the_system_gives_no_other) {
  std::promise<std::string> told;
  std::promise<void> later;
  thread_pool pool(4);
  const no_more_threads meanwhile;
  pool.run([&] { told.set_value(text_of_failure([] { waiting_thread::request(); })); });
  BOOST_TEST(told.get_future().get().find("gets no thread for callbacks beside the 1 that wait") != std::string::npos);
  pool.run([&] { later.set_value(); });
  BOOST_TEST(comes(later.get_future()));
}

BOOST_AUTO_TEST_CASE(a_pool_that_gets_no_thread_is_an_error) {
  const no_more_threads meanwhile;
  BOOST_TEST(text_of_failure([] { const thread_pool pool(4); }).find("raise the limit") != std::string::npos);
}
