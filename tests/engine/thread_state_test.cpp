// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/thread_state.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/DTensorState.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/graph_task.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "engine/thread_state_fields.hpp"
#include "engine/threads.hpp"
#include "support/allocation_count.hpp"

using namespace troupe::test;
using at::impl::PythonTorchFunctionTLS;
using torch::autograd::variable_list;
using trace = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(thread_state)

namespace {

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

/// Restores the thread's state after a test, whichever engine has left the state changed.
class unharmed_thread {
 public:
  unharmed_thread() = default;
  ~unharmed_thread() { at::ThreadLocalState::setThreadLocalState(before_); }
  unharmed_thread(const unharmed_thread&) = delete;
  unharmed_thread& operator=(const unharmed_thread&) = delete;

 private:
  const at::ThreadLocalState before_;
};

struct calling_pre_hook final : torch::autograd::FunctionPreHook {
  explicit calling_pre_hook(std::function<void()> call) : call(std::move(call)) {}
  variable_list operator()(const variable_list& gradients) override {
    call();
    return gradients;
  }
  std::function<void()> call;
};

struct calling_after_accumulation final : torch::autograd::PostAccumulateGradHook {
  explicit calling_after_accumulation(std::function<void()> call) : call(std::move(call)) {}
  void operator()(const at::Tensor&) override { call(); }
  std::function<void()> call;
};

/// A tensor whose function calls `what`.
at::Tensor noting(const at::Tensor& from, std::function<void()> what) {
  return through(from, [what = std::move(what)](at::Tensor gradient) {
    what();
    return gradient;
  });
}

std::unique_ptr<torch::autograd::FunctionPostHook> post_hook(std::function<void()> what) {
  return std::make_unique<torch::autograd::utils::LambdaPostHook>(
    [what = std::move(what)](const variable_list& outputs, const variable_list&) {
      what();
      return outputs;
    });
}

/// What is seen of a part: by the function that changes it, by that function's hook, by the next function, and by the caller
/// after the pass.
trace seen_around(const field& which, const way& run_on) {
  trace notes;
  const auto note = [&] { notes.push_back(which.name + ": " + which.see()); };
  const auto below = noting(leaf(), note);
  const auto changing = noting(below, [&] {
    note();
    which.change();
  });
  changing.grad_fn()->add_post_hook(post_hook(note));
  const unharmed_thread afterwards;
  c10::GradMode::set_enabled(false);  // as in the pass
  run_on.backward({changing}, {at::ones({2})});
  note();
  return notes;
}

}  // namespace

// TH-1
BOOST_AUTO_TEST_CASE(what_a_function_changes_and_leaves_behind_reaches_its_hooks_and_not_the_next_function) {
  for (const field& each : fields_seen_at_once()) {
    BOOST_TEST_CONTEXT(each.name) {
      TROUPE_TEST_BOTH_WAYS([&](const way& run_on) { return seen_around(each, run_on); }, 4);
      const auto found = seen_around(each, way(true));
      BOOST_TEST(found[0] != found[1]);
      BOOST_TEST(found[2] == found[0]);
      BOOST_TEST(found[3] == found[0]);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_installed_engine_sets_back_what_libtorchs_does) {
  for (const field& each : fields_seen_at_once()) {
    const auto found = on_both([&] { return seen_around(each, way(false)); });
    BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  }
}

// TH-1
BOOST_AUTO_TEST_CASE(what_hooks_of_every_kind_leave_behind_ends_with_their_function) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto note = [&](const std::string& text) {
      return [&notes, text] { notes.push_back(text + ": " + as_text(at::autocast::is_autocast_enabled(at::kCPU))); };
    };
    const auto change = [] { at::autocast::set_autocast_enabled(at::kCPU, true); };
    const auto x = leaf();
    torch::autograd::impl::set_post_acc_grad_hooks(x, std::make_unique<calling_after_accumulation>(change));
    const auto captured = noting(noting(x, note("after a capture")), note("after a post-hook"));
    const auto after_pre_hook = noting(captured, note("after a pre-hook"));
    const auto after_tensor_hook = noting(after_pre_hook, note("after a tensor hook"));
    const auto top = noting(after_tensor_hook, note("first"));
    top.register_hook([&](const at::Tensor&) { change(); });
    after_tensor_hook.grad_fn()->add_pre_hook(std::make_unique<calling_pre_hook>(change));
    after_pre_hook.grad_fn()->add_post_hook(post_hook(change));
    captured.register_hook([&](const at::Tensor&) { change(); });
    const unharmed_thread afterwards;
    run_on.backward({top}, {at::ones({2})}, true);
    note("after the pass")();
    run_on.grad({top}, {captured}, {at::ones({2})}, true);
    note("after the captures")();
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 10);
}

