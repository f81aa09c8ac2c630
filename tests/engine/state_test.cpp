// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <set>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"

using namespace troupe::test;
using trace = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(state_of_a_pass)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

/// A tensor whose function calls `what` when it runs.
at::Tensor noting(const at::Tensor& from, std::function<void()> what, std::string name = "noting") {
  return through(
    from,
    [what = std::move(what)](at::Tensor gradient) {
      what();
      return gradient;
    },
    std::move(name));
}

std::string grad_mode() { return c10::GradMode::is_enabled() ? "grad mode" : "no grad mode"; }

/// While an object of this class lives, names() collects what record functions report on this thread: when a function begins,
/// its name, scope and sequence number (counted from the object's construction); when it ends, its name.
class recorded {
 public:
  recorded() {
    names().clear();
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& event) -> std::unique_ptr<at::ObserverContext> {
        names().push_back(std::string(event.name()) + " " + std::to_string(static_cast<int>(event.scope())) + " " +
                          std::to_string(event.seqNr() < 0 ? -1 : event.seqNr() - first()));
        return nullptr;
      },
      [](const at::RecordFunction& event, at::ObserverContext*) { names().push_back(std::string("end of ") + event.name()); }));
    first() = static_cast<std::int64_t>(at::sequence_number::peek());
  }
  ~recorded() { at::removeCallback(handle_); }
  recorded(const recorded&) = delete;
  recorded& operator=(const recorded&) = delete;

  static trace& names() {
    static trace all;
    return all;
  }

 private:
  static std::int64_t& first() {
    static std::int64_t number = 0;
    return number;
  }
  at::CallbackHandle handle_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(final_callbacks_run_in_order_at_the_end_also_those_of_callbacks) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto note = [&](const std::string& text) { return [&notes, text] { notes.push_back(text + ", " + grad_mode()); }; };
    const auto inner = noting(leaf({2}), [&] { run_on.queue_callback(note("inner")); }).sum();
    const auto y = noting(x, [&] {
      run_on.queue_callback([&] {
        notes.push_back("first, in a pass: " + std::to_string(run_on.is_in_a_pass()) + ", in " + run_on.current_function());
        run_on.queue_callback(note("queued by the first"));
      });
      run_on.backward({inner}, {}, true);
      notes.emplace_back("after inner");
      run_on.queue_callback(note("second"));
    });
    x.register_hook([&](const at::Tensor&) { notes.emplace_back("leaf"); });
    run_on.backward({y.sum()}, {}, true);
    notes.push_back(text_of(x.grad()));
    run_on.grad({y.sum()}, {x}, {}, true, true);
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 13);
}

BOOST_AUTO_TEST_CASE(what_a_final_callback_throws_comes_out_of_the_pass) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto y = noting(x, [&] {
      run_on.queue_callback([] { throw std::runtime_error("too late"); });
      run_on.queue_callback([&] { notes.emplace_back("the next one"); });
    });
    notes.push_back(error_of([&] { run_on.backward({y.sum()}); }));
    notes.push_back(text_of(x.grad()));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

BOOST_AUTO_TEST_CASE(no_callback_runs_after_an_error_and_none_can_be_queued_outside) {
  trace notes;
  const auto x = leaf({2});
  const auto y = noting(x, [&] {
    troupe::queue_callback([&] { notes.emplace_back("callback"); });
    throw 1;
  });
  BOOST_CHECK_THROW(troupe::backward({y.sum()}), int);
  BOOST_TEST(notes.empty());
  BOOST_TEST(error_of([] { troupe::queue_callback([] {}); }).find("no backward pass runs on this thread") != std::string::npos);
}

// LT-1, LT-4
BOOST_AUTO_TEST_CASE(no_callback_of_libtorchs_runs_after_a_trimmed_pass_that_failed) {
  struct no_std_exception {};
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto z = leaf({2});
    const auto pass = [&](const std::string& name, const std::function<void()>& end) {
      const auto y = noting(x * z, [&] {
        torch::autograd::Engine::get_default_engine().queue_callback(
          [&notes, name] { notes.push_back("callback of " + name); });
        end();
      });
      notes.push_back(name + ": " + error_of([&] { run_on.grad({y.sum()}, {x}); }));
    };
    pass("one that succeeds", [] {});
    pass("one that fails", [] { throw std::runtime_error("told to"); });
    if (run_on.is_troupes()) {
      pass("another", [] { throw no_std_exception{}; });
      BOOST_TEST(notes.back() == "another: no std::exception");
      notes.pop_back();
    }
    pass("the next", [] {});
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 5);
}

