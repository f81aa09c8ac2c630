// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <set>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/running_pass.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"

using namespace troupe::test;
using trace = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(nested_passes)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

/// A tensor whose backward pass runs a nested pass, and so on. `at_level` is called in each pass with its level, from 1.
at::Tensor nest(const way& run_on, const at::Tensor& from, int depth, const std::function<void(int)>& at_level, int level = 1) {
  return through(from, [=, &at_level](at::Tensor gradient) {
    at_level(level);
    if (level == depth) return gradient;
    const c10::AutoGradMode recording(true);
    const auto x = leaf({1});
    const auto inner = run_on.grad({nest(run_on, x, depth, at_level, level + 1).sum()}, {x})[0];
    at_level(-level);
    return gradient + inner;
  });
}

}  // namespace

// GT-5
BOOST_AUTO_TEST_CASE(nest_five_thousand_deep) {
  const auto x = leaf({1});
  int deepest = 0;
  std::set<std::thread::id> threads;
  troupe::backward({nest(way(true), x, 5000, [&](int level) {
                      deepest = std::max(deepest, level);
                      threads.insert(std::this_thread::get_id());
                    }).sum()});
  BOOST_TEST(deepest == 5000);
  BOOST_TEST(x.grad().item<float>() == 5000);
  BOOST_TEST(threads.size() > 5000u / troupe::engine::most_passes_on_a_stack / 2);  // the system may use thread ids again
  BOOST_TEST(troupe::current_pass_id() == -1);
}

// A thread that waits for a nested pass may run a function of another pass: the passes that wait are still on its stack.
BOOST_AUTO_TEST_CASE(count_on_the_stack_whatever_pass_the_thread_works_for) {  // GT-5
  using troupe::engine::running_pass;
  const auto x = leaf({1});
  std::uint32_t for_another = 0;
  bool is_again = false;
  troupe::backward({nest(way(true), x, 2, [&](int level) {
                      if (level != 2) return;
                      auto* const here = running_pass::innermost();
                      {
                        const troupe::engine::same_passes another(nullptr, nullptr);
                        for_another = running_pass::depth_of_stack();
                      }
                      is_again = running_pass::innermost() == here && running_pass::depth_of_stack() == for_another;
                    }).sum()});
  BOOST_TEST(for_another == 2u);
  BOOST_TEST(is_again);
}

BOOST_AUTO_TEST_CASE(nest_as_deep_from_hooks) {
  const auto x = leaf({1});
  int level = 0;
  int deepest = 0;
  const std::function<void()> pass = [&] {
    const c10::AutoGradMode recording(true);
    const auto y = x * 1;
    y.register_hook([&](const at::Tensor&) {
      deepest = std::max(deepest, ++level);
      if (level < 1000) pass();
    });
    troupe::backward({y.sum()});
  };
  pass();
  BOOST_TEST(deepest == 1000);
  BOOST_TEST(x.grad().item<float>() == 1000);
}

BOOST_AUTO_TEST_CASE(run_in_libtorchs_order_and_leave_libtorchs_gradients) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = at::arange(1, 4, at::kFloat).requires_grad_();
    const auto extra = (x * 5).sum();
    const auto y = x * 2;
    const auto z = y.exp();
    y.register_hook([&](const at::Tensor& gradient) {
      notes.emplace_back("hook of y");
      run_on.backward({extra}, {}, true);
      return gradient * 3;
    });
    z.register_hook([&](const at::Tensor&) {
      notes.emplace_back("hook of z");
      notes.push_back(text_of(run_on.grad({(x * x * x).sum().requires_grad_(), extra}, {x}, {}, true)[0]));
    });
    x.register_hook([&](const at::Tensor& gradient) { notes.push_back("leaf " + text_of(gradient)); });
    run_on.backward({z.sum() + y.sin().sum()});
    notes.push_back(text_of(x.grad()));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 7);
}