// TH-1
BOOST_AUTO_TEST_CASE(what_hooks_of_a_lone_root_leave_behind_ends_with_them) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto note = [&](const std::string& text) {
      notes.push_back(text + ": " + as_text(at::autocast::is_autocast_enabled(at::kCPU)));
    };
    const auto root = noting(leaf(), [&] { note("not run"); });
    root.register_hook([&](const at::Tensor&) {
      note("hook");
      run_on.queue_callback([&] { note("callback"); });
      at::autocast::set_autocast_enabled(at::kCPU, true);
    });
    const unharmed_thread afterwards;
    run_on.grad({root}, {leaf()}, {at::ones({2})}, false, false, true);
    note("after the pass");
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 3);
  BOOST_TEST(run(way(true))[1] == "callback: " + as_text(false));
}

// TH-1
BOOST_AUTO_TEST_CASE(a_container_that_holds_something_holds_the_same_afterwards) {
  const auto function_mode = [] { return std::make_shared<c10::SafePyObject>(no_object()); };
  const auto outer = function_mode();
  const auto run = [&](const way& run_on) {
    trace notes;
    const auto note = [&] {
      notes.push_back(as_text(PythonTorchFunctionTLS::stack_len() == 1 && PythonTorchFunctionTLS::get_stack_at(0) == outer));
      notes.push_back(at::SavedTensorDefaultHooks::get_disabled_error_message().value_or("enabled"));
    };
    const auto below = noting(noting(leaf(), note), note);
    const auto changing = noting(below, [&] {
      note();
      PythonTorchFunctionTLS::pop_stack();
      PythonTorchFunctionTLS::push_onto_stack(function_mode());
      at::SavedTensorDefaultHooks::disable("another reason");
    });
    const unharmed_thread afterwards;
    PythonTorchFunctionTLS::push_onto_stack(outer);
    at::SavedTensorDefaultHooks::disable("a reason");
    run_on.backward({changing}, {at::ones({2})});
    note();
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 8);
  BOOST_TEST(run(way(true)) == (trace{"yes", "a reason", "yes", "a reason", "yes", "a reason", "yes", "a reason"}),
             boost::test_tools::per_element());
}

// TH-1
BOOST_AUTO_TEST_CASE(at_the_end_every_part_is_set_back_whether_containers_are_empty_or_not) {
  const auto of_torch_functions = [] {
    PythonTorchFunctionTLS::push_onto_stack(std::make_shared<c10::SafePyObject>(no_object()));
  };
  const std::vector<std::function<void()>> beginnings{[] {}, of_torch_functions};
  for (std::size_t i = 0; i < 2 * fields().size(); ++i) {
    const field& each = fields()[i / 2];
    const unharmed_thread afterwards;
    c10::GradMode::set_enabled(false);
    beginnings[i % 2]();
    const std::string before = each.see();
    {
      const troupe::engine::thread_state_keeper keeper;
      each.change();
      BOOST_TEST(each.see() != before, each.name);
    }
    BOOST_TEST(each.see() == before, each.name);
  }
}

// TH-3: where the containers are empty, and where they hold something.
BOOST_AUTO_TEST_CASE(where_nothing_has_changed_nothing_is_allocated) {
  for (const bool holds_something : {false, true}) {
    const unharmed_thread afterwards;
    if (holds_something) {
      c10::impl::TorchDispatchModeTLS::push_non_infra_mode_onto_stack(no_mode());
    }
    troupe::engine::thread_state_keeper keeper;
    const troupe::testing::allocation_count allocated;
    for (int i = 0; i < 100; ++i) {
      keeper.restore();
    }
    BOOST_TEST(allocated.bytes() == 0u);
  }
}

// TH-2
BOOST_AUTO_TEST_CASE(what_calls_alone_tell_is_set_back_with_another_part) {
  for (const field& each : fields()) {
    const unharmed_thread afterwards;
    const std::string before = each.see();
    troupe::engine::thread_state_keeper keeper;
    each.change();
    autograd().set_multithreading_enabled(!autograd().get_multithreading_enabled());
    autograd().set_fw_grad_mode(!autograd().get_fw_grad_mode());
    keeper.restore();
    BOOST_TEST(each.see() == before, each.name);
  }
}

