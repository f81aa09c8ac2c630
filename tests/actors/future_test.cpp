// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/future.hpp>

#include <troupe/actors/support/call_scope.hpp>

#include <atomic>
#include <thread>

#include <boost/test/unit_test.hpp>

namespace {

using namespace std::chrono_literals;
using troupe::errc;
using troupe::error;
using troupe::future;

template <class F>
errc code_of(F run) {
  try {
    run();
  } catch (const error& problem) {
    return problem.code();
  }
  return errc::none;
}

struct counting_observer : troupe::blocking_observer {
  int blocks = 0;
  int resumes = 0;
  void blocked() override { ++blocks; }
  void resumed() override { ++resumes; }
};

}  // namespace

// FU-1
BOOST_AUTO_TEST_CASE(only_the_first_completion_counts) {
  future<int> value;
  BOOST_TEST(!value.ready());
  value.set_value(1);
  value.set_value(2);
  value.set_error(error(errc::peer_down, "too late"));
  BOOST_TEST(value.ready());
  BOOST_TEST(value.get() == 1);
  BOOST_TEST(value.get() == 1);

  future<int> failed;
  failed.set_error(error(errc::peer_down, "stage1 is down"));
  failed.set_value(1);
  BOOST_CHECK_EXCEPTION(failed.get(), error, [](const error& e) {
    return e.code() == errc::peer_down && std::string(e.what()) == "stage1 is down";
  });
}

// FU-1
BOOST_AUTO_TEST_CASE(of_many_threads_that_complete_it_one_wins) {
  for (int round = 0; round < 50; ++round) {
    future<int> value;
    std::atomic<int> told{0};
    value.then([&](future<int>) { ++told; });
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([value, i]() mutable { value.set_value(i); });
    const auto first = value.get();
    for (auto& thread : threads) thread.join();
    BOOST_TEST(value.get() == first);
    BOOST_TEST(told == 1);
  }
}

// FU-2
BOOST_AUTO_TEST_CASE(get_gives_up_at_its_deadline_and_may_be_asked_again) {
  future<int> value;
  const auto begun = std::chrono::steady_clock::now();
  BOOST_TEST((code_of([&] { value.get(20ms); }) == errc::deadline_passed));
  BOOST_TEST((std::chrono::steady_clock::now() - begun >= 20ms));
  value.set_value(3);
  BOOST_TEST(value.get(0ms) == 3);
}

BOOST_AUTO_TEST_CASE(get_waits_for_another_thread) {
  future<int> value;
  std::thread thread([value]() mutable { value.set_value(4); });
  BOOST_TEST(value.get() == 4);
  thread.join();
}

// FU-3
BOOST_AUTO_TEST_CASE(a_continuation_runs_once_where_it_is_completed_or_added) {
  future<int> value;
  std::vector<std::pair<int, std::thread::id>> seen;
  value.then([&](future<int> f) { seen.emplace_back(f.get(), std::this_thread::get_id()); });
  BOOST_TEST(seen.empty());
  std::thread thread([value]() mutable { value.set_value(5); });
  const auto completer = thread.get_id();
  thread.join();
  value.then([&](future<int> f) { seen.emplace_back(f.get() + 1, std::this_thread::get_id()); });
  BOOST_TEST_REQUIRE(seen.size() == 2);
  BOOST_TEST(seen[0].first == 5);
  BOOST_TEST((seen[0].second == completer));
  BOOST_TEST(seen[1].first == 6);
  BOOST_TEST((seen[1].second == std::this_thread::get_id()));
}

// FU-3
BOOST_AUTO_TEST_CASE(a_continuation_that_throws_keeps_none_from_running) {
  future<int> value;
  int told = 0;
  value.then([](future<int>) { throw std::runtime_error("of the test, to be ignored"); });
  value.then([&](future<int>) { ++told; });
  BOOST_CHECK_NO_THROW(value.set_value(1));
  BOOST_TEST(told == 1);
  BOOST_CHECK_NO_THROW(value.then([](future<int>) { throw std::runtime_error("of the test, to be ignored"); }));
  BOOST_CHECK_NO_THROW(value.then([](future<int>) { throw 1; }));
}

// FU-3
BOOST_AUTO_TEST_CASE(a_continuation_has_the_depth_and_the_deadline_of_the_call_that_added_it) {
  future<int> value;
  std::vector<troupe::support::call_bounds> seen;
  const auto note = [&](future<int>) { seen.push_back(troupe::support::call_scope::current_bounds()); };
  {
    const troupe::support::call_scope scope({}, {}, {}, {}, troupe::support::call_bounds{3, 17});
    value.then(note);
  }
  value.then(note);
  value.set_value(1);
  BOOST_TEST_REQUIRE(seen.size() == 2);
  BOOST_TEST(seen[0].depth == 3U);
  BOOST_TEST(seen[0].until_ns == 17);
  BOOST_TEST(seen[1].depth == 0U);
  BOOST_TEST(seen[1].until_ns == 0);
}

