// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/torch_compat.hpp>

using namespace troupe;
using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(graph_tasks)

namespace {

struct recorder final : outlet {
  void emit(const recv_backward& from, std::vector<at::Tensor> gradients, std::vector<bool> none, bool more) override {
    messages.push_back(from.message);
    unreached.push_back(std::move(none));
    all.push_back(std::move(gradients));
    mores.push_back(more);
  }
  std::vector<message_id> messages;
  std::vector<std::vector<at::Tensor>> all;
  std::vector<std::vector<bool>> unreached;
  std::vector<bool> mores;
};

// Counts how often the function runs.
struct counting : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    ++runs;
    inputs = gradients;
    return gradients;
  }
  std::string name() const override { return "counting"; }
  int runs = 0;
  torch::autograd::variable_list inputs;
};

at::Tensor counted(const at::Tensor& tensor, pointer_to<counting>& function) {
  function = make_node<counting>(torch::autograd::edge_list{torch::autograd::impl::gradient_edge(tensor)});
  at::Tensor out = tensor.detach();
  torch::autograd::create_gradient_edge(out, function);
  return out;
}

at::Tensor leaf(at::IntArrayRef shape) { return at::randn(shape).requires_grad_(); }

message_id message(std::uint64_t number) { return {number, node_id{0xabc}}; }

graph_task_settings sending(std::initializer_list<at::Tensor> tensors, gradient_table* leaves, outlet* to = nullptr) {
  graph_task_settings settings;
  for (const at::Tensor& tensor : tensors)
    settings.sends.push_back({attach_send(message(settings.sends.size() + 1), {tensor}), 0});
  settings.leaves = leaves;
  settings.emit_to = to;
  return settings;
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  BOOST_TEST_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_task_waits_for_its_sends_and_finishes_after_the_last) {
  gradient_table leaves;
  const auto x = leaf({3});
  graph_task task(sending({x * 2, x * 3}, &leaves));
  BOOST_TEST(task.waiting() == 2u);
  task.run();
  BOOST_TEST(!task.finished());
  task.deliver(1, {at::ones({3})});
  BOOST_TEST(!task.finished());
  task.run();
  BOOST_TEST(task.waiting() == 1u);
  BOOST_TEST(leaves.empty());
  task.deliver(0, {at::ones({3})});
  BOOST_TEST(task.waiting() == 0u);
  BOOST_TEST(!task.finished());
  task.run();
  BOOST_TEST(task.finished());
  BOOST_TEST(at::equal(leaves.find(x), at::full({3}, 5.0)));
}

// GT-1
BOOST_AUTO_TEST_CASE(a_function_runs_once_after_all_its_gradients) {
  pointer_to<counting> shared;
  gradient_table leaves;
  const auto x = leaf({3});
  const auto middle = counted(x * 1, shared);
  graph_task task(sending({middle * 2, middle * 3, middle * 4}, &leaves));
  for (const std::size_t send : {1, 2, 0}) {
    BOOST_TEST(shared->runs == 0);
    task.deliver(send, {at::ones({3})});
    task.run();
  }
  BOOST_TEST(shared->runs == 1);
  BOOST_TEST(at::equal(shared->inputs.at(0), at::full({3}, 9.0)));
}

// GT-2: 1 and the two large numbers sum to 0 or to 1, depending on the order.
BOOST_AUTO_TEST_CASE(sums_are_the_same_for_every_order_of_deliveries) {
  const float values[] = {1e8f, 1.f, -1e8f, 3.f};
  std::vector<std::size_t> order{0, 1, 2, 3};
  std::vector<at::Tensor> found;
  do {
    gradient_table leaves;
    const auto x = at::zeros({1}).requires_grad_();
    const auto middle = x * 1;
    graph_task task(sending({middle * 1, middle * 1, middle * 1, middle * 1}, &leaves));
    for (const std::size_t send : order) {
      task.deliver(send, {at::full({1}, values[send])});
      task.run();
    }
    found.push_back(leaves.find(x));
  } while (std::next_permutation(order.begin(), order.end()));
  BOOST_TEST(found.size() == 24u);
  // The latest function comes first, as on one node.
  const float serial = ((values[3] + values[2]) + values[1]) + values[0];
  for (const at::Tensor& each : found) BOOST_TEST(each.item<float>() == serial);
}

