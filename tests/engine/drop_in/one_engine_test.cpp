// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "support/forked_child.hpp"
#include "support/simulated_accelerator.hpp"

// libtorch starts the threads of an engine once per process, for the engine that asks first. So each test runs in a child
// process of its own, forked from a process in which no pass has run.

using namespace troupe::test;
using torch::autograd::Engine;

namespace {

/// A default engine that is not libtorch's base engine, as Python has one.
struct other_engine final : Engine {
  other_engine() = default;
  void thread_on_exception(const std::shared_ptr<torch::autograd::GraphTask>& task,
                           const troupe::engine::node_pointer& function, std::exception& error) override {
    ++errors;
    Engine::thread_on_exception(task, function, error);
  }
#if TROUPE_TORCH_HAS_CREATION_HOOKS
  std::vector<std::unique_ptr<torch::autograd::NodeCreationHook>> get_node_creation_hooks() override {
    ++asked_for_hooks;
    return {};
  }
#endif
  void thread_init(int device, const std::shared_ptr<torch::autograd::ReadyQueue>& queue, bool should_increment) override {
    ++threads;
    Engine::thread_init(device, queue, should_increment);
  }
  std::atomic<int> errors{0};
  std::atomic<int> threads{0};
  std::atomic<int> asked_for_hooks{0};

  static other_engine& instance() {
    static auto* const one = new other_engine;  // never destroyed: its threads run until the process ends
    return *one;
  }
  static Engine& stub() { return instance(); }
};

/// Access to hidden members of an engine.
struct hidden : Engine {
  static const auto& queues(Engine& engine) { return engine.*(&hidden::device_ready_queues_); }
  static const auto& pool(Engine& engine) { return engine.*(&hidden::thread_pool_shared_); }
};

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

bool accelerator_pass_is_right() {
  const auto x = leaf();
  torch::autograd::backward({((x * 2).to(simulated::device()) * 3).sum().cpu()});
  return at::equal(x.grad(), at::full({2}, 6.0F));
}

bool trimmed_pass_is_right() {
  const auto x = leaf();
  const auto z = leaf();
  return at::equal(troupe::grad({(x * z).sum()}, {x})[0], z);
}

using slope_function = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, int)>;

at::Tensor troupes_slope(const at::Tensor& root, const at::Tensor& x) { return troupe::grad({root}, {x})[0]; }
at::Tensor libtorchs_slope(const at::Tensor& root, const at::Tensor& x) { return torch::autograd::grad({root}, {x})[0]; }

/// Nested passes, deeper than libtorch's engine runs on one thread.
bool deep_passes_are_right(const slope_function& slope) {
  constexpr int depth = 150;
  const std::function<at::Tensor(const at::Tensor&, int)> nest = [&](const at::Tensor& from, int level) {
    return through(from, [&, level](at::Tensor gradient) {
      if (level == depth) return gradient;
      const c10::AutoGradMode recording(true);
      const auto x = leaf();
      return gradient + slope((nest(x, level + 1) * leaf()).sum(), x, level);
    });
  };
  const auto x = leaf();
  return at::equal(slope((nest(x, 1) * leaf()).sum(), x, 0), at::full({2}, float{depth}));
}

bool deep_passes_of_libtorchs_are_right() {
  return deep_passes_are_right([](const at::Tensor& root, const at::Tensor& x, int) { return libtorchs_slope(root, x); });
}

/// Deep nested passes of libtorch's and troupe's functions in turn. The pass at which libtorch continues on another thread is
/// of either kind.
bool deep_trimmed_passes_are_right() {
  const auto with_troupes = [](int every) {
    return deep_passes_are_right([every](const at::Tensor& root, const at::Tensor& x, int level) {
      return level % every == 0 ? troupes_slope(root, x) : libtorchs_slope(root, x);
    });
  };
  return with_troupes(1) && with_troupes(2) && with_troupes(3) && with_troupes(5);
}

bool share_threads(Engine& one, Engine& other) {
  return hidden::pool(one) != nullptr && hidden::pool(one) == hidden::pool(other) && !hidden::queues(one).empty() &&
         hidden::queues(one) == hidden::queues(other);
}

/// Whether each thread of the devices comes to this engine. A thread comes soon after its start: the start waits only until troupe's
/// engine, which hands the thread on, has counted the thread.
bool all_threads_reach(const other_engine& engine) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (engine.threads < simulated::device_count() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return engine.threads == simulated::device_count();
}

int first_failure(const std::vector<bool>& right) {
  return static_cast<int>(std::find(right.begin(), right.end(), false) - right.begin());
}

// Runs a function in a forked child. The function (the last argument) returns one bool for each check. The test fails unless
// the function returns `count` checks and all of them are true.
#define TROUPE_TEST_IN_CHILD(count, ...)                                   \
  BOOST_TEST(status_of_child([&] {                                         \
               const std::vector<bool> right = __VA_ARGS__();              \
               return right.size() == (count) ? first_failure(right) : 97; \
             }) == (count))

}  // namespace

BOOST_AUTO_TEST_SUITE(drop_in_one_engine)