BOOST_AUTO_TEST_CASE(run_also_from_a_hook_that_follows_the_accumulation_into_the_same_leaf) {
  struct again final : torch::autograd::PostAccumulateGradHook {
    explicit again(std::function<void()> call) : call(std::move(call)) {}
    void operator()(const at::Tensor&) override { call(); }
    std::function<void()> call;
  };
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({1});
    const auto extra = (x * 5).sum();
    int level = 0;
    torch::autograd::impl::set_post_acc_grad_hooks(x, std::make_unique<again>([&] {
                                                     notes.push_back(text_of(x.grad()));
                                                     if (++level < 4) run_on.backward({extra}, {}, true);
                                                   }));
    run_on.backward({(x * 2).sum()});
    notes.push_back(text_of(x.grad()));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 5);
}

BOOST_AUTO_TEST_CASE(say_whether_checkpoints_are_valid_as_libtorch_does) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto ask = [&](const std::string& where) {
      notes.push_back(where + (run_on.is_checkpoint_valid() ? ": valid" : ": not valid"));
    };
    const auto x = leaf({2});
    const auto inner = through(x, [&](at::Tensor gradient) {
                         ask("inner");
                         return gradient;
                       }).sum();
    const auto outer = through(x, [&](at::Tensor gradient) {
                         ask("before");
                         run_on.backward({inner}, {}, true);
                         run_on.grad({inner}, {x}, {}, true);
                         run_on.backward({inner}, {}, true, false, {x});
                         ask("after");
                         return gradient;
                       }).sum();
    ask("outside");
    run_on.backward({outer}, {}, true);
    run_on.grad({outer}, {x}, {}, true);
    run_on.backward({outer}, {}, true, false, {x});
    ask("outside");
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 17);
}

// LT-1, LT-2
BOOST_AUTO_TEST_CASE(nest_deep_also_where_some_outputs_are_left_out) {
  const std::function<at::Tensor(const at::Tensor&, int, bool)> nest_trimmed = [&](const at::Tensor& from, int depth,
                                                                                   bool fails) {
    return through(from, [&, depth, fails](at::Tensor gradient) {
      if (depth == 1) {
        if (fails) throw 42;
        BOOST_TEST(!troupe::is_checkpoint_valid());
        return gradient;
      }
      const c10::AutoGradMode recording(true);
      const auto x = leaf({1});
      const auto z = leaf({1});
      return gradient + troupe::grad({(nest_trimmed(x, depth - 1, fails) * z).sum()}, {x})[0];
    });
  };
  const auto x = leaf({1});
  troupe::backward({nest_trimmed(x, 300, false)}, {at::ones({1})});
  BOOST_TEST(x.grad().item<float>() == 300);
  BOOST_CHECK_THROW(troupe::backward({nest_trimmed(x, 300, true)}, {at::ones({1})}), int);
  BOOST_TEST(x.grad().item<float>() == 300);
  BOOST_TEST(troupe::current_pass_id() == -1);
}

// FS-1, FS-2
BOOST_AUTO_TEST_CASE(find_on_a_fresh_stack_the_state_of_the_caller) {
  collected_warnings warnings;
  const auto here = std::this_thread::get_id();
  std::thread::id there;
  std::int64_t id = -1;
  std::int64_t id_there = -2;
  std::string function;
  bool grad_mode = false;
  const auto y = through(leaf({1}), [&](at::Tensor gradient) {
    id = troupe::current_pass_id();
    const c10::AutoGradMode on(true);
    troupe::engine::on_fresh_stack([&] {
      there = std::this_thread::get_id();
      id_there = troupe::current_pass_id();
      function = troupe::current_function()->name();
      grad_mode = c10::GradMode::is_enabled();
      TORCH_WARN("from far away");
    });
    BOOST_CHECK_THROW(troupe::engine::on_fresh_stack([] { throw 7; }), int);
    return gradient;
  });
  troupe::backward({y.sum()});
  BOOST_TEST((there != here));
  BOOST_TEST(id_there == id);
  BOOST_TEST(function == "through");
  BOOST_TEST(grad_mode);
  BOOST_TEST(warnings.texts == trace{"from far away"}, boost::test_tools::per_element());
}