// GT-2
BOOST_AUTO_TEST_CASE(sums_skip_what_was_dropped_and_keep_their_order) {
  const float values[] = {1e8f, 1.f, -1e8f, 3.f};
  for (int when = 0; when < 4; ++when) {
    gradient_table leaves;
    const auto x = at::zeros({1}).requires_grad_();
    const auto middle = x * 1;
    graph_task task(sending({middle * 1, middle * 1, middle * 1, middle * 1}, &leaves));
    int step = 0;
    for (const std::size_t send : {0, 1, 3}) {
      if (step++ == when) task.drop(2);
      task.deliver(send, {at::full({1}, values[send])});
      task.run();
    }
    if (when == 3) {
      task.drop(2);
      task.run();
    }
    BOOST_TEST(task.finished());
    BOOST_TEST(leaves.find(x).item<float>() == (values[3] + values[1]) + values[0]);
  }
}

// GT-3
BOOST_AUTO_TEST_CASE(what_only_dropped_sends_reach_never_runs) {
  pointer_to<counting> dead;
  pointer_to<counting> alive;
  int hooks = 0;
  gradient_table leaves;
  const auto x = leaf({3});
  const auto y = leaf({3});
  const auto shared = counted(x * 2, alive);
  const auto unused = counted(y * 2, dead);
  unused.register_hook([&](const at::Tensor&) { ++hooks; });
  y.register_hook([&](const at::Tensor&) { ++hooks; });
  graph_task task(sending({shared * 2, shared * unused, unused * 2}, &leaves));
  task.drop(1);
  task.run();
  task.deliver(0, {at::ones({3})});
  task.drop(2);
  task.run();
  BOOST_TEST(task.finished());
  BOOST_TEST(alive->runs == 1);
  BOOST_TEST(dead->runs == 0);
  BOOST_TEST(hooks == 0);
  BOOST_TEST(leaves.size() == 1u);
  BOOST_TEST(at::equal(leaves.find(x), at::full({3}, 4.0)));
}

BOOST_AUTO_TEST_CASE(roots_and_sends_meet) {
  gradient_table leaves;
  const auto x = leaf({3});
  const auto middle = x * 2;
  const auto root = (middle * 5).sum();
  auto settings = sending({middle * 7}, &leaves);
  settings.roots = {torch::autograd::impl::gradient_edge(root)};
  settings.root_gradients = {at::ones({})};
  graph_task task(std::move(settings));
  BOOST_TEST(!task.finished());
  task.deliver(0, {at::ones({3})});
  task.run();
  BOOST_TEST(task.finished());
  BOOST_TEST(at::equal(leaves.find(x), at::full({3}, 24.0)));
}

BOOST_AUTO_TEST_CASE(a_send_below_all_inputs_takes_its_gradients_though_none_leads_anywhere) {
  gradient_table leaves;
  const auto x = leaf({3});
  const auto below = leaf({3});
  const auto deep = (x * 2).sin() * 3;
  auto settings = sending({below * 2}, &leaves);
  settings.roots = {torch::autograd::impl::gradient_edge((deep * 5).sum())};
  settings.root_gradients = {at::ones({})};
  settings.inputs = {torch::autograd::impl::gradient_edge(deep)};
  settings.capture = true;
  graph_task task(std::move(settings));
  task.deliver(0, {at::ones({3})});
  task.run();
  BOOST_TEST(task.finished());
  BOOST_TEST(at::equal(task.take_captures().at(0), at::full({3}, 5.0)));
  BOOST_TEST(leaves.empty());
}

BOOST_AUTO_TEST_CASE(undefined_gradients_stay_undefined) {
  recorder out;
  const auto received = attach_recv({node_id{1}, 1}, message(9), {at::ones({2}), at::ones({2})}, {true, true});
  graph_task_settings settings;
  settings.sends.push_back({attach_send(message(1), {received[0], received[1]}), 0});
  settings.emit_to = &out;
  graph_task task(std::move(settings));
  task.deliver(0, {at::Tensor(), at::full({2}, 4.0)});
  task.run();
  BOOST_REQUIRE(out.all.size() == 1u);
  BOOST_TEST((out.messages[0] == message(9)));
  BOOST_TEST(!out.all[0][0].defined());
  BOOST_TEST(at::equal(out.all[0][1], at::full({2}, 4.0)));
}

namespace {

// The gradient of its only input is undefined.
struct silent : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {at::Tensor()}; }
  std::string name() const override { return "silent"; }
};

