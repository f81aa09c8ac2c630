// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/streams.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/roots.hpp>
#include <troupe/engine/torch_compat.hpp>

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

// Lets go of a stream when everything else has run as far as it can.
void finish(simulated::gate& late) {
  simulated::settle();
  late.open();
  simulated::synchronize();
}

struct streams_fixture : simulated::fixture {
  // leaf -> tanh on `stream` -> times 3 on `other` -> sum on the default stream
  at::Tensor leaf = ones_leaf(stream);
  at::Tensor middle = on(stream, [&] { return leaf * 2; });
  at::Tensor late_one = on(other, [&] { return middle * 3; });
  at::Tensor root = on(default_stream, [&] { return late_one.sum(); });
};

const std::vector<float> sixes{6, 6, 6};

/// Holds up a stream from right before the second copy of a tensor on this thread; `copies` can be set back.
class gate_before_second_copy {
 public:
  explicit gate_before_second_copy(c10::Stream stream) {
    held_up = stream;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& event) {
      if (std::string_view(event.name()) == "aten::clone" && ++copies == 2) {
        late.emplace(*held_up);
      }
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

/// The sum of three tensors. Its gradients are one tensor, three times; copies are counted from there.
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

}  // namespace

BOOST_FIXTURE_TEST_SUITE(streams, streams_fixture)

BOOST_AUTO_TEST_CASE(SO1_a_function_runs_on_the_stream_of_its_forward) {
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

BOOST_AUTO_TEST_CASE(SO2_a_consumer_waits_for_what_was_made_on_another_stream) {
  for (const auto& held_up : {default_stream, other, stream}) {
    leaf.mutable_grad().reset();
    simulated::gate late(held_up);
    troupe::backward({root}, {}, true);
    finish(late);
    BOOST_TEST(values(leaf.grad()) == sixes, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(SO2_gradients_of_two_streams_are_summed_when_both_are_there) {
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

BOOST_AUTO_TEST_CASE(SO3_memory_that_another_stream_still_reads_is_not_given_away) {
  simulated::gate late(stream);
  troupe::backward({root});  // the gradient made on `other` is let go before `stream` has read it
  finish(late);
  BOOST_TEST(values(leaf.grad()) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(SO4_a_sum_leaves_memory_alone_that_another_stream_reads) {
  // The sum's gradient goes to `stream`, and on `other` into a sum with another one, which could be made in its memory.
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

BOOST_AUTO_TEST_CASE(SO4_outputs_that_share_memory_go_to_three_streams_each_when_its_copy_is_made) {
  const auto third = simulated::new_stream();
  const auto one = on(stream, [&] { return leaf * 2; });
  const auto two = on(other, [&] { return leaf * 5; });
  const auto three = on(third, [&] { return leaf * 7; });
  const auto again = on(default_stream, [&] { return three * 10; });  // its gradient goes into a sum with the third output
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

BOOST_AUTO_TEST_CASE(SO5_the_callers_stream_waits_for_the_pass_and_may_outlive_its_gradients) {
  const auto callers = simulated::new_stream();
  simulated::gate late(stream);
  simulated::gate later(callers);
  at::Tensor read;
  {
    const c10::StreamGuard on_callers(callers);
    troupe::backward({root});
    read = leaf.grad() * 1;
  }
  leaf.mutable_grad().reset();  // its memory goes back to `stream` before `callers` has read it
  simulated::settle();
  late.open();
  simulated::settle();
  later.open();
  simulated::synchronize();
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(SO5_the_callers_stream_waits_for_answers_and_may_outlive_them) {
  simulated::gate late(stream);
  simulated::gate later(other);
  at::Tensor read;
  {
    const c10::StreamGuard on_callers(other);
    auto answers = troupe::grad({root}, {leaf});
    read = answers[0] * 1;
    answers.clear();  // its memory goes back to `stream` before `other` has read it
  }
  simulated::settle();
  later.open();
  finish(late);
  BOOST_TEST(values(read) == sixes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(SO5_the_callers_stream_waits_also_after_an_error) {
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

BOOST_AUTO_TEST_CASE(SO5_final_callbacks_run_once_the_callers_stream_waits_for_the_pass) {
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

BOOST_AUTO_TEST_CASE(SO6_on_one_stream_nothing_waits) {
  const auto own = ones_leaf(default_stream);
  const auto alone = on(default_stream, [&] { return ((own * 2).tanh() + own).sum(); });
  const auto before = simulated::waits();
  troupe::backward({alone});
  BOOST_TEST(simulated::waits() == before);
  troupe::backward({root});
  BOOST_TEST(simulated::waits() > before);
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
