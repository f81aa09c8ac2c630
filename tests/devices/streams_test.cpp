// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/streams.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

// Before LegacyBatchedTensorImpl.h, whose functions have the same names.
#include <ATen/functorch/BatchedTensorImpl.h>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/LegacyBatchedTensorImpl.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/roots.hpp>
#include <troupe/engine/torch_compat.hpp>

#include "engine/both_ways.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

at::Tensor on(const c10::Stream& stream, const std::function<at::Tensor()>& compute) {
  const c10::StreamGuard guard(stream);
  auto result = compute();
  simulated::synchronize();
  return result;
}

at::Tensor ones_leaf(const c10::Stream& stream) {
  return on(stream, [&] { return at::ones({3}, at::device(stream.device())).requires_grad_(); });
}

std::vector<float> values(const at::Tensor& tensor) {
  const auto host = tensor.cpu().contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

// Releases a stream when everything else has run as far as it can.
void finish(simulated::gate& late) {
  simulated::settle();
  late.open();
  simulated::synchronize();
}

struct streams_fixture : simulated::fixture {
  // leaf -> times 2 on `stream` -> times 3 on `other` -> sum on the default stream
  at::Tensor leaf = ones_leaf(stream);
  at::Tensor middle = on(stream, [&] { return leaf * 2; });
  at::Tensor late_one = on(other, [&] { return middle * 3; });
  at::Tensor root = on(default_stream, [&] { return late_one.sum(); });
};

const std::vector<float> sixes{6, 6, 6};

/// The stream order of a pass whose functions the test enters itself.
struct lone_order {
  explicit lone_order(const at::Tensor& root)
      : graph(engine::root_edges({root}), {}, {}, false), order(graph, at::kPrivateUse1) {}

  const engine::plan::vertex& of(const at::Tensor& made) const { return graph.vertices.at(graph.find(*made.grad_fn())); }

  /// Adds a gradient for the function that made `made`.
  void add(const at::Tensor& made, at::Tensor&& value) { order.add(of(made), of(made).first_slot, buffer, std::move(value)); }

  engine::plan graph;
  devices::streams order;
  at::Tensor buffer;
};

/// Holds up a stream from the moment before the second copy of a tensor on this thread. A test may set `copies` back to 0.
class gate_before_second_copy {
 public:
  explicit gate_before_second_copy(c10::Stream stream) {
    held_up = stream;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& event) {
      if (std::string_view(event.name()) == "aten::clone" && ++copies == 2) late.emplace(*held_up);
      return std::unique_ptr<at::ObserverContext>();
    }));
  }
  ~gate_before_second_copy() {
    at::removeCallback(handle_);
    late.reset();
  }
  gate_before_second_copy(const gate_before_second_copy&) = delete;
  gate_before_second_copy& operator=(const gate_before_second_copy&) = delete;

  static inline int copies = 0;
  static inline std::optional<simulated::gate> late;

 private:
  static inline std::optional<c10::Stream> held_up;
  at::CallbackHandle handle_;
};

/// The sum of three tensors. Its three gradients are one tensor. Copies are counted from its backward on.
struct sum_of_three final : torch::autograd::Function<sum_of_three> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return a + b + c;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
    const auto made = gradients[0] * 1;
    gate_before_second_copy::copies = 0;
    return {made, made, made};
  }
};

