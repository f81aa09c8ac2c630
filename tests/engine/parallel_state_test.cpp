// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/cost_book.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "engine/threads.hpp"

using namespace troupe::test;
using torch::autograd::variable_list;

BOOST_AUTO_TEST_SUITE(parallel_passes)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

/// What a worker's thread and the caller's thread do when they run a function. The two wait for each other: neither continues
/// alone.
struct meeting {
  std::function<void()> of_worker;
  std::function<void()> of_caller;
};

/// Runs a pass of functions of one kind, all large. Each thread runs its part of the meeting in its first function.
void run_and_meet(threads& workers, const meeting& what) {
  const auto pass = [&](const std::function<void()>& call) {
    const auto x = leaf({1});
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 8; ++i)
      parts.push_back(through(x, [call](at::Tensor gradient) {
        if (call) call();
        return gradient;
      }));
    troupe::backward({at::stack(parts).sum()}, {}, {.workers = &workers});
  };
  pass({});
  const auto caller = std::this_thread::get_id();
  std::mutex mutex;
  std::condition_variable changed;
  bool worker_came = false;
  bool caller_came = false;
  pass([&] {
    std::unique_lock lock(mutex);
    const bool is_caller = std::this_thread::get_id() == caller;
    bool& came = is_caller ? caller_came : worker_came;
    if (std::exchange(came, true)) return;
    changed.notify_all();
    if (!is_caller && what.of_worker) what.of_worker();  // the caller waits for the mutex
    changed.wait(lock, [&] { return worker_came && caller_came; });
    if (is_caller && what.of_caller) what.of_caller();
  });
}

}  // namespace

// RP-1
BOOST_AUTO_TEST_CASE(leave_nothing_on_a_worker_after_an_error) {
  threads workers(1);
  struct mishap {};
  BOOST_CHECK_THROW(run_and_meet(workers, {.of_worker = [] { throw mishap{}; }, .of_caller = {}}), mishap);
  std::promise<std::int64_t> id;
  workers.post([&] { id.set_value(troupe::current_pass_id()); });
  BOOST_TEST(id.get_future().get() == -1);
}

// RP-2
BOOST_AUTO_TEST_CASE(have_one_id_on_all_threads) {
  threads workers(1);
  std::int64_t of_worker = -1;
  std::int64_t of_caller = -1;
  run_and_meet(workers, {.of_worker = [&] { of_worker = troupe::current_pass_id(); },
                         .of_caller = [&] { of_caller = troupe::current_pass_id(); }});
  BOOST_TEST(of_worker >= 0);
  BOOST_TEST(of_worker == of_caller);
}

// RP-1
BOOST_AUTO_TEST_CASE(have_on_workers_the_passes_around_them) {
  threads workers(1);
  bool valid = true;
  const auto x = leaf({1});
  const auto y = through(x, [&](at::Tensor gradient) {
    const c10::AutoGradMode recording(true);
    run_and_meet(workers, {.of_worker = [&] { valid = troupe::is_checkpoint_valid(); }, .of_caller = {}});
    return gradient;
  });
  troupe::grad({y.sum()}, {x});
  BOOST_TEST(!valid);  // the outer pass has inputs
}

