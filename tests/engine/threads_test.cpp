// SPDX-License-Identifier: BSD-3-Clause
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/cpu_workers.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/warning_relay.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "support/forked_child.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(threads_and_processes)

namespace {

constexpr int thread_count = 8;
constexpr int rounds = 50;

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

void on_threads(const std::function<void(int)>& run) {
  std::barrier start(thread_count);
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      run(i);
    });
  }
  for (auto& each : threads) each.join();
}

/// A tensor whose backward pass runs a nested pass, and so on.
at::Tensor nest(const at::Tensor& from, int depth) {
  return through(from, [=](at::Tensor gradient) {
    if (depth > 1) {
      const c10::AutoGradMode recording(true);
      const auto x = leaf({1});
      return gradient + troupe::grad({nest(x, depth - 1).sum()}, {x})[0];
    }
    return gradient;
  });
}

/// Counts posted work and runs none of it.
class no_workers final : public troupe::engine::cpu_workers {
 public:
  no_workers() : cpu_workers(2) {}
  void post(std::function<void()>) override { ++posted; }
  std::atomic<int> posted{0};
};

/// Lets one thread wait for another.
class gate {
 public:
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace

BOOST_AUTO_TEST_CASE(many_threads_run_passes_over_graphs_of_their_own) {
  std::array<std::string, thread_count> differences;
  on_threads([&](int number) {
    for (int round = 0; round < rounds; ++round) {
      const auto x = at::full({4}, number + 1.0).requires_grad_();
      troupe::backward({(x * x).sum() + (x.exp() * 0).sum()});
      differences[number] += difference(x.grad(), at::full({4}, 2 * (number + 1.0)));
    }
  });
  for (const std::string& each : differences) BOOST_TEST(each == "");
}

BOOST_AUTO_TEST_CASE(many_threads_run_passes_over_one_graph_and_no_gradient_is_lost) {
  const auto x = at::ones({4}).requires_grad_();
  const auto middle = (x * 3).exp().log();
  const auto loss = middle.sum();
  std::atomic<int> hooks{0};
  middle.register_hook([&](const at::Tensor&) { ++hooks; });
  on_threads([&](int number) {
    for (int round = 0; round < rounds; ++round)
      number % 2 == 0 ? troupe::backward({loss}, {}, true) : void(troupe::grad({loss}, {x, middle}, {}, true));
  });
  BOOST_TEST(at::allclose(x.grad(), at::full({4}, 3.0 * thread_count / 2 * rounds)));
  BOOST_TEST(hooks == thread_count * rounds);
}

BOOST_AUTO_TEST_CASE(of_threads_that_share_a_graph_that_is_not_kept_each_gets_gradients_or_libtorchs_error) {
  for (int round = 0; round < rounds; ++round) {
    const auto x = at::ones({4}).requires_grad_();
    const auto loss = x.exp().exp().exp().sum();
    std::atomic<int> done{0};
    std::atomic<int> refused{0};
    std::atomic<int> other{0};
    on_threads([&](int) {
      try {
        troupe::backward({loss});
        ++done;
      } catch (const c10::Error& error) {
        ++(std::string(error.what()).find("a second time") != std::string::npos ? refused : other);
      }
    });
    BOOST_TEST(other == 0);
    BOOST_TEST(done >= 1);
    BOOST_TEST(done + refused == thread_count);
  }
}

BOOST_AUTO_TEST_CASE(passes_of_different_threads_do_not_see_each_other) {
  std::array<bool, thread_count> alone{};
  on_threads([&](int number) {
    bool own = true;
    int calls = 0;
    const auto y = through(leaf({1}), [&](at::Tensor gradient) {
      own = own && troupe::current_pass_functions().size() == static_cast<std::size_t>(number % 2 + 3);
      troupe::queue_callback([&] { ++calls; });
      return gradient;
    });
    const auto loss = number % 2 == 0 ? y.sum() : y.exp().sum();
    for (int round = 0; round < rounds; ++round) troupe::backward({loss}, {}, true);
    alone[number] = own && calls == rounds && troupe::current_pass_id() == -1;
  });
  for (const bool each : alone) BOOST_TEST(each);
}

BOOST_AUTO_TEST_CASE(a_forked_child_runs_passes_after_its_parent_ran_deep_ones) {
  const auto x = leaf({1});
  troupe::backward({nest(x, 200).sum()});
  BOOST_TEST(x.grad().item<float>() == 200);
  const int status = status_of_child([] {
    const auto y = leaf({1});
    troupe::backward({nest(y, 200).sum()});
    return y.grad().item<float>() == 200 ? 0 : 1;
  });
  BOOST_TEST(status == 0);
}

// LT-3
BOOST_AUTO_TEST_CASE(a_forked_child_runs_trimmed_passes_after_its_parent_had_threads_of_libtorchs_engine) {
  const std::function<at::Tensor(const at::Tensor&, int)> nest_in_libtorchs = [&](const at::Tensor& from, int depth) {
    return through(from, [&, depth](at::Tensor gradient) {
      const c10::AutoGradMode recording(true);
      if (depth > 1) torch::autograd::backward({nest_in_libtorchs(leaf({1}), depth - 1).sum()});
      return gradient;
    });
  };
  torch::autograd::backward({nest_in_libtorchs(leaf({1}), 70).sum()});
  const int status = status_of_child([] {
    const auto x = leaf({2});
    const auto z = leaf({2});
    if (error_of([&] { torch::autograd::backward({(x * z).sum()}); }) == "none") return 2;  // not the case to test
    return troupe::grad({(x * z).sum()}, {x})[0].equal(z) ? 0 : 1;
  });
  BOOST_TEST(status == 0);
}

// EW-3
BOOST_AUTO_TEST_CASE(a_forked_child_is_told_that_the_workers_stayed_behind) {
  no_workers workers;
  const auto x = leaf({1});
  const auto loss = (x.exp() * x).sum();
  troupe::backward({loss}, {}, troupe::pass_options{.keep_graph = true, .workers = &workers});
  const int status = status_of_child([&] {
    const std::string text =
      error_of([&] { troupe::backward({loss}, {}, troupe::pass_options{.keep_graph = true, .workers = &workers}); });
    troupe::backward({loss});
    return text.find("this process was forked from process") != std::string::npos ? 0 : 1;
  });
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_child_forked_by_a_function_can_end_the_pass) {
  pid_t child = -1;
  const auto x = leaf({1});
  const auto y = through(x, [&](at::Tensor gradient) {
    child = fork();
    return gradient;
  });
  troupe::backward({y.sum()});
  const bool right = x.grad().item<float>() == 1 && troupe::current_pass_id() == -1;
  if (child == 0) _exit(right ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_TEST(right);
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

BOOST_AUTO_TEST_CASE(a_process_ends_while_another_thread_runs_a_pass) {
  const int status = status_of_child([] {
    // Never destroyed, because a thread still waits when the process ends.
    auto& running = *new gate;
    auto& never = *new gate;
    std::thread([&] {
      const auto y = through(leaf({1}), [&](at::Tensor gradient) {
        running.open();
        never.wait();
        return gradient;
      });
      troupe::backward({nest(y, 1).sum()});
    }).detach();
    running.wait();
    std::exit(0);
    return 1;
  });
  BOOST_TEST(status == 0);
}

// GT-4
BOOST_AUTO_TEST_CASE(a_pass_that_is_told_to_stop_runs_no_other_function) {
  std::atomic<bool> stop{false};
  gate running;
  gate stopped;
  bool ran_on = false;
  const auto below = through(leaf({1}), [&](at::Tensor gradient) {
    ran_on = true;
    return gradient;
  });
  const auto y = through(below, [&](at::Tensor gradient) {
    troupe::queue_callback([&] { ran_on = true; });
    running.open();
    stopped.wait();
    return gradient;
  });
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(y)};
  settings.root_gradients = {at::ones({1})};
  troupe::engine::graph_task task(std::move(settings));
  std::thread worker([&] { task.run(&stop); });
  running.wait();
  stop = true;
  stopped.open();
  worker.join();
  BOOST_TEST(!ran_on);
  BOOST_TEST(task.finished());
}

BOOST_AUTO_TEST_CASE(a_task_that_goes_on_at_another_thread_has_the_state_of_the_first) {
  bool multithreading = true;
  bool forward_mode = true;
  const auto y = through(leaf({1}), [&](at::Tensor gradient) {
    multithreading = c10::AutogradState::get_tls_state().get_multithreading_enabled();
    forward_mode = c10::AutogradState::get_tls_state().get_fw_grad_mode();
    return gradient;
  });
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(y)};
  settings.root_gradients = {at::ones({1})};
  auto& here = c10::AutogradState::get_tls_state();
  here.set_multithreading_enabled(false);
  here.set_fw_grad_mode(false);
  troupe::engine::graph_task task(std::move(settings));
  here.set_multithreading_enabled(true);
  here.set_fw_grad_mode(true);
  std::thread([&] { task.run(); }).join();
  BOOST_TEST(!multithreading);
  BOOST_TEST(!forward_mode);
}

BOOST_AUTO_TEST_CASE(warnings_of_another_thread_are_replayed_on_the_callers) {
  const collected_warnings warnings;
  troupe::engine::warning_relay relay;
  const auto y = through(leaf({1}), [&](at::Tensor gradient) {
    TORCH_WARN("from the worker");
    return gradient;
  });
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(y)};
  settings.root_gradients = {at::ones({1})};
  settings.warnings = &relay;
  troupe::engine::graph_task task(std::move(settings));
  std::thread([&] { task.run(); }).join();
  BOOST_TEST(warnings.texts.empty());
  relay.replay();
  relay.replay();
  BOOST_TEST(warnings.texts == std::vector<std::string>{"from the worker"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(with_multithreading_disabled_a_pass_stays_on_its_thread) {
  const auto here = std::this_thread::get_id();
  bool stayed = true;
  const auto y = through(leaf({1}), [&](at::Tensor gradient) {
    stayed = stayed && std::this_thread::get_id() == here;
    return gradient;
  });
  no_workers workers;
  const auto loss = (y.exp() * y.sin() + y.cos()).sum();
  const auto pass = [&] {
    for (int round = 0; round < 3; ++round)  // costs are known after the first round
      troupe::backward({loss}, {}, troupe::pass_options{.keep_graph = true, .workers = &workers});
  };
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  pass();
  c10::AutogradState::get_tls_state().set_multithreading_enabled(true);
  BOOST_TEST(stayed);
  BOOST_TEST(workers.posted == 0);
  pass();
  BOOST_TEST(workers.posted > 0);
}

BOOST_AUTO_TEST_SUITE_END()