// FU-3
BOOST_AUTO_TEST_CASE(a_continuation_is_in_the_context_that_was_open_where_it_was_added) {
  const troupe::context_id open{{7}, 9};
  future<int> value;
  std::vector<troupe::context_id> seen;
  {
    troupe::support::call_scope scope({}, open, {});
    value.then([&](future<int>) { seen.push_back(troupe::support::call_scope::context()); });
  }
  value.set_value(1);
  value.then([&](future<int>) { seen.push_back(troupe::support::call_scope::context()); });
  BOOST_TEST_REQUIRE(seen.size() == 2);
  BOOST_TEST((seen[0] == open));
  BOOST_TEST((seen[1] == troupe::context_id{}));
}

// FU-4
BOOST_AUTO_TEST_CASE(a_continuation_that_waits_gets_an_error_whichever_thread_it_is_on) {
  future<int> value;
  future<int> never;
  std::vector<errc> refused;
  auto wait = [&](future<int> complete) {
    BOOST_TEST(complete.get() == 1);
    refused.push_back(code_of([&] { never.get(1ms); }));
  };
  value.then(wait);
  value.set_value(1);
  value.then(wait);
  BOOST_TEST_REQUIRE(refused.size() == 2);
  BOOST_TEST((refused[0] == errc::misuse));
  BOOST_TEST((refused[1] == errc::misuse));
  BOOST_TEST((code_of([&] { never.get(1ms); }) == errc::deadline_passed));
}

BOOST_AUTO_TEST_CASE(finish_runs_once_on_the_thread_of_the_first_get) {
  future<int> value;
  int runs = 0;
  std::thread::id where;
  value.set_finish([&](int& x) {
    ++runs;
    where = std::this_thread::get_id();
    x *= 10;
  });
  std::thread([value]() mutable { value.set_value(7); }).join();
  BOOST_TEST(runs == 0);
  BOOST_TEST(value.get() == 70);
  BOOST_TEST(value.get() == 70);
  BOOST_TEST(runs == 1);
  BOOST_TEST((where == std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(what_finish_throws_fails_the_future_for_good) {
  future<int> value;
  value.set_finish([](int&) { throw error(errc::unknown_context, "released"); });
  value.set_value(1);
  BOOST_TEST((code_of([&] { value.get(); }) == errc::unknown_context));
  BOOST_TEST((code_of([&] { value.get(); }) == errc::unknown_context));

  future<int> other;
  other.set_finish([](int&) { throw std::logic_error("shape"); });
  other.set_value(1);
  BOOST_TEST((code_of([&] { other.get(); }) == errc::function_failed));
}

BOOST_AUTO_TEST_CASE(the_observer_hears_of_waits_on_its_thread_only) {
  counting_observer observer;
  troupe::blocking_observer::current() = &observer;
  future<int> there;
  there.set_value(1);
  there.get();
  BOOST_TEST(observer.blocks == 0);

  future<int> late;
  BOOST_TEST((code_of([&] { late.get(1ms); }) == errc::deadline_passed));
  BOOST_TEST(observer.blocks == 1);
  BOOST_TEST(observer.resumes == 1);
  std::thread([&] {
    BOOST_TEST(troupe::blocking_observer::current() == nullptr);
    code_of([&] { late.get(1ms); });
  }).join();
  BOOST_TEST(observer.blocks == 1);
  troupe::blocking_observer::current() = nullptr;
}

// FU-5
BOOST_AUTO_TEST_CASE(errands_run_on_the_thread_that_waits_before_it_goes_on) {
  future<int> value;
  BOOST_TEST(!value.post_to_waiter([] { BOOST_ERROR("nobody waits"); }));
  std::thread::id ran_on;
  int ran = 0;
  std::thread other([&] {
    while (!value.post_to_waiter([&] {
      ran_on = std::this_thread::get_id();
      ++ran;
    }))
      std::this_thread::yield();
    while (!value.post_to_waiter([&] {
      ++ran;
      value.set_value(7);  // an errand may complete the future
    }))
      std::this_thread::yield();
  });
  BOOST_TEST(value.get() == 7);
  other.join();
  BOOST_TEST(ran == 2);
  BOOST_TEST((ran_on == std::this_thread::get_id()));
  BOOST_TEST(!value.post_to_waiter([] { BOOST_ERROR("it is complete"); }));
}

// FU-5
BOOST_AUTO_TEST_CASE(an_errand_that_was_taken_runs_although_the_future_completes_first) {
  for (int round = 0; round < 200; ++round) {
    future<int> value;
    bool ran = false;
    std::thread other([&] {
      while (!value.post_to_waiter([&] { ran = true; })) std::this_thread::yield();
      value.set_value(1);
    });
    value.get();
    BOOST_TEST(ran);
    other.join();
  }
}

// FU-2, FU-5
BOOST_AUTO_TEST_CASE(a_thread_that_waits_for_a_time_or_lends_its_worker_slot_takes_no_errand) {
  future<int> value;
  std::thread other([&] {
    while (!value.ready())
      if (value.post_to_waiter([] { BOOST_ERROR("taken"); })) break;
  });
  BOOST_TEST((code_of([&] { value.get(1ms); }) == errc::deadline_passed));
  counting_observer observer;
  troupe::blocking_observer::current() = &observer;
  std::thread completes([&] { value.set_value(1); });
  BOOST_TEST(value.get() == 1);
  troupe::blocking_observer::current() = nullptr;
  completes.join();
  other.join();
}