// LT-4
BOOST_AUTO_TEST_CASE(no_callback_of_libtorchs_runs_after_a_trimmed_pass_that_was_told_to_stop) {
  std::atomic<bool> stop{false};
  int calls = 0;
  bool ran_on = false;
  const auto x = leaf({2});
  const auto below = noting(x, [&] { ran_on = true; });
  const auto y = noting(below * leaf({2}), [&] {
    torch::autograd::Engine::get_default_engine().queue_callback([&] { ++calls; });
    stop = true;
  });
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(y)};
  settings.root_gradients = {at::ones({2})};
  settings.inputs = {torch::autograd::impl::gradient_edge(x)};
  settings.capture = true;
  troupe::engine::graph_task task(std::move(settings));
  task.run(&stop);
  BOOST_TEST(!ran_on);
  BOOST_TEST(calls == 0);
}

// LT-4
BOOST_AUTO_TEST_CASE(callbacks_of_libtorchs_run_when_a_distributed_trimmed_pass_is_over_and_not_where_it_fails) {
  for (const bool fails : {false, true}) {
    trace notes;
    const auto x = leaf({2});
    const auto note = [&](const std::string& text) {
      return [&notes, text] {
        torch::autograd::Engine::get_default_engine().queue_callback([&notes, text] { notes.push_back(text); });
      };
    };
    const auto y = noting(x * leaf({2}), note("of the first stretch"));  // leaves out an output
    const auto sent = noting(x * leaf({2}), [&] {
      note("of the second stretch")();
      TORCH_CHECK(!fails, "told to");
    });
    troupe::engine::graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(y)};
    settings.root_gradients = {at::ones({2})};
    settings.sends = {{troupe::engine::attach_send({1, {1}}, {sent}), 1}};
    settings.inputs = {torch::autograd::impl::gradient_edge(x)};
    settings.capture = true;
    troupe::engine::graph_task task(std::move(settings));
    task.run();
    BOOST_TEST(!task.finished());
    BOOST_TEST(notes.empty());
    task.deliver(0, {at::ones({2})});
    BOOST_TEST((error_of([&] { task.run(); }) == "none") == !fails);
    const trace expected = fails ? trace{} : trace{"of the first stretch", "of the second stretch"};
    BOOST_TEST(notes == expected, boost::test_tools::per_element());
  }
}

// LT-1
BOOST_AUTO_TEST_CASE(what_a_function_throws_is_not_lost_to_a_warning_handler_that_throws_too) {
  const throwing_warnings handler;
  const auto x = leaf({2});
  const auto y = noting(x * leaf({2}), [] {
    TORCH_WARN("held back until the end");
    throw 7;
  });
  BOOST_CHECK_THROW(troupe::grad({y.sum()}, {x}), int);
  BOOST_CHECK_THROW(troupe::grad({noting(x * leaf({2}), [] { TORCH_WARN("alone"); }).sum()}, {x}), throwing_warnings::thrown);
}

BOOST_AUTO_TEST_CASE(a_distributed_task_calls_back_when_its_last_send_is_settled) {
  int calls = 0;
  const auto x = leaf({2});
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(noting(x, [&] { troupe::queue_callback([&] { ++calls; }); }).sum())};
  settings.root_gradients = {at::ones({})};
  settings.sends = {{troupe::engine::attach_send(troupe::message_id{}, {leaf({2})}), 1}};
  troupe::engine::graph_task task(std::move(settings));
  task.run();
  BOOST_TEST(calls == 0);
  task.drop(0);
  task.run();
  BOOST_TEST(calls == 1);
}

// GT-6
BOOST_AUTO_TEST_CASE(grad_mode_that_a_function_or_hook_leaves_behind_ends_with_it) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto y = noting(noting(x, [&] { notes.push_back("below: " + grad_mode()); }), [&] {
      notes.push_back(grad_mode());
      c10::GradMode::set_enabled(true);
    });
    y.register_hook([&](const at::Tensor&) { notes.push_back("hook: " + grad_mode()); });
    x.register_hook([&](const at::Tensor&) { c10::GradMode::set_enabled(true); });
    const c10::AutoGradMode outside(true);
    run_on.backward({y.sum()}, {}, true);
    const c10::AutoGradMode off(false);
    run_on.backward({y.sum().detach().requires_grad_()}, {at::ones({})}, true);
    notes.push_back("after: " + grad_mode());
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 4);
}

BOOST_AUTO_TEST_CASE(a_function_sees_the_thread_local_state_of_the_caller) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto y = noting(leaf({2}), [&] {
      notes.push_back(std::to_string(c10::AutogradState::get_tls_state().get_fw_grad_mode()) +
                      std::to_string(c10::AutogradState::get_tls_state().get_multithreading_enabled()));
    });
    const bool before = c10::AutogradState::get_tls_state().get_fw_grad_mode();
    run_on.backward({y.sum()}, {}, true);
    c10::AutogradState::get_tls_state().set_fw_grad_mode(!before);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    run_on.backward({y.sum()}, {}, true);
    c10::AutogradState::get_tls_state().set_fw_grad_mode(before);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(true);
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

