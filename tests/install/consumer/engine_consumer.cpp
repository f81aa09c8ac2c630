// SPDX-License-Identifier: BSD-3-Clause
// A user's program: backward passes on this thread, without any actor.
#include <cstdio>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task.hpp>

int main() {
  auto weight = at::arange(3, at::kFloat).set_requires_grad(true);
  auto loss = (weight * weight).sum();
  bool called = false;
  weight.register_hook([&](const at::Tensor&) { troupe::queue_callback([&] { called = true; }); });
  troupe::backward({loss}, {}, {.keep_graph = true});

  // The same pass as a graph task, with a hook that changes what the pass captures.
  auto edge = [](const at::Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); };
  troupe::engine::graph_task_settings settings{
    .roots = {edge(loss)}, .root_gradients = {at::ones_like(loss)}, .inputs = {edge(weight)}, .capture = true};
  settings.capture_hooks.push_back({0, [](const at::Tensor& gradient) { return 2 * gradient; }});
  troupe::engine::graph_task task(settings);
  task.run();
  auto right = called && at::equal(weight.grad(), 2 * weight) && at::equal(task.take_captures().at(0), 4 * weight);
  std::printf("gradients %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
