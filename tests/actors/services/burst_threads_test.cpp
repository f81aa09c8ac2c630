// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/burst_threads.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/passes/burst.hpp>

using troupe::services::burst_threads;

namespace {

/// Threads that note the bursts that they get. Bursts have numbers.
struct stage {
  ~stage() {
    for (const auto& each : all.stop()) caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
    run();
  }

  void start(std::size_t limit) {
    all.start(limit, [this] {
      if (refuses) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      threads.push_back(
        system.spawn([this, number = threads.size()](burst_threads::actor::pointer) -> burst_threads::actor::behavior_type {
          return {[this, number](troupe::contracts::burst_job& what) {
            begun.push_back(what.work->pass.value);
            by.push_back(number);
          }};
        }));
      return threads.back();
    });
  }
  void post(std::uint64_t number) {
    auto work = std::make_shared<troupe::passes::burst>();
    work->pass = troupe::pass_number{number};
    all.post({std::move(work), {}});
    run();
  }
  /// The number of the next burst that the thread has to run; 0: none.
  std::uint64_t ended(std::size_t thread) {
    const auto order = all.ended(threads.at(thread));
    return order.next ? order.next->work->pass.value : 0;
  }
  void blocked() {
    all.blocked();
    run();
  }
  void run() { dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler()).run(); }

  troupe::nodes::system_config config{troupe::nodes::system_config::for_tests{}};
  caf::actor_system system{config};
  burst_threads all;
  std::vector<burst_threads::actor> threads;
  std::vector<std::uint64_t> begun;
  std::vector<std::size_t> by;  // which thread
  bool refuses = false;
};

using numbers = std::vector<std::uint64_t>;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(threads_for_bursts, stage)

BOOST_AUTO_TEST_CASE(as_many_bursts_compute_as_the_limit_says_and_begin_in_their_order) {  // BT-1
  start(2);
  BOOST_TEST(threads.size() == 2u);
  for (const std::uint64_t number : {1, 2, 3, 4}) post(number);
  BOOST_TEST((begun == numbers{1, 2}));
  BOOST_TEST(ended(by[1]) == 3u);
  BOOST_TEST(ended(by[0]) == 4u);
  BOOST_TEST(ended(by[0]) == 0u);
  post(5);
  BOOST_TEST((begun == numbers{1, 2, 5}));
  BOOST_TEST(threads.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_burst_that_waits_gives_its_turn_to_the_next) {  // BT-1, BT-2
  start(1);
  post(1);
  post(2);
  BOOST_TEST((begun == numbers{1}));
  blocked();
  BOOST_TEST((begun == numbers{1, 2}));
  blocked();
  post(3);
  BOOST_TEST((begun == numbers{1, 2, 3}));
  BOOST_TEST(threads.size() == 3u);
  all.resumed();
  all.resumed();
  post(4);
  BOOST_TEST(ended(2) == 0u);  // two bursts that have waited still compute
  BOOST_TEST(ended(1) == 0u);
  BOOST_TEST(ended(0) == 4u);
  BOOST_TEST((begun == numbers{1, 2, 3}));
  BOOST_TEST(threads.size() == 3u);
}

BOOST_AUTO_TEST_CASE(where_the_system_gives_no_thread_a_burst_waits_until_another_one_has_ended) {  // BT-2
  start(1);
  refuses = true;
  post(1);
  post(2);
  blocked();
  BOOST_TEST((begun == numbers{1}));
  all.resumed();
  BOOST_TEST(ended(0) == 2u);
}

BOOST_AUTO_TEST_CASE(the_first_threads_have_to_be_there) {
  refuses = true;
  BOOST_CHECK_THROW(start(1), std::system_error);
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_is_bounded) {  // BT-2
  start(1);
  for (std::size_t i = 1; i <= burst_threads::most_threads + 1; ++i) {
    post(i);
    blocked();
  }
  BOOST_TEST(threads.size() == burst_threads::most_threads);
  BOOST_TEST(begun.size() == burst_threads::most_threads);
  BOOST_TEST(ended(7) == burst_threads::most_threads + 1);
}

BOOST_AUTO_TEST_CASE(threads_that_are_not_needed_end) {
  start(1);
  constexpr std::size_t count = 20;
  for (std::size_t i = 0; i < count; ++i) {
    post(i + 1);
    blocked();
  }
  for (std::size_t i = 0; i < count; ++i) all.resumed();
  std::size_t ends = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto order = all.ended(threads[i]);
    BOOST_TEST(!order.next.has_value());
    ends += order.ends ? 1 : 0;
  }
  BOOST_TEST(ends == count - 1 - burst_threads::most_spare);
  BOOST_TEST(all.stop().size() == 1 + burst_threads::most_spare);
}

BOOST_AUTO_TEST_CASE(after_the_stop_nothing_begins) {  // BT-3
  start(1);
  post(1);
  post(2);
  BOOST_TEST(all.stop().size() == 1u);
  blocked();
  all.resumed();
  post(3);
  BOOST_TEST(ended(0) == 0u);
  BOOST_TEST((begun == numbers{1}));
  for (const auto& each : threads) caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_SUITE_END()
