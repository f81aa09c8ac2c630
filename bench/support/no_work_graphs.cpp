// SPDX-License-Identifier: BSD-3-Clause
#include "no_work_graphs.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/input_buffer.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace troupe::bench {

using engine::node_pointer;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

/// A function with one input and one output.
struct pass_on final : Node {
  variable_list apply(variable_list&& inputs) override { return std::move(inputs); }
};

/// A function with one input, and as many outputs as edges.
struct spread final : Node {
  variable_list apply(variable_list&& inputs) override { return variable_list(num_outputs(), inputs[0]); }
};

// Computes `steps` steps of arithmetic. Each step waits for the one before, so the computation takes equally long alone and
// beside other work.
std::uint64_t compute(std::uint64_t steps) {
  std::uint64_t value = 1;
  for (std::uint64_t i = 0; i < steps; ++i) {
    value = value * 6364136223846793005ULL + 1442695040888963407ULL;
    asm volatile("" : "+r"(value));
  }
  return value;
}

std::uint64_t steps_in(double microseconds) {
  constexpr std::uint64_t trial = 1'000'000;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    compute(trial);
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return static_cast<std::uint64_t>(static_cast<double>(trial) * microseconds / best);
}

/// A function with one input and one output, which computes for a while.
struct at_work final : Node {
  explicit at_work(std::uint64_t steps) : steps(steps) {}
  variable_list apply(variable_list&& inputs) override {
    compute(steps);
    return std::move(inputs);
  }
  std::uint64_t steps;
};

/// Sleeps without the 50 us that Linux otherwise adds to each sleep: a device does not add them.
void sleep_precisely(std::chrono::nanoseconds time) {
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::this_thread::sleep_for(time);
}

/// A function with one input that waits for a while, as for a result of its device. The outputs are known beforehand.
struct waiting final : Node {
  waiting(std::chrono::nanoseconds time, variable_list outputs) : time(time), outputs(std::move(outputs)) {}
  variable_list apply(variable_list&&) override {
    if (time.count() > 0) sleep_precisely(time);
    return outputs;
  }
  std::chrono::nanoseconds time;
  variable_list outputs;
};

/// A function with one input and no output.
struct end_of_graph final : Node {
  explicit end_of_graph(std::shared_ptr<listener> to) : to(std::move(to)) {}
  variable_list apply(variable_list&& inputs) override {
    if (to->listening) to->heard.push_back(inputs[0].clone());
    return {};
  }
  std::shared_ptr<listener> to;
};

/// Makes functions from the end of a graph to its root, as a forward pass does.
class builder {
 public:
  builder() : like_(at::ones({1})), end_(std::make_shared<listener>()) {}

  template <class Function, class... Arguments>
  node_pointer add(const std::vector<node_pointer>& next, Arguments&&... arguments) {
    return add_for<Function>(like_, next, std::forward<Arguments>(arguments)...);
  }

  /// The function's input is like `input`.
  template <class Function, class... Arguments>
  node_pointer add_for(const at::Tensor& input, const std::vector<node_pointer>& next, Arguments&&... arguments) {
    node_pointer made = engine::make_node<Function>(std::forward<Arguments>(arguments)...);
    for (const auto& to : next) made->add_next_edge({to, 0});
    made->add_input_metadata(input);
    ++functions_;
    return made;
  }

  node_pointer add_end() { return add<end_of_graph>({}, end_); }

  no_work_graph finish(node_pointer root, std::function<void()> bare_loop) const {
    no_work_graph graph;
    graph.root = at::ones({1});
    torch::autograd::impl::set_gradient_edge(graph.root, {std::move(root), 0});
    graph.gradient = like_;
    graph.functions = functions_;
    graph.bare_loop = std::move(bare_loop);
    graph.end = end_;
    return graph;
  }

  at::Tensor like() const { return like_; }

 private:
  at::Tensor like_;
  std::shared_ptr<listener> end_;
  std::size_t functions_ = 0;
};

std::vector<Node*> pointers(const std::vector<node_pointer>& functions) {
  std::vector<Node*> all;
  all.reserve(functions.size());
  for (const auto& each : functions) all.push_back(each.get());
  return all;
}

}  // namespace

no_work_graph make_chain(std::size_t length) {
  builder build;
  auto head = build.add_end();
  std::vector<Node*> order(length);
  order[length - 1] = head.get();
  for (std::size_t i = length - 1; i-- > 0;) {
    head = build.add<pass_on>({head});
    order[i] = head.get();
  }
  auto loop = [order = std::move(order), gradient = build.like()] {
    variable_list values{gradient};
    for (Node* each : order) values = (*each)(std::move(values));
  };
  return build.finish(std::move(head), std::move(loop));
}