BOOST_AUTO_TEST_CASE(replay_warnings_of_workers_also_after_an_error) {
  threads workers(1);
  collected_warnings warnings;
  struct mishap {};
  BOOST_CHECK_THROW(
    run_and_meet(workers, {.of_worker = [] { TORCH_WARN("from a worker"); }, .of_caller = [] { throw mishap{}; }}), mishap);
  BOOST_TEST(warnings.texts == std::vector<std::string>{"from a worker"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(lose_no_error_of_a_worker_to_a_warning_handler_that_throws_too) {
  threads workers(1);
  const throwing_warnings handler;
  struct mishap {};
  const auto fail = [] {
    TORCH_WARN("from a worker");
    throw mishap{};
  };
  BOOST_CHECK_THROW(run_and_meet(workers, {.of_worker = fail, .of_caller = {}}), mishap);
  BOOST_CHECK_THROW(run_and_meet(workers, {.of_worker = [] { TORCH_WARN("from a worker"); }, .of_caller = {}}),
                    throwing_warnings::thrown);
}

// RP-2
BOOST_AUTO_TEST_CASE(call_back_in_the_order_in_which_callbacks_were_queued) {
  threads workers(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> notes;
    const auto queue = [&notes](const std::string& text) {
      return [&notes, text] { troupe::queue_callback([&notes, text] { notes.push_back(text); }); };
    };
    // The caller queues its callback while the worker's function, which has queued before, still runs.
    run_and_meet(workers, {.of_worker = queue("worker"), .of_caller = queue("caller")});
    BOOST_TEST(notes == (std::vector<std::string>{"worker", "caller"}), boost::test_tools::per_element());
  }
}

// RP-2
BOOST_AUTO_TEST_CASE(keep_every_callback_of_functions_that_queue_at_once) {
  threads workers(2);
  const auto x = leaf({1});
  std::atomic<int> queued{0};
  int calls = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 16; ++i) {
      parts.push_back(through(x, [&](at::Tensor gradient) {
        for (int each = 0; each < 100; ++each) {
          ++queued;
          troupe::queue_callback([&] { ++calls; });
        }
        return gradient;
      }));
    }
    troupe::backward({at::stack(parts).sum()}, {}, {.workers = &workers});
  }
  BOOST_TEST(calls == queued);
}

// JB-1
BOOST_AUTO_TEST_CASE(flush_small_numbers_to_zero_where_the_caller_does) {
  threads workers(1);
  const auto is_flushed = [] { return at::full({1}, 1e-30).mul(1e-9).mul(1e8).item<float>() == 0; };
  bool flushed = false;
  at::globalContext().setFlushDenormal(true);
  run_and_meet(workers, {.of_worker = [&] { flushed = is_flushed(); }, .of_caller = {}});
  at::globalContext().setFlushDenormal(false);
  BOOST_TEST(flushed);
  run_and_meet(workers, {.of_worker = [&] { flushed = is_flushed(); }, .of_caller = {}});
  BOOST_TEST(!flushed);
}

// GT-6
// JB-1
BOOST_AUTO_TEST_CASE(compute_with_as_many_threads_as_the_caller) {
  threads workers(1);
  const auto count_of_worker = [&] {
    std::promise<int> count;
    workers.post([&] { count.set_value(at::get_num_threads()); });
    return count.get_future().get();
  };
  const int of_worker = count_of_worker();
  const int of_caller = at::get_num_threads();
  int in_the_pass = 0;
  at::set_num_threads(of_worker + 1);
  run_and_meet(workers, {.of_worker = [&] { in_the_pass = at::get_num_threads(); }, .of_caller = {}});
  at::set_num_threads(of_caller);
  BOOST_TEST(in_the_pass == of_worker + 1);
  BOOST_TEST(count_of_worker() == of_worker);
}

BOOST_AUTO_TEST_CASE(end_grad_mode_that_a_hook_leaves_behind) {
  threads workers(1);
  const auto x = leaf({2});
  const auto z = leaf({2});
  bool recording = true;
  const auto below = through(z, [&](at::Tensor gradient) {
    recording = c10::GradMode::is_enabled();
    return gradient;
  });
  x.register_hook([](const at::Tensor&) { c10::GradMode::set_enabled(true); });
  troupe::grad({(below * x).sum()}, {x, z}, {}, {.workers = &workers});
  BOOST_TEST(!recording);
}

// GT-6
BOOST_AUTO_TEST_CASE(end_autocast_that_a_hook_of_a_captured_input_leaves_behind) {
  threads workers(1);
  const auto x = leaf({2});
  const auto z = leaf({2});
  bool autocast = true;
  const auto below = through(z, [&](at::Tensor gradient) {
    autocast = at::autocast::is_autocast_enabled(at::kCPU);
    return gradient;
  });
  x.register_hook([](const at::Tensor&) { at::autocast::set_autocast_enabled(at::kCPU, true); });
  troupe::grad({(below * x).sum()}, {x, z}, {}, {.workers = &workers});
  BOOST_TEST(!autocast);
}

// GT-6, GT-7
BOOST_AUTO_TEST_CASE(sum_in_the_callers_state_wherever_the_functions_ran) {
  threads workers(1);
  for (int round = 0; round < 3; ++round) {  // in the first round no costs are known: all functions run on this thread
    bool is_inference = true;
    const auto sum = through(leaf({2}), [&](at::Tensor gradient) {
      is_inference = gradient.is_inference();
      return gradient;
    });
    const auto leaves_inference_mode_on = [&] {
      return through(sum, [](at::Tensor gradient) {
        c10::AutogradState::get_tls_state().set_inference_mode(true);
        return gradient;
      });
    };
    troupe::backward({at::stack({leaves_inference_mode_on(), leaves_inference_mode_on()}).sum()}, {}, {.workers = &workers});
    BOOST_TEST(!is_inference);
  }
}

// GT-8
BOOST_AUTO_TEST_CASE(leave_out_what_they_have_no_use_for) {
  struct asks final : torch::autograd::Function<asks> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& a, const at::Tensor& b) { return a + b; }
    static variable_list backward(torch::autograd::AutogradContext* context, variable_list gradients) {
      wanted() += context->needs_input_grad(0) ? 1 : 0;
      return {gradients[0], gradients[0]};
    }
    static std::atomic<int>& wanted() {
      static std::atomic<int> count{0};
      return count;
    }
  };
  threads workers(1);
  const auto a = leaf({4});
  const auto b = leaf({4});
  for (int round = 0; round < 20; ++round) {
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 8; ++i) {
      parts.push_back(asks::apply(a, b * i));
      parts.push_back(at::igamma(a, b * (i + 1)));
    }
    troupe::grad({at::stack(parts).sum()}, {b}, {}, {.workers = &workers});
  }
  BOOST_TEST(asks::wanted() == 0);
}

// GT-4
BOOST_AUTO_TEST_CASE(end_when_they_are_told_to_stop) {
  threads workers(1);
  for (const bool large : {false, true}) {
    workers.busy() = large;
    std::atomic<bool> stop{false};
    const auto x = leaf({2});
    bool ran = false;
    const auto below = through(x, [&](at::Tensor gradient) {
      ran = true;
      return gradient;
    });
    const auto above = through(below, [&](at::Tensor gradient) {
      stop = true;
      return gradient;
    });
    troupe::engine::graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(above)};
    settings.root_gradients = {at::ones({2})};
    settings.workers = &workers;
    troupe::engine::graph_task task(std::move(settings));
    task.run(&stop);
    BOOST_TEST(!ran);
    BOOST_TEST(!x.grad().defined());
  }
}

BOOST_AUTO_TEST_SUITE_END()