// TH-4, TH-5
BOOST_AUTO_TEST_CASE(what_is_not_looked_at_is_set_back_with_another_part_only_where_a_container_held_something) {
  const auto type_of_another_device = at::autocast::get_autocast_dtype(at::kXPU);
  for (const bool is_empty : {true, false}) {
    const unharmed_thread afterwards;
    if (!is_empty) PythonTorchFunctionTLS::push_onto_stack(std::make_shared<c10::SafePyObject>(no_object()));
    troupe::engine::thread_state_keeper keeper;
    at::set_dtensor_allow_implicit_replication(true);
    at::autocast::set_autocast_dtype(at::kXPU, at::kDouble);
    keeper.restore();
    BOOST_TEST(at::get_dtensor_allow_implicit_replication());
    autograd().set_fw_grad_mode(!autograd().get_fw_grad_mode());
    keeper.restore();
    BOOST_TEST(at::get_dtensor_allow_implicit_replication() == is_empty);
    BOOST_TEST((at::autocast::get_autocast_dtype(at::kXPU) == at::kDouble) == is_empty);
    at::autocast::set_autocast_dtype(at::kXPU, type_of_another_device);
  }
}

BOOST_AUTO_TEST_CASE(keepers_within_each_other_keep_a_state_each) {
  const unharmed_thread afterwards;
  c10::GradMode::set_enabled(false);
  for (int i = 0; i < 3; ++i) {  // the second time with the state that the first keeper has left behind
    troupe::engine::thread_state_keeper outer;
    autograd().set_fw_grad_mode(false);
    {
      const troupe::engine::thread_state_keeper inner;
      autograd().set_fw_grad_mode(true);
      autograd().set_grad_mode(true);
    }
    BOOST_TEST(!autograd().get_fw_grad_mode());
    BOOST_TEST(!autograd().get_grad_mode());
    outer.restore();
    BOOST_TEST(autograd().get_fw_grad_mode());
  }
}

BOOST_AUTO_TEST_CASE(an_exception_leaves_nothing_of_the_threads_state_behind) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto failing = noting(leaf(), [] {
      at::autocast::set_autocast_enabled(at::kCPU, true);
      throw std::runtime_error("told to");
    });
    const unharmed_thread afterwards;
    notes.push_back(error_of([&] { run_on.backward({failing}, {at::ones({2})}); }));
    notes.push_back(as_text(at::autocast::is_autocast_enabled(at::kCPU)));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

BOOST_AUTO_TEST_CASE(what_a_final_callback_leaves_behind_reaches_the_next_one_and_not_the_caller) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto note = [&] { notes.push_back(as_text(at::autocast::is_autocast_enabled(at::kCPU))); };
    const auto queueing = noting(leaf(), [&] {
      run_on.queue_callback([&] {
        note();
        at::autocast::set_autocast_enabled(at::kCPU, true);
      });
      run_on.queue_callback(note);
      at::autocast::set_autocast_enabled(at::kCPU, true);
    });
    const unharmed_thread afterwards;
    run_on.backward({queueing}, {at::ones({2})});
    note();
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 3);
}

BOOST_AUTO_TEST_CASE(with_workers_each_function_finds_the_callers_state) {
  const auto pass = [](threads& workers) {
    std::vector<at::Tensor> parts;
    std::atomic<int> found_changed{0};
    const auto x = leaf();
    for (int i = 0; i < 64; ++i)
      parts.push_back(noting(x, [&] {
        found_changed += at::autocast::is_autocast_enabled(at::kCPU) || c10::GradMode::is_enabled() ? 1 : 0;
        at::autocast::set_autocast_enabled(at::kCPU, true);
        c10::GradMode::set_enabled(true);
      }));
    const unharmed_thread afterwards;
    troupe::backward({at::stack(parts).sum()}, {}, {.workers = &workers});
    BOOST_TEST(!at::autocast::is_autocast_enabled(at::kCPU));
    BOOST_TEST(x.grad()[0].item<float>() == 64);
    return found_changed.load();
  };
  for (const std::int64_t grain :
       {std::int64_t{0}, std::int64_t{1'000'000'000'000}}) {  // all functions are large; none is large
    threads workers(1, grain);
    BOOST_TEST(pass(workers) == 0);  // measures what functions cost
    BOOST_TEST(pass(workers) == 0);
  }
}

// KO-1: tasks come from one thread, and each ends on another thread, which runs no pass.
BOOST_AUTO_TEST_CASE(a_thread_that_only_destroys_tasks_leaves_no_memory_behind) {
  constexpr std::ptrdiff_t count = 100;
  const auto destroy_elsewhere = [] {
    troupe::engine::graph_task_settings settings;
    settings.roots = {torch::autograd::impl::gradient_edge(leaf() * 2)};
    settings.root_gradients = {at::ones({2})};
    std::thread([task = troupe::engine::graph_task(std::move(settings))] {}).join();
  };
  destroy_elsewhere();
  const auto before = troupe::testing::blocks_alive();
  for (std::ptrdiff_t i = 0; i < count; ++i) destroy_elsewhere();
  BOOST_TEST(troupe::testing::blocks_alive() - before < count / 2);
}

BOOST_AUTO_TEST_SUITE_END()
