// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/job_board.hpp>

#include "engine/threads.hpp"

using namespace troupe::engine;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(job_boards)

namespace {

// Keeps what is posted: no worker is free until the test does the work.
class nobody final : public cpu_workers {
 public:
  nobody() : cpu_workers(1) {}
  void post(std::function<void()> work) override { waiting.push_back(std::move(work)); }
  std::vector<std::function<void()>> waiting;
};

std::unique_ptr<job> numbered(std::uint32_t index) {
  auto made = std::make_unique<job>();
  made->index = index;
  return made;
}

}  // namespace

// JB-2
BOOST_AUTO_TEST_CASE(begin_jobs_in_the_order_in_which_they_were_added) {
  nobody workers;
  job_board board({.run = [](job&) {}});
  for (std::uint32_t i = 0; i < 5; ++i) board.add(workers.cpu_lane(), numbered(i));
  for (std::uint32_t i = 0; i < 5; ++i) BOOST_TEST(board.take()->index == i);
  BOOST_TEST(!board.take());
}

// JB-2
BOOST_AUTO_TEST_CASE(give_jobs_of_the_cpu_before_those_of_accelerators) {
  nobody workers;
  const auto device = std::make_shared<lane>(lane::kind::accelerator, 1, [](const auto&) {});
  job_board board({.run = [](job&) {}});
  board.add(*device, numbered(0));
  board.add(workers.cpu_lane(), numbered(1));
  BOOST_TEST(board.take()->index == 1u);
  BOOST_TEST(board.take()->index == 0u);
  BOOST_TEST(!board.take());
  auto own = board.own();
  BOOST_TEST(!board.wait(own));
}