BOOST_AUTO_TEST_CASE(warnings_of_functions_reach_the_callers_handler) {
  const auto run = [](const way& run_on) {
    collected_warnings warnings;
    const auto y = noting(noting(leaf({2}), [] { TORCH_WARN("below"); }), [] { TORCH_WARN("above"); });
    run_on.backward({y.sum()});
    return warnings.texts;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

BOOST_AUTO_TEST_CASE(a_function_can_ask_about_its_pass) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto add = [&](const trace& more) { notes.insert(notes.end(), more.begin(), more.end()); };
    const auto x = leaf({2});
    const auto z = leaf({2});
    const auto ask = [&] {
      notes.push_back(std::to_string(run_on.keeps_graph()) + std::to_string(run_on.is_in_a_pass()) +
                      std::to_string(run_on.is_checkpoint_valid()) + run_on.current_function());
      auto names = run_on.functions();
      std::erase(names, "SumBackward0");  // libtorch leaves out a single root
      add(names);
    };
    const auto y = noting(x.exp() * z, ask, "asking");
    notes.push_back(std::to_string(run_on.keeps_graph()) + std::to_string(run_on.is_in_a_pass()) +
                    std::to_string(run_on.is_checkpoint_valid()) + run_on.current_function());
    run_on.backward({y.sum()}, {}, true);
    run_on.grad({y.sum(), x.sum()}, {x}, {}, true);
    run_on.backward({y.sum()}, {}, false, false, {z});
    return notes;
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.libtorch.size() > 15u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_function_can_ask_for_the_order_of_its_pass) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto z = leaf({2});
    const auto y = noting(
      x.exp() * z + x.sin(), [] {}, "top");
    const auto root = noting(
      y.tanh().sum(), [&] { notes = run_on.order(); }, "asking");
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);  // libtorch answers only then
    run_on.backward({root}, {}, true);
    const trace all = notes;
    run_on.grad({root}, {z}, {}, true);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(true);
    notes.insert(notes.begin(), all.begin(), all.end());
    return notes;
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.libtorch.size() > 12u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_order_can_be_asked_for_at_any_time) {
  trace asked_early;
  trace asked_late;
  const auto x = leaf({2});
  const auto names = [](trace& into) {
    for (const auto* each : troupe::current_pass_order()) into.push_back(each->name());
  };
  const auto y = noting(
    noting(
      x, [&] { names(asked_late); }, "late")
        .exp() *
      x,
    [&] { names(asked_early); }, "early");
  troupe::backward({y.sum()});
  BOOST_TEST(asked_late == asked_early, boost::test_tools::per_element());
  BOOST_TEST(asked_early.size() == 6u);
}

BOOST_AUTO_TEST_CASE(passes_have_numbers_of_their_own) {
  std::set<std::int64_t> numbers;
  std::int64_t outer_again = -1;
  const auto ask = [&] { numbers.insert(troupe::current_pass_id()); };
  const auto inner = noting(leaf({1}), ask).sum();
  const auto y = noting(leaf({1}), [&] {
    ask();
    troupe::backward({inner}, {}, true);
    outer_again = troupe::current_pass_id();
    ask();
  });
  troupe::backward({y.sum()});
  troupe::backward({inner});
  BOOST_TEST(numbers.size() == 3u);
  BOOST_TEST(numbers.contains(outer_again));
  BOOST_TEST(troupe::current_pass_id() == -1);
}

BOOST_AUTO_TEST_CASE(a_function_can_ask_which_outputs_the_pass_has_a_use_for) {
  const auto x = leaf({2});
  const auto z = leaf({2});
  const auto product = x * z;
  std::vector<bool> needed;
  const auto y = noting(product, [&] {
    for (std::size_t i = 0; i < 2; ++i) needed.push_back(troupe::current_pass_needs_output(*product.grad_fn(), i));
    needed.push_back(troupe::current_pass_executes(*product.grad_fn()));
  });
  troupe::grad({y.sum()}, {z}, {}, true);
  troupe::grad({y.sum()}, {product}, {}, true);
  troupe::backward({y.sum()}, {}, true);
  BOOST_TEST(needed == (std::vector<bool>{false, true, true, false, false, true, true, true, true}),
             boost::test_tools::per_element());
  BOOST_TEST(error_of([&] { troupe::current_pass_needs_output(*product.grad_fn(), 2); }).find("has 2 outputs, but output 2") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_profiler_sees_each_function_with_its_sequence_number) {
  const auto run = [](const way& run_on) {
    const recorded events;
    const auto x = leaf({2});
    const auto z = leaf({2});
    const auto y = (noting(x, [] {}) * z).sum();
    recorded::names().clear();
    run_on.backward({y});
    run_on.grad({x.exp().sum()}, {x});
    run_on.grad({(x * z).sum()}, {x});  // does not compute the gradient of z
    trace names = recorded::names();
    std::erase_if(names, [](const std::string& name) { return name.find("troupe::pass") != std::string::npos; });
    return names;
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.libtorch.size() > 30u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