at::Tensor silenced(const at::Tensor& tensor) {
  at::Tensor out = tensor.detach();
  torch::autograd::create_gradient_edge(
    out, make_node<silent>(torch::autograd::edge_list{torch::autograd::impl::gradient_edge(tensor)}));
  return out;
}

using flags = std::vector<bool>;

}  // namespace

// GT-10
BOOST_AUTO_TEST_CASE(what_only_an_unreached_tensor_of_a_message_leads_to_never_runs) {
  pointer_to<counting> dead;
  pointer_to<counting> alive;
  int hooks = 0;
  gradient_table leaves;
  const auto x = leaf({3});
  const auto y = leaf({3});
  const auto shared = counted(x * 2, alive);
  const auto unused = counted(y * 2, dead);
  unused.register_hook([&](const at::Tensor&) { ++hooks; });
  y.register_hook([&](const at::Tensor&) { ++hooks; });
  graph_task_settings settings;
  settings.sends = {{attach_send(message(1), {shared * 2, shared * unused, unused * 2}), 0}};
  settings.leaves = &leaves;
  graph_task task(std::move(settings));
  BOOST_TEST(contains(error_of([&] {
                        task.deliver(0, {at::ones({3}), at::ones({3}), {}}, {false, true, true});
                      }),
                      "for tensor 1, which is said to get none"));
  task.deliver(0, {at::ones({3}), {}, {}}, {false, true, true});
  task.run();
  BOOST_TEST(task.finished());
  BOOST_TEST(alive->runs == 1);
  BOOST_TEST(dead->runs == 0);
  BOOST_TEST(hooks == 0);
  BOOST_TEST(leaves.size() == 1u);
  BOOST_TEST(at::equal(leaves.find(x), at::full({3}, 4.0)));
}

// GT-10
BOOST_AUTO_TEST_CASE(a_gradient_that_a_function_left_undefined_is_delivered) {
  pointer_to<counting> below;
  gradient_table leaves;
  const auto x = leaf({3});
  graph_task task(sending({counted(x * 2, below)}, &leaves));
  task.deliver(0, {at::Tensor()});
  task.run();
  BOOST_TEST(below->runs == 1);
  BOOST_TEST(!below->inputs.at(0).defined());
  BOOST_TEST(leaves.empty());
}

// GT-10
BOOST_AUTO_TEST_CASE(a_recv_tells_unreached_tensors_from_undefined_gradients) {
  for (const bool with_sends : {false, true}) {
    recorder out;
    const auto received =
      attach_recv({node_id{1}, 1}, message(9), {at::ones({2}), at::ones({2}), at::ones({2})}, {true, true, true});
    for (const auto& each : received) {
      each.register_hook([](const at::Tensor& gradient) { return gradient.defined() ? gradient * 2 : gradient; });
      each.retain_grad();
    }
    int hooks = 0;
    received[1].register_hook([&](const at::Tensor&) { ++hooks; });
    received[2].register_hook([&](const at::Tensor&) { ++hooks; });
    graph_task_settings settings;
    settings.emit_to = &out;
    const auto root = received[0] * 3 + silenced(received[1]);
    if (with_sends)
      settings.sends = {{attach_send(message(1), {root, received[2] * 2}), 0}};
    else
      settings.roots = {torch::autograd::impl::gradient_edge(root)}, settings.root_gradients = {at::ones({2})};
    graph_task task(std::move(settings));
    if (with_sends) task.deliver(0, {at::ones({2}), {}}, {false, true});
    task.run();
    BOOST_REQUIRE(out.all.size() == 1u);
    BOOST_TEST((out.unreached[0] == flags{false, false, true}));
    BOOST_TEST(at::equal(out.all[0][0], at::full({2}, 6.0)));
    BOOST_TEST(!out.all[0][1].defined());
    BOOST_TEST(!out.all[0][2].defined());
    BOOST_TEST(hooks == 1);
    BOOST_TEST(!received[2].grad().defined());
    BOOST_TEST(at::equal(received[0].grad(), at::full({2}, 6.0)));
  }
}