// FS-2
BOOST_AUTO_TEST_CASE(lose_no_error_of_a_fresh_stack_to_a_warning_handler_that_throws_too) {
  const throwing_warnings handler;
  BOOST_CHECK_THROW(troupe::engine::on_fresh_stack([] {
                      TORCH_WARN("before the error");
                      throw 7;
                    }),
                    int);
  BOOST_CHECK_THROW(troupe::engine::on_fresh_stack([] { TORCH_WARN("alone"); }), throwing_warnings::thrown);
}

BOOST_AUTO_TEST_CASE(pass_warnings_and_errors_up_from_the_deepest_one) {
  const auto run = [](const way& run_on) {
    collected_warnings warnings;
    const auto x = leaf({1});
    const std::function<void(int)> at_level = [](int level) {
      if (level == 100 || level == -150 || level == -90) TORCH_WARN("at level ", level);
      if (level == 150) throw std::runtime_error("at the bottom");
    };
    const auto y = nest(run_on, x, 150, at_level);
    warnings.texts.push_back(error_of([&] { run_on.backward({y.sum()}); }));
    return warnings.texts;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

BOOST_AUTO_TEST_CASE(nest_deep_on_several_threads_at_once) {
  constexpr std::size_t count = 4;
  std::vector<float> results(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&results, i] {
      const auto x = leaf({1});
      troupe::backward({nest(way(true), x, 300, [](int) {}).sum()});
      results[i] = x.grad().item<float>();
    });
  }
  for (auto& each : threads) each.join();
  BOOST_TEST(results == std::vector<float>(count, 300.0F), boost::test_tools::per_element());
}

// GT-8
BOOST_AUTO_TEST_CASE(compute_all_within_one_that_leaves_something_out) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto z = leaf({2});
    const auto y = through(x, [&](at::Tensor gradient) {
      const c10::AutoGradMode recording(true);
      const auto v = at::full({2}, 3.0).requires_grad_();
      run_on.backward({(v * v).sum()});
      notes.push_back(text_of(v.grad()));
      notes.push_back(text_of(run_on.grad({v.exp().sum()}, {v})[0]));
      return gradient;
    });
    notes.push_back(text_of(run_on.grad({(y * z).sum()}, {x})[0]));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 3);
}

BOOST_AUTO_TEST_CASE(compute_all_within_one_of_libtorchs_that_leaves_something_out) {
  const auto x = leaf({2});
  const auto z = leaf({2});
  const auto v = at::full({2}, 3.0).requires_grad_();
  const auto y = through(x, [&](at::Tensor gradient) {
    const c10::AutoGradMode recording(true);
    troupe::backward({(v * v).sum()});
    return gradient;
  });
  way(false).grad({(y * z).sum()}, {x});
  BOOST_TEST(v.grad().equal(at::full({2}, 6.0)));
}

// GT-8: igamma() has no gradient for its first argument, and throws if a pass asks for it.
BOOST_AUTO_TEST_CASE(leave_out_what_they_have_no_use_for_at_any_depth) {
  for (const int depth : {1, 58, 59, 60, 61, 62, 130}) {
    std::string error = "not run";
    const std::function<void(int)> at_level = [&](int level) {
      if (level == depth) {
        const c10::AutoGradMode recording(true);
        const auto a = at::full({4}, 1.5).requires_grad_();
        const auto x = at::linspace(0.1, 2, 4).requires_grad_();
        error = error_of([&] { troupe::grad({at::igamma(a, x).sum()}, {x}); });
      }
    };
    troupe::backward({nest(way(true), leaf({1}), depth, at_level).sum()});
    BOOST_TEST(error == "none", "depth " << depth << ": " << error);
  }
}

// FS-1: libtorch's kernels and their libraries ask for the number of threads, which is stored by thread.
BOOST_AUTO_TEST_CASE(find_on_a_fresh_stack_the_callers_number_of_threads) {
  const auto omp_threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  if (omp_threads == nullptr) {
    BOOST_TEST_MESSAGE("libtorch has no OpenMP here");
    return;
  }
  const int before = at::get_num_threads();
  at::set_num_threads(before + 3);
  int there = 0;
  troupe::engine::on_fresh_stack([&] { there = omp_threads(); });
  at::set_num_threads(before);
  BOOST_TEST(there == before + 3);
}

BOOST_AUTO_TEST_SUITE_END()
