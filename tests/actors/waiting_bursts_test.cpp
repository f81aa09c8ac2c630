// SPDX-License-Identifier: BSD-3-Clause
// Hooks that wait for a call whose pass comes back to their node.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/engine/backward.hpp>
#include <troupe/troupe.hpp>

using namespace std::chrono_literals;

namespace {

/// Nodes "a" and "b". Each has two functions: "hooked" doubles its argument, with a hook that calls "nested" of the other node if `depth`
/// is above 0; "nested" runs a pass of its own through "hooked" of the other node, one less deep.
struct nest {
  explicit nest(std::size_t pass_workers) : a(named("a", pass_workers)), b(named("b", pass_workers)) {
    b.join("127.0.0.1", a.port());
    add_functions(a, "b");
    add_functions(b, "a");
  }

  static troupe::settings named(std::string name, std::size_t pass_workers) {
    troupe::settings result;
    result.name = std::move(name);
    result.deadline = 60s;
    result.short_work = 0us;  // all bursts go to the threads for bursts
    result.workers = 64;
    result.pass_workers = pass_workers;
    return result;
  }

  void add_functions(troupe::node& here, const std::string& other) {
    here.functions().add("hooked", [this, &here, other](troupe::call_arguments& arguments) {
      const auto depth = troupe::get<std::int64_t>(arguments.values, "depth");
      auto y = arguments.tensors.at(0) * 2;
      if (depth > 0)
        y.register_hook([&here, other, depth, local = local_passes](const at::Tensor& gradient) {
          within_passes(local, [&] { here.peer(other).call("nested", {}, {{"depth", depth - 1}}).get(); });
          return gradient;
        });
      return troupe::call_reply{{y}};
    });
    here.functions().add("nested", [&here, other](troupe::call_arguments& arguments) {
      run(here, other, troupe::get<std::int64_t>(arguments.values, "depth"));
      return troupe::call_reply{};
    });
  }

  /// Runs `what` in a hook of the innermost of so many passes of this process, each in a hook of another one.
  static void within_passes(int count, const std::function<void()>& what) {
    if (count == 0) return what();
    const c10::AutoGradMode recording(true);
    auto y = torch::ones({1}, torch::requires_grad()) * 2;
    y.register_hook([&](const at::Tensor& gradient) {
      within_passes(count - 1, what);
      return gradient;
    });
    troupe::backward({y.sum()});
  }

  /// A pass through "hooked" of the other node, in a context of its own. The context is made on another thread: the calling thread may run a
  /// call that is in a context already.
  static void run(troupe::node& here, const std::string& other, std::int64_t depth) {
    std::optional<troupe::context> pass;
    const auto x = torch::ones({2}, torch::requires_grad());
    at::Tensor y;
    std::async(std::launch::async, [&] {
      pass.emplace(here);
      y = here.peer(other).call("hooked", {x}, {{"depth", depth}}).get().tensor(0).sum();
    }).get();
    pass->backward({y}).get();
    if (!at::equal(pass->gradient(x), torch::full({2}, 2.0))) throw std::runtime_error("the gradient is wrong");
  }

  int local_passes = 0;  // around each call of a hook
  troupe::node a;
  troupe::node b;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(waiting_bursts)

// BT-2
BOOST_DATA_TEST_CASE(a_hook_may_wait_for_a_call_whose_pass_comes_back, (std::vector<std::size_t>{0, 2}), pass_workers) {
  nest play(pass_workers);
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    nest::run(play.a, "b", 1);
    best = std::min(best, std::chrono::steady_clock::now() - begin);
  }
  BOOST_TEST_MESSAGE("a hook that waits for a call whose pass comes back: "
                     << std::chrono::duration_cast<std::chrono::microseconds>(best).count() << " us");
  BOOST_TEST((best < 2s), std::chrono::duration_cast<std::chrono::microseconds>(best).count() << " us");
}

// BT-2, SR-1: the hook waits on another thread than that of the burst.
BOOST_AUTO_TEST_CASE(a_hook_of_deeply_nested_passes_may_wait_too) {
  nest play(0);
  play.local_passes = 100;
  nest::run(play.a, "b", 1);
}

// BT-2
BOOST_DATA_TEST_CASE(programs_that_are_nested_at_random_end, (std::vector<std::size_t>{0, 2}), pass_workers) {
  constexpr int programs = 500;
  nest play(pass_workers);
  std::atomic<int> next{0};
  std::vector<std::future<void>> all;
  for (int thread = 0; thread < 8; ++thread)
    all.push_back(std::async(std::launch::async, [&] {
      for (int i = next++; i < programs; i = next++)
        i % 2 == 0 ? nest::run(play.a, "b", i * 7 % 5) : nest::run(play.b, "a", i * 7 % 5);
    }));
  for (auto& each : all) each.get();
}

BOOST_AUTO_TEST_SUITE_END()