// GT-10
BOOST_AUTO_TEST_CASE(a_recv_without_any_gradient_tells_so_unless_a_discovery_has_passed_it_by) {
  for (const bool discovered : {false, true}) {
    recorder out;
    int hooks = 0;
    const auto a = attach_recv({node_id{1}, 1}, message(7), {at::ones({2})}, {true})[0];
    const auto b = attach_recv({node_id{1}, 1}, message(8), {at::ones({2})}, {true})[0];
    a.register_hook([&](const at::Tensor&) { ++hooks; });
    gradient_table leaves;
    const auto x = leaf({2});
    graph_task_settings settings;
    settings.sends = {{attach_send(message(1), {x * 2, a * 2}), 0}, {attach_send(message(2), {b * 2}), 0}};
    settings.leaves = &leaves;
    settings.emit_to = &out;
    graph_task task(std::move(settings));
    if (discovered) BOOST_TEST((task.reach_from_sends({0}) == std::vector<message_id>{message(7)}));
    task.drop(1);
    task.deliver(0, {at::ones({2}), {}}, {false, true});
    task.run();
    BOOST_TEST(task.finished());
    BOOST_TEST(hooks == 0);
    BOOST_TEST(std::count(out.messages.begin(), out.messages.end(), message(7)) == 1);
    BOOST_TEST(std::count(out.messages.begin(), out.messages.end(), message(8)) == (discovered ? 0 : 1));
    for (const auto& each : out.unreached) BOOST_TEST((each == flags{true}));
    BOOST_TEST(at::equal(leaves.find(x), at::full({2}, 2.0)));
  }
}

BOOST_AUTO_TEST_CASE(the_outlet_learns_whether_more_is_ready) {
  recorder out;
  const auto a = attach_recv({node_id{1}, 1}, message(1), {at::ones({1})}, {true})[0];
  const auto b = attach_recv({node_id{1}, 1}, message(2), {at::ones({1})}, {true})[0];
  graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(a + b)};
  settings.root_gradients = {at::ones({1})};
  settings.emit_to = &out;
  graph_task task(std::move(settings));
  task.run();
  BOOST_TEST((out.messages == std::vector<message_id>{message(2), message(1)}));
  BOOST_TEST((out.mores == std::vector<bool>{true, false}));
}

BOOST_AUTO_TEST_CASE(a_pass_without_an_outlet_says_that_a_context_is_needed) {
  const auto a = attach_recv({node_id{1}, 5}, message(7), {at::ones({1})}, {true})[0];
  const std::string text = error_of([&] { troupe::backward({a * 2}); });
  BOOST_TEST(contains(text, "troupe::recv_backward of message 7 of node abc"));
  BOOST_TEST(contains(text, "Call backward() of the context 5 of node 1 instead"));
  const std::string libtorchs = error_of([&] { (a * 2).backward(); });
  BOOST_TEST(libtorchs.ends_with("Call backward() of the context 5 of node 1 instead"), libtorchs);  // no backtrace
}

BOOST_AUTO_TEST_CASE(deliveries_are_checked) {
  gradient_table leaves;
  const auto x = leaf({2, 3});
  graph_task task(sending({x * 2, x * 3}, &leaves));
  const std::string shape = error_of([&] { task.deliver(0, {at::ones({4})}); });
  BOOST_TEST(contains(shape, "troupe::send_backward of message 1 of node abc"));
  BOOST_TEST(contains(shape, "got [4] but expected shape compatible with [2, 3]"));
  const std::string count = error_of([&] { task.deliver(0, {at::ones({2, 3}), at::ones({2, 3})}); });
  BOOST_TEST(contains(count, "invalid number of gradients - expected 1, but got 2"));
  BOOST_TEST(!error_of([&] { task.deliver(0, {at::ones({2, 3}, at::kComplexFloat)}); }).empty());
  BOOST_TEST(task.waiting() == 2u);
  task.deliver(0, {at::ones({5, 2, 3}, at::kDouble)});  // summed to the shape and cast, as in libtorch
  task.drop(1);
  BOOST_TEST(contains(error_of([&] { task.deliver(0, {at::ones({2, 3})}); }), "were delivered or dropped before"));
  BOOST_TEST(contains(error_of([&] { task.deliver(1, {at::ones({2, 3})}); }), "were delivered or dropped before"));
  BOOST_TEST(contains(error_of([&] { task.drop(0); }), "were delivered or dropped before"));
  task.run();
  BOOST_TEST(at::equal(leaves.find(x), at::full({2, 3}, 10.0)));
}

