// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/lane.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(lanes)

namespace {

struct note final : lane_task {
  note(std::uint32_t depth, std::uint64_t sequence, std::function<void()> what)
      : lane_task(depth, sequence), what(std::move(what)) {}
  void run() noexcept override { what(); }
  std::function<void()> what;
};

lane_task_ptr task(std::function<void()> what, std::uint32_t depth = 0, std::uint64_t sequence = 0) {
  return std::make_shared<note>(depth, sequence, std::move(what));
}

/// A lane whose workers are those that the test makes: what the lane posts waits in a list.
struct posted_lane {
  std::vector<std::function<void()>> posted;
  std::shared_ptr<lane> shared =
    std::make_shared<lane>(lane::kind::cpu, 2, [this](std::function<void()> work) { posted.push_back(std::move(work)); });
  lane& of = *shared;
};

}  // namespace

// LQ-1, LV-1
BOOST_AUTO_TEST_CASE(run_the_deepest_task_first_and_then_the_one_recorded_last) {
  posted_lane lane;
  std::vector<int> order;
  const auto add = [&](int name, std::uint32_t depth, std::uint64_t sequence) {
    lane.of.add(task([&order, name] { order.push_back(name); }, depth, sequence));
  };
  add(3, 0, 9);
  add(0, 2, 1);
  add(2, 1, 4);
  add(1, 1, 7);
  add(4, 0, 8);
  lane.posted.front()();
  BOOST_TEST(order == (std::vector<int>{0, 1, 2, 3, 4}));
}

// LQ-2, LV-1
BOOST_AUTO_TEST_CASE(leave_out_what_another_thread_has_claimed) {
  posted_lane lane;
  int runs = 0;
  const auto claimed = task([&] { ++runs; }, 1);
  lane.of.add(claimed);
  lane.of.add(task([&] { runs += 10; }));
  BOOST_TEST(claimed->claim());
  BOOST_TEST(!claimed->claim());
  lane.posted.front()();
  BOOST_TEST(runs == 10);
  BOOST_TEST(!lane.of.run_one());
}

BOOST_AUTO_TEST_CASE(ask_for_as_many_workers_as_they_have_and_again_when_those_are_done) {  // LV-3
  posted_lane lane;
  for (int i = 0; i < 5; ++i) lane.of.add(task([] {}));
  BOOST_REQUIRE(lane.posted.size() == 2u);
  for (const auto& each : std::exchange(lane.posted, {})) each();
  lane.of.add(task([] {}));
  BOOST_TEST(lane.posted.size() == 1u);
}

BOOST_AUTO_TEST_CASE(know_their_workers) {
  posted_lane lane;
  class lane* served = nullptr;
  lane.of.add(task([&] { served = lane::of_this_thread(); }));
  lane.posted.front()();
  BOOST_TEST(served == &lane.of);
  BOOST_TEST(lane::of_this_thread() == nullptr);
}

// LV-2: the only worker waits within the first task until the second and the third one have run.
BOOST_AUTO_TEST_CASE(are_served_by_a_worker_that_waits_within_a_task) {
  posted_lane lane;
  int runs = 0;
  lane.of.add(task(
    [&] {
      lane.of.add(task([&] {
        lane.of.add(task([&] { ++runs; }));
        lane.of.serve_until([&] { return runs == 1; });
        ++runs;
      }));
      lane.of.serve_until([&] { return runs == 2; });
      ++runs;
    },
    1));
  lane.posted.front()();
  BOOST_TEST(runs == 3);
}

// LV-2: the worker sleeps within a task; a task that comes and a condition that becomes true both wake it.
BOOST_AUTO_TEST_CASE(wake_a_worker_that_waits_within_a_task) {
  posted_lane lane;
  std::promise<void> waits;
  std::promise<void> has_run;
  std::atomic<bool> done{false};
  lane.of.add(task([&] {
    waits.set_value();
    lane.of.serve_until([&] { return done.load(); });
  }));
  std::thread worker(lane.posted.front());
  waits.get_future().wait();
  lane.of.add(task([&] { has_run.set_value(); }));
  has_run.get_future().wait();
  done = true;
  lane.of.ring();
  worker.join();
  BOOST_TEST(done);
}

// LV-2: who waits has looked twice when it sleeps: before it sleeps, and under the lock that ring() takes.
BOOST_AUTO_TEST_CASE(ring_for_a_worker_that_sleeps_within_a_task) {
  posted_lane lane;
  std::atomic<int> looks{0};
  std::atomic<bool> done{false};
  std::thread worker([&] {
    lane.of.serve_until([&] {
      ++looks;
      return done.load();
    });
  });
  while (looks < 2) std::this_thread::yield();
  done = true;
  lane.of.ring();
  worker.join();
  BOOST_TEST(looks >= 3);
}

// LV-2: a worker that waits uses no core. The condition is looked at once for each ring, not again and again.
BOOST_AUTO_TEST_CASE(let_a_worker_sleep_within_a_task) {
  posted_lane lane;
  std::atomic<int> looks{0};
  std::promise<void> ran;
  std::atomic<bool> done{false};
  lane.of.add(task([&] { ran.set_value(); }));
  std::thread worker([&] {
    lane.of.serve_until([&] {
      ++looks;
      return done.load();
    });
  });
  ran.get_future().wait();
  std::promise<void> never;
  never.get_future().wait_for(std::chrono::milliseconds(100));
  BOOST_TEST(looks < 10);
  done = true;
  lane.of.ring();
  worker.join();
}

// LV-4
BOOST_AUTO_TEST_CASE(promise_nothing_while_a_worker_waits_and_promise_again_afterwards) {
  posted_lane lane;
  std::vector<bool> promised;
  const auto other = task([] {});
  lane.of.add(task([&] {
    bool over = false;
    lane.of.add(task([&] {
      promised.push_back(lane.of.promises(other));
      over = true;
    }));
    lane.of.serve_until([&] { return over; });
    promised.push_back(lane.of.promises(other));
  }));
  lane.posted.front()();
  BOOST_TEST(promised == (std::vector<bool>{false, true}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ask_again_for_a_worker_when_asking_has_failed) {
  int asked = 0;
  const auto shared = std::make_shared<lane>(lane::kind::cpu, 1, [&](const std::function<void()>&) {
    if (++asked == 1) throw std::runtime_error("of the test");
  });
  BOOST_CHECK_THROW(shared->add(task([] {})), std::runtime_error);
  shared->add(task([] {}));
  BOOST_TEST(asked == 2);
}

BOOST_AUTO_TEST_SUITE_END()