// LV-1: one piece of posted work does all jobs that are in the lane.
BOOST_AUTO_TEST_CASE(hand_jobs_to_a_worker_in_the_order_of_the_lane) {
  nobody workers;
  std::vector<std::uint32_t> order;
  job_board board({.run = [&](job& which) { order.push_back(which.index); }});
  for (std::uint32_t i = 0; i < 5; ++i) board.add(workers.cpu_lane(), numbered(i), 5 - i);
  BOOST_REQUIRE(workers.waiting.size() == 1u);
  workers.waiting.front()();
  BOOST_TEST(order == (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  BOOST_TEST(board.collect().size() == 5u);
  BOOST_TEST(board.collect().empty());
}

BOOST_AUTO_TEST_CASE(keep_what_a_job_throws_with_the_job) {
  nobody workers;
  job_board board({.run = [](job&) { throw std::runtime_error("of the job"); }});
  board.add(workers.cpu_lane(), numbered(7));
  BOOST_REQUIRE(workers.waiting.size() == 1u);
  workers.waiting.front()();
  auto own = board.own();
  BOOST_TEST(board.wait(own));
  const auto done = board.collect();
  BOOST_REQUIRE(done.size() == 1u);
  BOOST_TEST(done[0]->index == 7u);
  BOOST_REQUIRE(done[0]->failure);
  BOOST_CHECK_THROW(std::rethrow_exception(done[0]->failure), std::runtime_error);
  BOOST_TEST(!board.wait(own));
}

// JB-3: a worker runs the posted work only after the end of the board.
BOOST_AUTO_TEST_CASE(do_no_job_that_had_not_begun_when_the_board_ended) {
  nobody workers;
  int done = 0;
  {
    job_board board({.run = [&](job&) { ++done; }});
    board.add(workers.cpu_lane(), numbered(0));
    board.add(workers.cpu_lane(), numbered(1));
  }
  BOOST_REQUIRE(workers.waiting.size() == 1u);
  workers.waiting.front()();
  BOOST_TEST(done == 0);
}

// JB-3: the destructor waits for the running job, which takes `time_of_the_job`. If the destructor did not wait, `ended` would
// still be 0 in the check; `ended_early` would then end the job.
BOOST_AUTO_TEST_CASE(end_after_the_jobs_that_run) {
  constexpr std::chrono::milliseconds time_of_the_job{200};
  threads workers(1);
  std::promise<void> running;
  std::promise<void> ended_early;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  auto board = std::make_unique<job_board>(job_board::calls{.run = [&](job&) {
    ++begun;
    running.set_value();
    ended_early.get_future().wait_for(time_of_the_job);
    ++ended;
  }});
  board->add(workers.cpu_lane(), numbered(0));
  board->add(workers.cpu_lane(), numbered(1));
  running.get_future().wait();
  board.reset();
  BOOST_TEST(begun == 1);
  BOOST_TEST(ended == 1);
  ended_early.set_value();
}

// JB-4: the thread of the pass runs something else and has given the ownership up. The worker goes on with the pass.
BOOST_AUTO_TEST_CASE(let_a_worker_go_on_while_the_pass_is_busy) {
  threads workers(1);
  std::promise<void> given_up;
  std::promise<void> ended;
  job_board board({.run =
                     [&](job& which) {
                       if (which.index == 0) given_up.get_future().wait();
                     },
                   .go_on =
                     [&](job_board& on) {
                       const auto index = on.collect().at(0)->index;
                       if (index < 5)
                         on.add(workers.cpu_lane(), numbered(index + 1));
                       else
                         ended.set_value();
                     }});
  {
    const auto own = board.own();
    board.add(workers.cpu_lane(), numbered(0));
  }
  given_up.set_value();  // a worker that was done earlier would leave the job to this thread
  ended.get_future().wait();
  auto own = board.own();
  BOOST_TEST(!board.has_away());
}

// JB-5: the only worker begins one of the two jobs. Meanwhile the pass takes the other job.
BOOST_AUTO_TEST_CASE(wake_the_pass_for_the_second_of_several_jobs) {
  nobody workers;
  std::promise<void> went_on;
  std::promise<void> taken;
  bool in_time = false;
  job_board board({.run =
                     [&](job& which) {
                       if (which.index > 0)
                         in_time = taken.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
                     },
                   .go_on =
                     [&](job_board& on) {
                       if (on.collect().at(0)->index > 0) return on.wake();
                       on.add(workers.cpu_lane(), numbered(1));
                       on.add(workers.cpu_lane(), numbered(2));
                       went_on.set_value();
                     }});
  board.add(workers.cpu_lane(), numbered(0));
  std::thread worker(workers.waiting.front());
  went_on.get_future().wait();
  {
    auto own = board.own();
    board.wait(own);
    board.take();
  }
  taken.set_value();
  worker.join();
  BOOST_TEST(in_time);
}

// JB-5: the worker is not the one that begins the job: another lane has it, whose only worker never comes.
BOOST_AUTO_TEST_CASE(wake_the_pass_for_a_job_of_another_lane) {
  nobody workers;
  const auto device = std::make_shared<lane>(lane::kind::accelerator, 1, [](const auto&) {});
  job_board board({.run = [](job&) {},
                   .go_on =
                     [&](job_board& on) {
                       on.collect();
                       on.add(*device, numbered(1));
                     }});
  board.add(workers.cpu_lane(), numbered(0));
  std::thread worker(workers.waiting.front());
  {
    auto own = board.own();
    BOOST_TEST(board.wait(own));  // the test's time limit ends a wait for ever
    const auto next = board.take();
    BOOST_REQUIRE(next);
    BOOST_TEST(next->index == 1u);
  }
  worker.join();
}

// JB-5: the function of another pass is in the lane, and comes first.
BOOST_AUTO_TEST_CASE(wake_the_pass_for_a_job_behind_others_in_its_lane) {
  nobody workers;
  std::promise<void> taken;
  bool in_time = false;
  job_board other(
    {.run = [&](job&) { in_time = taken.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready; }}, false,
    1);
  job_board board({.run = [](job&) {},
                   .go_on =
                     [&](job_board& on) {
                       if (on.collect().at(0)->index > 0) return;
                       other.add(workers.cpu_lane(), numbered(0));
                       on.add(workers.cpu_lane(), numbered(1));
                     }});
  board.add(workers.cpu_lane(), numbered(0));
  std::thread worker(workers.waiting.front());
  {
    auto own = board.own();
    BOOST_TEST(board.wait(own));
    BOOST_TEST(board.take() != nullptr);
  }
  taken.set_value();
  worker.join();
  BOOST_TEST(in_time);
}

// JB-5: the worker waits within a function, and goes on with that as soon as what it waits for has come.
BOOST_AUTO_TEST_CASE(wake_the_pass_for_a_job_of_a_worker_that_waits_itself) {
  nobody workers;
  std::atomic<bool> waits_no_more{false};
  job_board board({.run = [](job&) {},
                   .go_on =
                     [&](job_board& on) {
                       on.collect();
                       waits_no_more = true;
                       on.add(workers.cpu_lane(), numbered(1));
                     }});
  board.add(workers.cpu_lane(), numbered(0));
  std::thread worker([&] {
    lane::serve_on_this_thread(&workers.cpu_lane());
    workers.cpu_lane().serve_until([&] { return waits_no_more.load(); });
    lane::serve_on_this_thread(nullptr);
  });
  {
    auto own = board.own();
    BOOST_TEST(board.wait(own));
    BOOST_TEST(board.take() != nullptr);
  }
  worker.join();
}

// LV-4: the worker begins the job that it has promised before a function that comes meanwhile.
BOOST_AUTO_TEST_CASE(begin_next_what_the_pass_does_not_wake_for) {
  nobody workers;
  std::vector<std::uint32_t> order;
  job_board other({.run = [&](job& which) { order.push_back(which.index); }}, false, 1);
  struct adds_another final : lane_task {
    adds_another(std::function<void()> what) : lane_task(9, 9), what(std::move(what)) {}
    void run() noexcept override { what(); }
    std::function<void()> what;
  };
  auto& lane = workers.cpu_lane();
  const auto later = std::make_shared<adds_another>([&] { order.push_back(9); });
  const auto promised = std::make_shared<adds_another>([&] { order.push_back(1); });
  lane.add(std::make_shared<adds_another>([&] {
    lane.add(promised);
    BOOST_TEST(lane.promises(promised));
    BOOST_TEST(!lane.promises(later));
    other.add(lane, numbered(7));
    lane.add(later);
  }));
  workers.waiting.front()();
  BOOST_TEST(order == (std::vector<std::uint32_t>{1, 9, 7}), boost::test_tools::per_element());
  BOOST_TEST(!lane.promises(later));  // this thread serves the lane no more
}

// JB-4: the worker finds that the pass has its ownership, and leaves the job.
BOOST_AUTO_TEST_CASE(leave_a_finished_job_to_the_pass_that_has_the_ownership) {
  nobody workers;
  int calls = 0;
  job_board board({.run = [](job&) {}, .go_on = [&](job_board&) { ++calls; }});
  auto own = board.own();
  board.add(workers.cpu_lane(), numbered(3));
  std::thread(workers.waiting.front()).join();
  BOOST_TEST(calls == 0);
  BOOST_TEST(board.has_done());
  BOOST_TEST(board.wait(own));
  BOOST_TEST(board.collect().at(0)->index == 3u);
}

// JB-5: the thread of the pass serves the lane of the job, so a wait that does not end too early runs the job.
BOOST_AUTO_TEST_CASE(let_the_pass_wait_on_when_a_worker_has_added_one_job) {
  nobody workers;
  std::vector<std::uint32_t> order;
  job_board board({.run = [&](job& which) { order.push_back(which.index); },
                   .go_on =
                     [&](job_board& on) {
                       const auto index = on.collect().at(0)->index;
                       if (index == 0) on.add(workers.cpu_lane(), numbered(1));
                       if (index == 2) on.wake();
                     }});
  board.add(workers.cpu_lane(), numbered(0));
  workers.waiting.front()();
  board.add(workers.cpu_lane(), numbered(2));
  lane::serve_on_this_thread(&workers.cpu_lane());
  {
    auto own = board.own();
    BOOST_TEST(board.wait(own));
  }
  lane::serve_on_this_thread(nullptr);
  BOOST_TEST(order == (std::vector<std::uint32_t>{0, 1, 2}));
}

// LV-2: each job ends when wait() has given the ownership up. Without a ring of the lane the pass would sleep on.
BOOST_AUTO_TEST_CASE(wake_a_pass_that_serves_a_lane_while_it_waits) {
  threads workers(1);
  const auto served = std::make_shared<lane>(lane::kind::accelerator, 1, [](const auto&) {});
  std::promise<void> ended;
  bool in_time = false;
  std::thread watch([&] {
    const auto end = ended.get_future();
    in_time = end.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    while (end.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) served->ring();
  });
  lane::serve_on_this_thread(served.get());
  for (int round = 0; round < 100; ++round) {
    job_board* its = nullptr;
    job_board board({.run = [&](job&) { its->own(); }});
    its = &board;
    auto own = board.own();
    board.add(workers.cpu_lane(), numbered(0));
    BOOST_TEST(board.wait(own));
    BOOST_TEST(board.has_done());
  }
  lane::serve_on_this_thread(nullptr);
  ended.set_value();
  watch.join();
  BOOST_TEST(in_time);
}

// LV-2: the job that runs waits for a job of another board, in the lane of the thread on which its own board ends.
BOOST_AUTO_TEST_CASE(serve_the_lane_of_their_thread_while_they_end) {
  threads workers(1);
  const auto served = std::make_shared<lane>(lane::kind::accelerator, 1, [](const auto&) {});
  std::promise<void> running;
  std::promise<void> other_ran;
  bool in_time = false;
  auto board = std::make_unique<job_board>(job_board::calls{.run = [&](job&) {
    running.set_value();
    in_time = other_ran.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }});
  job_board other({.run = [&](job&) { other_ran.set_value(); }});
  board->add(workers.cpu_lane(), numbered(0));
  running.get_future().wait();
  board->wake();  // for a pass that does not wait any more
  other.add(*served, numbered(0));
  lane::serve_on_this_thread(served.get());
  board.reset();
  lane::serve_on_this_thread(nullptr);
  BOOST_TEST(in_time);
}

// JB-1
BOOST_AUTO_TEST_CASE(give_the_worker_its_own_state_back_when_a_job_throws) {
  nobody workers;
  int rounding_of_job = -1;
  int threads_of_job = -1;
  job_board board({.run = [&](job&) {
    rounding_of_job = std::fegetround();
    threads_of_job = at::get_num_threads();
    throw std::runtime_error("of the job");
  }});
  board.add(workers.cpu_lane(), numbered(0));
  const int threads_of_pass = at::get_num_threads();
  int rounding = -1;
  int threads_of_worker = -1;
  std::thread([&] {
    std::fesetround(FE_UPWARD);
    at::set_num_threads(threads_of_pass + 1);
    workers.waiting.front()();
    rounding = std::fegetround();
    threads_of_worker = at::get_num_threads();
  }).join();
  BOOST_TEST(rounding_of_job == FE_TONEAREST);
  BOOST_TEST(threads_of_job == threads_of_pass);
  BOOST_TEST(rounding == FE_UPWARD);
  BOOST_TEST(threads_of_worker == threads_of_pass + 1);
}

// JB-3, JB-4: boards that end while jobs wait, run, come back and make others go on. A finished job that nobody looks for would keep
// the destructor waiting for ever.
BOOST_AUTO_TEST_CASE(end_in_the_middle_of_their_jobs) {
  threads workers(3);
  std::atomic<int> runs{0};
  for (int round = 0; round < 3000; ++round) {
    std::atomic<bool> ended{false};
    {
      job_board board({.run = [&](job&) { ++runs; },
                       .go_on =
                         [&](job_board& on) {
                           BOOST_REQUIRE(!ended);
                           for (const auto& each : on.collect())
                             if (each->index > 0) on.add(workers.cpu_lane(), numbered(each->index - 1));
                           if (!on.has_away()) on.wake();
                         }});
      auto own = board.own();
      for (std::uint32_t i = 0; i < 4; ++i) board.add(workers.cpu_lane(), numbered(i));
      if (round % 2 == 0) board.take();
      if (round % 3 == 0) board.collect();
      if (round % 5 == 0) board.wait(own);
    }
    ended = true;
  }
  BOOST_TEST(runs > 0);
}

BOOST_AUTO_TEST_CASE(hand_the_pass_what_a_worker_could_not_go_on_with) {
  nobody workers;
  job_board board({.run = [](job&) {},
                   .go_on =
                     [](job_board& on) {
                       on.collect();
                       throw std::runtime_error("of the sum");
                     }});
  board.add(workers.cpu_lane(), numbered(3));
  workers.waiting.front()();
  const auto left = board.take_left();
  BOOST_REQUIRE(left);
  BOOST_CHECK_THROW(std::rethrow_exception(left->failure), std::runtime_error);
  BOOST_TEST(!board.take_left());
}

BOOST_AUTO_TEST_SUITE_END()