// GT-4
BOOST_AUTO_TEST_CASE(after_an_exception_nothing_runs_and_buffers_are_freed) {
  gradient_table leaves;
  pointer_to<counting> other;
  const auto x = leaf({3});
  const auto bad = x * 2;
  bad.register_hook([](const at::Tensor& gradient) -> at::Tensor {
    TORCH_CHECK(!gradient.defined(), "out of patience");
    return gradient;
  });
  const auto good = counted(x * 3, other);
  graph_task task(sending({good * 1, bad * 1, good * 1}, &leaves));
  at::Tensor early = at::ones({3});
  task.deliver(0, {early});
  task.deliver(1, {at::ones({3})});
  BOOST_TEST(contains(error_of([&] { task.run(); }), "out of patience"));
  BOOST_TEST(task.failed_function() == "MulBackward1");
  BOOST_TEST(early.use_count() == 1u);
  task.deliver(2, {at::ones({3})});
  task.run();
  BOOST_TEST(other->runs == 0);
  BOOST_TEST(leaves.empty());
  BOOST_TEST(task.finished());
}

// GT-4
BOOST_AUTO_TEST_CASE(stop_ends_a_run_between_two_functions) {
  std::atomic<bool> stop{false};
  pointer_to<counting> below;
  gradient_table leaves;
  const auto x = leaf({3});
  const auto y = counted(x * 1, below) * 2;
  y.register_hook([&](const at::Tensor&) { stop = true; });
  graph_task task(sending({y * 2}, &leaves));
  task.deliver(0, {at::ones({3})});
  task.run(&stop);
  BOOST_TEST(below->runs == 0);
  BOOST_TEST(leaves.empty());
  stop = false;
  task.run(&stop);
  BOOST_TEST(below->runs == 0);
  BOOST_TEST(task.failed_function() == "");
}

BOOST_AUTO_TEST_CASE(recvs_are_named_once_over_all_walks) {
  recorder out;
  std::vector<at::Tensor> received;
  for (std::uint64_t i = 0; i < 4; ++i)
    received.push_back(attach_recv({node_id{1}, 1}, message(10 + i), {at::ones({1})}, {true})[0]);
  auto settings = sending({received[0] * received[1], received[1] * received[2], received[3] * 2}, nullptr, &out);
  settings.roots = {torch::autograd::impl::gradient_edge(received[0] * 2)};
  settings.root_gradients = {at::ones({1})};
  graph_task task(std::move(settings));
  const auto sorted = [](std::vector<message_id> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  using ids = std::vector<message_id>;
  BOOST_TEST((task.reach_from_roots() == ids{message(10)}));
  BOOST_TEST((sorted(task.reach_from_sends({0, 1})) == ids{message(11), message(12)}));
  BOOST_TEST(task.reach_from_roots().empty());
  BOOST_TEST((task.reach_from_sends({0, 2}) == ids{message(13)}));
}

BOOST_AUTO_TEST_CASE(a_task_moves_between_threads_with_the_state_of_its_creator) {
  gradient_table leaves;
  const auto x = leaf({3});
  bool hooked = false;
  std::string reason;
  const auto y = x * 2;
  y.register_hook([&](const at::Tensor&) {
    hooked = true;
    at::SavedTensorDefaultHooks::is_enabled() ? reason = "enabled"
                                              : reason = *at::SavedTensorDefaultHooks::get_disabled_error_message();
  });
  at::SavedTensorDefaultHooks::disable("the creator said so");
  graph_task task(sending({y * 2}, &leaves));
  at::SavedTensorDefaultHooks::enable();
  task.deliver(0, {at::ones({3})});
  std::thread([task = std::move(task)]() mutable { task.run(); }).join();
  BOOST_TEST(hooked);
  BOOST_TEST(reason == "the creator said so");
  BOOST_TEST(at::equal(leaves.find(x), at::full({3}, 4.0)));
}

BOOST_AUTO_TEST_CASE(only_tensors_that_can_require_grad_are_attached) {
  const std::string text = error_of([] {
    attach_recv({node_id{1}, 1}, message(3), {at::ones({1}), at::ones({1}, at::kLong)}, {false, true});
  });
  BOOST_TEST(contains(text, "tensor 1 of message 3 of node abc should require grad, but its dtype is Long"));
  const auto given = std::vector<at::Tensor>{at::ones({1}), at::Tensor(), at::ones({1})};
  const auto attached = attach_recv({node_id{1}, 1}, message(3), given, {false, true, true});
  BOOST_TEST(!attached[0].requires_grad());
  BOOST_TEST(!attached[1].defined());
  BOOST_TEST(attached[2].requires_grad());
  BOOST_TEST(attached[2].data_ptr() == given[2].data_ptr());
  BOOST_TEST(!given[2].requires_grad());
  BOOST_TEST(attach_send(message(1), {given[0], at::Tensor()}) == nullptr);
}

namespace {

/// Adds its gradient to the sum that it may change, if there is one.
struct adding : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    auto sums = task->open_sums();
    BOOST_TEST(!task->open_sums().at(0).defined());  // `sums` refers to it, or there is none
    found = sums.at(0).defined() ? sums[0].clone() : at::Tensor();
    if (!found.defined()) return gradients;
    sums[0].add_(gradients[0]);
    return {at::Tensor()};
  }
  graph_task* task = nullptr;
  at::Tensor found;
};