// LT-5
BOOST_AUTO_TEST_CASE(a_trimmed_pass_goes_deep_where_libtorch_has_another_default_engine) {
  TROUPE_TEST_IN_CHILD(2, [] {
    torch::autograd::set_default_engine_stub(other_engine::stub);
    const auto x = leaf();
    torch::autograd::backward({x.exp().sum()});
    return std::vector<bool>{deep_trimmed_passes_are_right(), deep_passes_of_libtorchs_are_right()};
  });
}

// LT-5
BOOST_AUTO_TEST_CASE(a_trimmed_pass_leaves_the_threads_to_libtorchs_default_engine) {
  TROUPE_TEST_IN_CHILD(4, [] {
    simulated::install();
    torch::autograd::set_default_engine_stub(other_engine::stub);
    return std::vector<bool>{trimmed_pass_is_right(), accelerator_pass_is_right(), deep_trimmed_passes_are_right(),
                             deep_passes_of_libtorchs_are_right()};
  });
}

// IE-1
BOOST_AUTO_TEST_CASE(an_installed_engine_has_the_threads_of_libtorchs_once_a_pass_ran) {
  for (const bool passes_before : {false, true}) {
    TROUPE_TEST_IN_CHILD(4, [passes_before] {
      simulated::install();
      auto& libtorchs = Engine::get_default_engine();
      const bool before = !passes_before || accelerator_pass_is_right();
      troupe::install_engine();
      const bool after = passes_before || accelerator_pass_is_right();
      return std::vector<bool>{before, after, share_threads(Engine::get_default_engine(), libtorchs),
                               deep_passes_of_libtorchs_are_right()};
    });
  }
}

// IE-1: libtorch's own distributed autograd starts the threads of the default engine in this way.
BOOST_AUTO_TEST_CASE(an_installed_engine_whose_threads_were_started_shares_them_with_libtorchs) {
  for (const bool uninstalls : {false, true}) {
    TROUPE_TEST_IN_CHILD(5, [uninstalls] {
      simulated::install();
      auto& libtorchs = Engine::get_default_engine();
      troupe::install_engine();
      auto& ours = Engine::get_default_engine();
      ours.initialize_device_threads_pool();
      if (uninstalls) troupe::uninstall_engine();
      return std::vector<bool>{accelerator_pass_is_right(), share_threads(ours, libtorchs), trimmed_pass_is_right(),
                               deep_trimmed_passes_are_right(), deep_passes_of_libtorchs_are_right()};
    });
  }
}

// IE-1: Python's engine has to hear of errors, because it records Python's error state.
BOOST_AUTO_TEST_CASE(libtorchs_engine_is_told_of_errors_on_threads_that_were_started_for_an_installed_one) {
  TROUPE_TEST_IN_CHILD(3, [] {
    simulated::install();
    torch::autograd::set_default_engine_stub(other_engine::stub);
    troupe::install_engine();
    Engine::get_default_engine().initialize_device_threads_pool();
    const auto there = leaf().to(simulated::device()) * 2;
    there.register_hook([](const at::Tensor&) { throw std::runtime_error("told to"); });
    const std::string error = error_of([&] { torch::autograd::backward({there.sum().cpu()}); });
    return std::vector<bool>{error == "std: told to", other_engine::instance().errors == 1, accelerator_pass_is_right()};
  });
}

// IE-1: Python's engine has to run these threads, because it gives each thread a Python thread state.
BOOST_AUTO_TEST_CASE(libtorchs_engine_runs_the_threads_that_were_started_for_an_installed_one) {
  TROUPE_TEST_IN_CHILD(4, [] {
    simulated::install();
    auto& libtorchs = other_engine::instance();
    torch::autograd::set_default_engine_stub(other_engine::stub);
    troupe::install_engine();
    Engine::get_default_engine().initialize_device_threads_pool();
    return std::vector<bool>{all_threads_reach(libtorchs), share_threads(Engine::get_default_engine(), libtorchs),
                             accelerator_pass_is_right(), deep_passes_of_libtorchs_are_right()};
  });
}

#if TROUPE_TORCH_HAS_CREATION_HOOKS
// Python's engine has to make these hooks, because they hold Python objects.
BOOST_AUTO_TEST_CASE(libtorchs_engine_gives_the_hooks_of_the_creation_of_functions) {
  TROUPE_TEST_IN_CHILD(1, [] {
    torch::autograd::set_default_engine_stub(other_engine::stub);
    troupe::install_engine();
    at::impl::NodeCreationHooks::push_hook({nullptr, nullptr});
    const auto made = leaf() * 2;
    at::impl::NodeCreationHooks::pop_hook();
    return std::vector<bool>{other_engine::instance().asked_for_hooks > 0};
  });
}
#endif

// IE-2
BOOST_AUTO_TEST_CASE(installing_the_engine_starts_no_thread_so_that_children_can_be_forked) {
  TROUPE_TEST_IN_CHILD(2, [] {
    simulated::install();
    troupe::install_engine();
    const int status = status_of_child([] { return deep_passes_of_libtorchs_are_right() ? 0 : 1; });
    return std::vector<bool>{status == 0, deep_passes_of_libtorchs_are_right()};
  });
}

BOOST_AUTO_TEST_SUITE_END()