no_work_graph make_wide(std::size_t pairs) {
  builder build;
  std::vector<node_pointer> firsts;
  std::vector<Node*> seconds;
  for (std::size_t i = 0; i < pairs; ++i) {
    auto second = build.add_end();
    seconds.push_back(second.get());
    firsts.push_back(build.add<pass_on>({second}));
  }
  auto root = build.add<spread>(firsts);
  auto loop = [root = root.get(), firsts = pointers(firsts), seconds = std::move(seconds), gradient = build.like()] {
    variable_list outputs = (*root)({gradient});
    variable_list values;
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      values.clear();
      values.push_back(std::move(outputs[i]));
      values = (*seconds[i])((*firsts[i])(std::move(values)));
    }
  };
  return build.finish(std::move(root), std::move(loop));
}

no_work_graph make_fan_in(std::size_t width) {
  builder build;
  auto last = build.add_end();
  std::vector<node_pointer> middle;
  for (std::size_t i = 0; i < width; ++i) middle.push_back(build.add<pass_on>({last}));
  auto root = build.add<spread>(middle);
  auto loop = [root = root.get(), middle = pointers(middle), last = last.get(), gradient = build.like()] {
    variable_list outputs = (*root)({gradient});
    variable_list values;
    variable_list sum(1);
    for (std::size_t i = 0; i < middle.size(); ++i) {
      values.clear();
      values.push_back(std::move(outputs[i]));
      values = (*middle[i])(std::move(values));
      engine::accumulate(sum[0], std::move(values[0]));
    }
    (*last)(std::move(sum));
  };
  return build.finish(std::move(root), std::move(loop));
}

no_work_graph make_wide_at_work(std::size_t width, double microseconds) {
  builder build;
  const std::uint64_t steps = steps_in(microseconds);
  std::vector<node_pointer> middle;
  for (std::size_t i = 0; i < width; ++i) middle.push_back(build.add<at_work>({build.add_end()}, steps));
  return build.finish(build.add<spread>(middle), {});
}

no_work_graph make_wide_over_devices(std::size_t width, double microseconds, const std::vector<c10::Device>& devices) {
  builder build;
  const std::uint64_t steps = steps_in(microseconds);
  const auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(microseconds * 1000));
  std::vector<node_pointer> middle;
  variable_list gradients;
  for (std::size_t i = 0; i < width; ++i) {
    middle.push_back(build.add<at_work>({build.add_end()}, steps));
    gradients.push_back(build.like());
    for (const c10::Device device : devices) {
      const auto there = at::ones({1}, at::device(device));
      middle.push_back(build.add_for<waiting>(there, {build.add_end()}, time, variable_list{build.like()}));
      gradients.push_back(there);
    }
  }
  return build.finish(build.add<waiting>(middle, std::chrono::nanoseconds(0), std::move(gradients)), {});
}

no_work_graph make_chain_over_devices(std::size_t pairs, c10::Device device) {
  builder build;
  const auto there = at::ones({1}, at::device(device));
  const std::chrono::nanoseconds at_once(0);
  auto head = build.add_end();
  for (std::size_t i = 0; i < pairs; ++i) {
    head = build.add_for<waiting>(there, {head}, at_once, variable_list{build.like()});
    head = build.add<waiting>({head}, at_once, variable_list{there});
  }
  return build.finish(std::move(head), {});
}

no_work_graph make_lattice(std::size_t layers, std::size_t width) {
  builder build;
  std::vector<node_pointer> layer;
  for (std::size_t i = 0; i < width; ++i) layer.push_back(build.add_end());
  std::vector<std::vector<Node*>> order{pointers(layer)};  // from the last layer to the first
  for (std::size_t at = 1; at < layers; ++at) {
    std::vector<node_pointer> before;
    for (std::size_t i = 0; i < width; ++i) before.push_back(build.add<spread>({layer[i], layer[(i + 1) % width]}));
    layer = std::move(before);
    order.push_back(pointers(layer));
  }
  auto root = build.add<spread>(layer);
  auto loop = [root = root.get(), order = std::move(order), width, gradient = build.like()] {
    variable_list sums = (*root)({gradient});
    variable_list next;
    variable_list values;
    for (std::size_t at = order.size(); at-- > 0;) {
      next.assign(width, at::Tensor());
      for (std::size_t i = 0; i < width; ++i) {
        values.clear();
        values.push_back(std::move(sums[i]));
        values = (*order[at][i])(std::move(values));
        if (at > 0) {
          engine::accumulate(next[i], std::move(values[0]));
          engine::accumulate(next[(i + 1) % width], std::move(values[1]));
        }
      }
      sums.swap(next);
    }
  };
  return build.finish(std::move(root), std::move(loop));
}

}  // namespace troupe::bench