/// The sum that a function finds for `middle`, of which `others` has come.
at::Tensor sum_found_beside(const std::function<at::Tensor(const at::Tensor& middle)>& others, bool create_graph = false) {
  const auto x = at::ones({3}).requires_grad_();
  const auto middle = x * 1;
  const auto function = make_node<adding>(torch::autograd::edge_list{torch::autograd::impl::gradient_edge(middle)});
  at::Tensor added = middle.detach();
  torch::autograd::create_gradient_edge(added, function);
  const auto five = (added * 5).sum();
  const auto root = five + others(middle).sum();  // functions that were made later run first
  graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(root)};
  settings.root_gradients = {at::ones({})};
  settings.create_graph = create_graph;
  graph_task task(std::move(settings));
  BOOST_TEST(task.open_sums().empty());
  function->task = &task;
  task.run();
  BOOST_TEST(at::equal(x.grad(), at::full({3}, 7.0)));
  return function->found;
}

}  // namespace

// GT-13
BOOST_AUTO_TEST_CASE(a_function_adds_in_place_to_a_sum_that_nothing_else_refers_to) {
  const auto twice = [](const at::Tensor& middle) { return middle * 2; };
  BOOST_TEST(at::equal(sum_found_beside(twice), at::full({3}, 2.0)));
  BOOST_TEST(!sum_found_beside(twice, true).defined());
  const auto expanded = [](const at::Tensor& middle) { return middle.sum() * 2; };
  BOOST_TEST(!sum_found_beside(expanded).defined());
  at::Tensor held;
  const auto held_outside = [&](const at::Tensor& middle) {
    const auto other = at::alias(middle);
    other.register_hook([&](const at::Tensor& gradient) { return held = gradient * 2; });
    return other;
  };
  BOOST_TEST(!sum_found_beside(held_outside).defined());
}

// GT-13
BOOST_AUTO_TEST_CASE(an_input_that_the_next_function_does_not_have_has_no_sum) {
  struct asking : torch::autograd::Node {
    using Node::Node;
    torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
      found = task->open_sums();
      return {at::Tensor(), at::Tensor()};
    }
    graph_task* task = nullptr;
    std::vector<at::Tensor> found;
  };
  const auto x = leaf({3});
  const auto y = leaf({3});
  const auto middle = x * 1;
  auto wrong = torch::autograd::impl::gradient_edge(middle);
  ++wrong.input_nr;  // the slot of `y`, which comes next in the plan
  const auto function = make_node<asking>(torch::autograd::edge_list{wrong, torch::autograd::impl::gradient_edge(y)});
  at::Tensor asked = middle.detach();
  torch::autograd::create_gradient_edge(asked, function);
  const auto five = (asked * 5).sum();
  const auto longer = (y * 2).clone().clone().clone().sum();
  graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(five + longer)};
  settings.root_gradients = {at::ones({})};
  graph_task task(std::move(settings));
  function->task = &task;
  BOOST_TEST(contains(error_of([&] { task.run(); }), "leads to input 1 of MulBackward1, which has 1"));
  BOOST_TEST_REQUIRE(function->found.size() == 2U);
  BOOST_TEST(!function->found[0].defined());
  BOOST_TEST(at::equal(function->found[1], at::full({3}, 2.0)));
}

// GT-4
BOOST_AUTO_TEST_CASE(abandoning_frees_the_gradients_of_the_roots) {
  const auto x = leaf({3});
  const auto y = (x * 2).sum();
  at::Tensor gradient = at::ones({});
  graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(y)};
  settings.root_gradients = {gradient};
  graph_task task(std::move(settings));
  BOOST_TEST(gradient.use_count() == 2u);
  task.abandon();
  BOOST_TEST(gradient.use_count() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