/// The double and the triple of a number; the triple is on the second device.
struct two_devices final : torch::autograd::Function<two_devices> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext*, const at::Tensor& number) {
    return {number * 2, number.to(simulated::device(1)) * 3};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
    return {gradients[0] * 2 + (gradients[1] * 3).to(simulated::device(0))};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(streams, streams_fixture)

BOOST_AUTO_TEST_CASE(a_function_runs_on_the_stream_of_its_forward) {  // SO-1
  const c10::impl::VirtualGuardImpl accelerator(at::kPrivateUse1);
  std::optional<c10::Stream> seen;
  std::optional<c10::Stream> seen_before;
  middle.register_hook([&](const at::Tensor&) { seen = accelerator.getStream(first); });
  late_one.register_hook([&](const at::Tensor&) { seen_before = accelerator.getStream(first); });
  troupe::backward({root});
  BOOST_CHECK(seen == stream);
  BOOST_CHECK(seen_before == other);
  BOOST_CHECK(accelerator.getStream(first) == default_stream);
}

BOOST_AUTO_TEST_CASE(a_consumer_waits_for_what_was_made_on_another_stream) {  // SO-2
  for (const auto& held_up : {default_stream, other, stream}) {
    leaf.mutable_grad().reset();
    simulated::gate late(held_up);
    troupe::backward({root}, {}, true);
    finish(late);
    BOOST_TEST(values(leaf.grad()) == sixes, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_two_streams_are_summed_when_both_are_there) {  // SO-2
  const auto one = on(stream, [&] { return leaf * 2; });
  const auto two = on(other, [&] { return leaf * 5; });
  const auto both = on(default_stream, [&] { return (one + two).sum(); });
  for (const auto& held_up : {default_stream, other, stream}) {
    leaf.mutable_grad().reset();
    simulated::gate late(held_up);
    troupe::backward({both}, {}, true);
    finish(late);
    BOOST_TEST(values(leaf.grad()) == (std::vector<float>{7, 7, 7}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(where_a_pass_goes_on_a_consumer_waits_for_what_its_new_caller_has_made) {  // SO-2
  lone_order pass(root);
  pass.order.begin();
  pass.order.enter(pass.of(middle));  // on `stream`, which the new caller uses
  pass.order.leave();
  pass.order.end();
  simulated::gate late(stream);
  const c10::StreamGuard on_new_callers(stream);
  pass.order.begin();
  pass.add(late_one, at::full({3}, 6.0F, at::device(first)));
  pass.order.enter(pass.of(late_one));  // on `other`
  const auto read = pass.buffer * 1;
  pass.order.leave();
  pass.order.end();
  finish(late);
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_function_with_outputs_on_two_devices_waits_on_the_callers_stream_of_the_other_device) {  // SO-2
  const auto far = simulated::new_stream(1);
  const auto outputs = on(stream, [&] { return leaf * 1; });
  torch::autograd::variable_list two;
  on(stream, [&] { return (two = two_devices::apply(outputs))[0]; });
  const auto further = on(far, [&] { return two[1] * 5; });
  const auto both = on(default_stream, [&] { return two[0].sum() + further.sum().to(first); });
  simulated::gate late(far);
  troupe::backward({both});
  finish(late);
  BOOST_TEST(values(leaf.grad()) == (std::vector<float>{17, 17, 17}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_a_batched_tensor_wraps_is_kept_for_the_stream_that_uses_it) {  // SO-3
  using wrapping = at::Tensor (*)(const at::Tensor&);
  const wrapping legacy = [](const at::Tensor& value) { return at::addBatchDim(value, 1, 0); };
  const wrapping functorch = [](const at::Tensor& value) { return at::functorch::makeBatched(value, 0, 1); };
  const wrapping twice = [](const at::Tensor& value) {
    return at::functorch::makeBatched(at::functorch::makeBatched(value, 0, 1), 0, 2);
  };
  for (const auto wrap : {legacy, functorch, twice}) {
    auto value = at::tensor({5.0F, 6.0F}).view({2, 1, 1}).to(first);
    auto batched = wrap(value);
    simulated::synchronize();
    engine::record_use(batched, stream);
    simulated::gate late(stream);
    at::Tensor read;
    {
      const c10::StreamGuard guard(stream);
      read = value * 1;
    }
    batched.reset();
    value.reset();  // the memory goes back to the default stream before `stream` has read it
    finish(late);
    BOOST_TEST(at::equal(read.cpu().view(2), at::tensor({5.0F, 6.0F})));
  }
}

BOOST_AUTO_TEST_CASE(each_component_of_a_sparse_tensor_is_kept_for_the_stream_that_uses_it) {  // SO-3
  const auto there = [&](const at::Tensor& part) { return part.to(first); };
  for (const auto layout : {at::kSparse, at::kSparseCsr, at::kSparseCsc}) {
    std::vector<at::Tensor> parts{there(at::tensor({5.0F, 6.0F})), there(at::tensor({0, 1}, at::kLong))};
    at::Tensor sparse;
    if (layout == at::kSparse) {
      parts[1] = parts[1].view({1, 2});
      sparse = at::_sparse_coo_tensor_unsafe(parts[1], parts[0], {2});
    } else {
      parts.push_back(there(at::tensor({0, 1, 2}, at::kLong)));
      sparse = at::_sparse_compressed_tensor_unsafe(parts[2], parts[1], parts[0], {2, 2}, parts[0].options().layout(layout));
    }
    simulated::synchronize();
    engine::record_use(sparse, stream);
    simulated::gate late(stream);
    std::vector<at::Tensor> read;
    {
      const c10::StreamGuard guard(stream);
      for (const auto& part : parts) read.push_back(part * 1);
    }
    sparse.reset();
    parts.clear();  // the memory goes back to the default stream before `stream` has read it
    finish(late);
    BOOST_TEST(at::equal(read[0].cpu(), at::tensor({5.0F, 6.0F})), layout);
    BOOST_TEST(at::equal(read[1].cpu().view({2}), at::tensor({0, 1}, at::kLong)), layout);
    BOOST_TEST((layout == at::kSparse || at::equal(read[2].cpu(), at::tensor({0, 1, 2}, at::kLong))), layout);
  }
}

BOOST_AUTO_TEST_CASE(memory_that_another_stream_still_reads_is_not_given_away) {  // SO-3
  simulated::gate late(stream);
  troupe::backward({root});  // the gradient made on `other` is dropped before `stream` has read it
  finish(late);
  BOOST_TEST(values(leaf.grad()) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_sum_leaves_memory_alone_that_another_stream_reads) {  // SO-4
  // The gradient of `joined` goes to `stream`, and on `other` into a sum with another gradient. The sum could be written into
  // the memory of the gradient, which `stream` still reads.
  const auto source = ones_leaf(default_stream);
  const auto side = on(stream, [&] { return source * 2; });
  const auto further = on(other, [&] { return source * 3; });
  const auto joined = on(default_stream, [&] { return side + further; });
  const auto again = on(default_stream, [&] { return further * 10; });
  const auto both = on(default_stream, [&] { return joined.sum() + again.sum(); });
  simulated::gate late(stream);
  troupe::backward({both});
  finish(late);
  BOOST_TEST(values(source.grad()) == (std::vector<float>{35, 35, 35}), boost::test_tools::per_element());
}

// Two roots have one tensor as their gradient. `stream` reads it, and on `other` it goes into a sum, which could be written into its memory.
BOOST_AUTO_TEST_CASE(a_sum_leaves_a_roots_gradient_alone_that_another_stream_reads) {  // SO-4
  const auto sent = on(other, [&] { return leaf * 7; });
  const auto summed = on(other, [&] { return leaf * 5; });
  const auto further = on(other, [&] { return summed * 10; });
  const auto early = on(stream, [&] { return leaf * 2; });
  engine::graph_task_settings settings;
  settings.roots = engine::root_edges({early, summed, further});
  const auto ones = [this] { return at::ones({3}, at::device(first)); };
  settings.root_gradients = at::TensorList{ones(), ones()}.vec();
  settings.root_gradients.insert(settings.root_gradients.begin(), settings.root_gradients.front());  // nothing else holds it
  settings.sends = {{engine::attach_send({1, {1}}, {sent}), 1}};
  engine::graph_task task(std::move(settings));
  simulated::synchronize();
  simulated::gate late(stream);
  task.deliver(0, {ones()});
  task.run();
  finish(late);
  BOOST_TEST(values(leaf.grad()) == (std::vector<float>{64, 64, 64}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(outputs_that_share_memory_go_to_three_streams_each_when_its_copy_is_made) {  // SO-4
  const auto third = simulated::new_stream();
  const auto one = on(stream, [&] { return leaf * 2; });
  const auto two = on(other, [&] { return leaf * 5; });
  const auto three = on(third, [&] { return leaf * 7; });
  const auto again = on(default_stream, [&] { return three * 10; });  // the gradient goes into a sum with the third output
  const auto all = on(default_stream, [&] { return sum_of_three::apply(one, two, three).sum() + again.sum(); });
  engine::graph_task_settings settings;
  settings.sends = {{engine::attach_send({1, {1}}, {all}), 1}};
  engine::graph_task task(std::move(settings));
  task.deliver(0, {at::ones({}, at::device(first))});
  simulated::synchronize();
  const gate_before_second_copy between(default_stream);
  task.run();
  BOOST_REQUIRE(between.late);
  finish(*between.late);
  BOOST_TEST(values(leaf.grad()) == (std::vector<float>{84, 84, 84}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_sum_is_made_in_memory_that_nothing_else_reads) {  // SO-4
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> ones(5);
  std::generate(ones.begin(), ones.end(), [&] { return at::ones({3}, at::device(first)); });
  lone_order pass(root);
  pass.order.begin();
  pass.add(middle, std::move(ones[0]));
  const void* memory = pass.buffer.const_data_ptr();
  pass.add(middle, std::move(ones[1]));
  BOOST_TEST(pass.buffer.const_data_ptr() == memory);
  pass.buffer.reset();
  const auto held = ones[2];
  pass.add(middle, std::move(ones[2]));
  pass.add(middle, std::move(ones[3]));
  BOOST_TEST(pass.buffer.const_data_ptr() != held.const_data_ptr());
  memory = pass.buffer.const_data_ptr();
  pass.add(middle, std::move(ones[4]));  // nothing else refers to the sum so far
  BOOST_TEST(pass.buffer.const_data_ptr() == memory);
  pass.order.end();
  simulated::synchronize();
  BOOST_TEST(values(pass.buffer) == (std::vector<float>{3, 3, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(only_a_value_that_something_else_reads_is_copied_for_a_sum_made_elsewhere) {  // SO-4
  lone_order pass(root);
  pass.order.begin();
  const auto nothing = [](const at::Tensor&) { return at::Tensor(); };
  const auto itself = [](const at::Tensor& value) { return value; };
  const auto its_memory = [](const at::Tensor& value) { return value.alias(); };
  for (const auto& hold : {+nothing, +itself, +its_memory}) {
    auto value = at::ones({3}, at::device(first));
    const void* memory = value.const_data_ptr();
    const auto held = hold(value);
    bool is_summed = false;
    pass.order.add(pass.of(middle), pass.of(middle).first_slot, value, [&] { is_summed = true; });
    BOOST_TEST(is_summed);
    BOOST_TEST((value.const_data_ptr() != memory) == held.defined());
  }
  pass.order.end();
}

BOOST_AUTO_TEST_CASE(the_callers_stream_waits_for_the_pass_and_may_outlive_its_gradients) {  // SO-5
  const auto callers = simulated::new_stream();
  simulated::gate late(stream);
  simulated::gate later(callers);
  at::Tensor read;
  {
    const c10::StreamGuard on_callers(callers);
    troupe::backward({root});
    read = leaf.grad() * 1;
  }
  leaf.mutable_grad().reset();  // the memory goes back to `stream` before `callers` has read it
  simulated::settle();
  late.open();
  simulated::settle();
  later.open();
  simulated::synchronize();
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_callers_stream_waits_for_answers_and_may_outlive_them) {  // SO-5
  simulated::gate late(stream);
  simulated::gate later(other);
  at::Tensor read;
  {
    const c10::StreamGuard on_callers(other);
    auto answers = troupe::grad({root}, {leaf});
    read = answers[0] * 1;
    answers.clear();  // the memory goes back to `stream` before `other` has read it
  }
  simulated::settle();
  later.open();
  finish(late);
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_callers_stream_waits_also_after_an_error) {  // SO-5
  const auto other_leaf = ones_leaf(default_stream);
  const auto failing = on(default_stream, [&] { return other_leaf * 2; });
  failing.register_hook([](const at::Tensor&) { throw std::runtime_error("told to"); });
  const auto newer = on(stream, [&] { return leaf * 6; });  // runs first
  const auto both = on(default_stream, [&] { return newer.sum() + failing.sum(); });
  simulated::gate late(stream);
  BOOST_CHECK_THROW(troupe::backward({both}), std::runtime_error);
  const auto read = leaf.grad() * 1;
  finish(late);
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(final_callbacks_run_once_the_callers_stream_waits_for_the_pass) {  // SO-5
  const c10::impl::VirtualGuardImpl accelerator(at::kPrivateUse1);
  const auto callers = simulated::new_stream();
  for (const bool trimmed : {false, true}) {
    leaf.mutable_grad().reset();
    at::Tensor read;
    std::optional<c10::Stream> seen;
    const auto hook = middle.register_hook([&](const at::Tensor&) {
      troupe::queue_callback([&] {
        seen = accelerator.getStream(first);
        read = leaf.grad() * 1;
      });
    });
    simulated::gate late(stream);
    {
      const c10::StreamGuard on_callers(callers);
      trimmed ? troupe::backward({root}, {}, true, false, {leaf}) : troupe::backward({root}, {}, true);
    }
    finish(late);
    middle.remove_hook(hook);
    BOOST_CHECK(seen == callers);
    BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_callers_stream_waits_for_what_a_function_has_queued_after_its_output) {  // SO-5
  lone_order pass(root);
  pass.order.begin();
  pass.order.enter(pass.of(late_one));  // on `other`
  pass.add(middle, at::ones({3}, at::device(first)));
  simulated::gate late(other);
  const auto made = at::full({3}, 6.0F, at::device(first));
  pass.order.leave();
  pass.order.end();
  const auto read = made * 1;
  finish(late);
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(at_the_end_the_callers_stream_is_current_though_no_one_left_the_function) {  // SO-5
  const c10::impl::VirtualGuardImpl accelerator(at::kPrivateUse1);
  lone_order pass(root);
  pass.order.begin();
  pass.order.enter(pass.of(late_one));
  BOOST_CHECK(accelerator.getStream(first) == other);
  pass.order.end();
  BOOST_CHECK(accelerator.getStream(first) == default_stream);
}

BOOST_AUTO_TEST_CASE(where_a_pass_goes_on_for_another_caller_that_callers_stream_waits) {  // SO-5
  lone_order pass(root);
  pass.order.begin();
  pass.order.end();
  simulated::gate late(other);
  const c10::StreamGuard on_new_callers(stream);
  pass.order.begin();
  pass.order.enter(pass.of(late_one));  // on `other`
  const auto made = at::full({3}, 6.0F, at::device(first));
  pass.order.leave();
  pass.order.end();
  const auto read = made * 1;
  finish(late);
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(on_one_stream_nothing_waits) {  // SO-6
  const auto own = ones_leaf(default_stream);
  const auto alone = on(default_stream, [&] { return ((own * 2).tanh() + own).sum(); });
  const auto before = simulated::waits();
  troupe::backward({alone});
  BOOST_TEST(simulated::waits() == before);
  troupe::backward({root});
  BOOST_TEST(simulated::waits() > before);
}

// SO-8: a leaf is first used on `stream`, and this graph lives on when the leaf is used on `other`.
BOOST_AUTO_TEST_CASE(a_gradient_that_is_accumulated_on_another_stream_than_its_own_is_told) {
  const bool always = c10::WarningUtils::get_warnAlways();
  c10::WarningUtils::set_warnAlways(true);
  const auto restored = c10::make_scope_exit([&] {
    c10::WarningUtils::set_warnAlways(always);
    at::globalContext().setWarnOnAccumulateGradStreamMismatch(true);
  });
  const auto told_by = [](const at::Tensor& loss) {
    collected_warnings warnings;
    troupe::backward({loss}, {}, true);
    return warnings.texts.size();
  };
  const auto own = ones_leaf(stream);
  const auto early = on(stream, [&] { return (own * 2).sum(); });
  const auto late = on(other, [&] { return (own * 3).sum(); });
  BOOST_TEST(told_by(early) == 0u);
  BOOST_TEST(told_by(late) == 1u);
  at::globalContext().setWarnOnAccumulateGradStreamMismatch(false);
  BOOST_TEST(told_by(late) == 0u);
}

BOOST_AUTO_TEST_CASE(a_sum_that_another_stream_makes_or_reads_is_not_to_be_changed_in_place) {  // SO-10
  const auto is_open = [&](const at::Tensor& maker, at::Tensor value) {
    lone_order pass(root);
    pass.order.begin();
    pass.order.enter(pass.of(maker));
    pass.add(middle, std::move(value));
    const bool open = pass.order.is_on_this_stream(pass.of(middle), pass.of(middle).first_slot, pass.buffer);
    pass.order.leave();
    pass.order.end();
    return open;
  };
  const auto value = [&] { return at::ones({3}, at::device(first)); };
  const auto held = value();
  BOOST_TEST(is_open(middle, value()));
  BOOST_TEST(!is_open(middle, held));
  BOOST_TEST(!is_open(late_one, value()));
}

#if TROUPE_TORCH_HAS_CAPTURE_CHECKS
// SO-9. `late_one` is on `other`, `middle` on `stream`, the caller on the default stream.
BOOST_AUTO_TEST_CASE(in_a_graph_capture_a_function_outside_of_it_moves_or_throws) {
  const c10::impl::VirtualGuardImpl accelerator(at::kPrivateUse1);
  const auto restored = c10::make_scope_exit([] { at::globalContext().setOverrideStaleCaptureStream(false); });
  const auto stale = on(default_stream, [&] { return (leaf * 2).sum(); });
  std::vector<c10::Stream> seen;
  late_one.register_hook([&](const at::Tensor&) { seen.push_back(accelerator.getStream(first)); });
  const auto fails = [&](const at::Tensor& loss, const std::string& text) {
    const auto is_told = [&](const c10::Error& error) { return std::string(error.what()).find(text) != std::string::npos; };
    BOOST_CHECK_EXCEPTION(troupe::backward({loss}, {}, true), c10::Error, is_told);
    BOOST_CHECK_THROW(torch::autograd::backward({loss}, {}, true), c10::Error);
  };
  {
    const simulated::captured capture(stream);
    const c10::StreamGuard current(stream);
    fails(stale, "function 'SumBackward0' is on the default stream");
    at::globalContext().setOverrideStaleCaptureStream(true);
    const auto before = simulated::waits();
    troupe::backward({stale}, {}, true);
    BOOST_TEST(simulated::waits() == before);
    troupe::backward({root}, {}, true);
    BOOST_CHECK(seen.back() == stream);
    BOOST_TEST(simulated::waits() == before);
    torch::autograd::backward({root}, {}, true);
    BOOST_CHECK(seen.back() == stream);
    at::globalContext().setOverrideStaleCaptureStream(false);
  }
  troupe::backward({root}, {}, true);
  BOOST_CHECK(seen.back() == other);
  const simulated::captured capture(default_stream);  // the leaf stays outside
  BOOST_CHECK_EXCEPTION(troupe::backward({root}), c10::Error, [](const c10::Error& error) {
    return std::string(error.what()).find("a leaf is on ") != std::string::npos;
  });
}
#endif

BOOST_AUTO_TEST_CASE(memory_that_runs_out_names_the_function_and_its_devices) {
  const auto x = at::ones({3}).requires_grad_();
  const auto sum = at::tanh(x.to(second)).cpu().sum();
  const simulated::scarce_memory none(0);
  BOOST_CHECK_EXCEPTION(backward({sum}), c10::OutOfMemoryError, [](const auto& failed) {
    return failed.context() == std::vector<std::string>{
                                 "troupe: the error came from function 'ToCopyBackward0' of the backward pass; "
                                 "devices of its gradients: cpu, simulated:1"};
  });
}

BOOST_AUTO_TEST_CASE(memory_that_runs_out_in_a_nested_pass_names_the_inner_function) {
  struct outer : torch::autograd::Function<outer> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   torch::autograd::variable_list gradients) {
      const c10::AutoGradMode record(true);
      const auto y = at::ones({3}, gradients[0].options()).requires_grad_();
      const auto sum = at::tanh(y).sum();
      const simulated::scarce_memory few(1);  // the gradient of the root
      troupe::backward({sum});
      return gradients;
    }
  };
  const auto x = at::ones({3}, at::device(second)).requires_grad_();
  const auto y = outer::apply(x);
  BOOST_CHECK_EXCEPTION(backward({y}, {at::ones({3}, at::device(second))}), c10::OutOfMemoryError, [](const auto& failed) {
    return failed.context().size() == 1 && failed.context()[0].find("'TanhBackward0'") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_graph_of_the_cpu_asks_for_no_streams) {
  const auto order_of = [](const at::Tensor& tensor) {
    return engine::make_stream_order(engine::plan(engine::root_edges({tensor}), {}, {}, false));
  };
  BOOST_TEST(order_of((at::ones({2}).requires_grad_() * 2).sum()) == nullptr);
  BOOST_TEST(order_of(root) != nullptr);
}

BOOST_AUTO_TEST_CASE(gradients_cross_between_the_cpu_and_two_devices) {
  const auto here = at::ones({3}).requires_grad_();
  const auto there = on(stream, [&] { return (here * 2).to(first) * 3; });
  const auto further = on(c10::Stream(c10::Stream::DEFAULT, second), [&] { return (there.to(second) * 4).tanh().sum(); });
  const auto expected = at::ones({3}).requires_grad_();
  troupe::backward({(expected * 2 * 3 * 4).tanh().sum()});
  troupe::backward({further});
  BOOST_TEST(at::equal(here.grad(), expected.grad()));
}

BOOST_AUTO_TEST_CASE(gradients_that_a_peer_sent_are_summed_in_order_on_the_consumers_streams) {
  const auto one = on(stream, [&] { return leaf * 2; });
  const auto two = on(other, [&] { return leaf * 5; });
  engine::graph_task_settings settings;
  settings.sends = {{engine::attach_send({1, {1}}, {one}), 1}, {engine::attach_send({2, {1}}, {two}), 2}};
  engine::graph_task task(std::move(settings));
  simulated::gate late(default_stream);
  task.deliver(0, {at::ones({3}, at::device(first))});
  task.deliver(1, {at::ones({3}, at::device(first))});
  task.run();
  finish(late);
  BOOST_TEST(task.finished());
  BOOST_TEST(values(leaf.grad()) == (std::vector<float>{7, 7, 7}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
