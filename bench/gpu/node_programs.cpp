// SPDX-License-Identifier: BSD-3-Clause
#include "node_programs.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "../support/stopwatch.hpp"

namespace troupe::bench {

namespace {

constexpr std::int64_t width = 64;
constexpr const char* called = "gpu_check_b";

settings named(std::string name, std::size_t pass_workers = 0) {
  settings result;
  result.name = std::move(name);
  result.pass_workers = pass_workers;
  result.deadline = std::chrono::seconds(60);
  return result;
}

/// The functions that steps of a program run on either node. The product reads a weight that no other step reads.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight) { return at::mm(at::sigmoid(x), weight) / width; }
at::Tensor step_of_cpu(const at::Tensor& x) { return at::tanh(x) * 1.5; }

/// A function whose backward asks for more memory than any device has. CUDA's allocator would refuse 2^60 elements without trying, and
/// the system may promise 2^44 of them to the CPU.
struct asks_too_much : torch::autograd::Function<asks_too_much> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 2; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
    return {at::empty({std::int64_t{1} << (gradients.at(0).is_cpu() ? 60 : 44)}, gradients.at(0).options())};
  }
};

void add_functions(node& to) {
  const auto weights = std::make_shared<std::vector<at::Tensor>>();
  to.functions().add("weights", [weights](call_arguments& arguments) {
    weights->clear();
    for (const auto& each : arguments.tensors) weights->push_back(each.detach().requires_grad_());
    return call_reply{};
  });
  to.functions().add("product", [weights](call_arguments& arguments) {
    const auto index = static_cast<std::size_t>(get<std::int64_t>(arguments.values, "weight"));
    return call_reply{{product(arguments.tensors.at(0), weights->at(index))}};
  });
  to.functions().add("gradients", [weights](call_arguments& arguments) {
    call_reply reply;
    for (const auto& each : *weights) reply.tensors.push_back(arguments.gradients->find(each));
    return reply;
  });
  to.functions().add("step_of_cpu",
                     [](call_arguments& arguments) { return call_reply{{step_of_cpu(arguments.tensors.at(0))}}; });
  to.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
  to.functions().add("asks_too_much",
                     [](call_arguments& arguments) { return call_reply{{asks_too_much::apply(arguments.tensors.at(0))}}; });
  to.functions().add("on_cpu", [](call_arguments& arguments) {
    const auto& x = arguments.tensors.at(0);
    if (!x.is_cpu()) throw std::runtime_error("expected a tensor on the CPU, but it is on " + x.device().str());
    return call_reply{{x + 1}};
  });
}

/// A random program, drawn once and run in two ways: with all steps here, and with some on the other node.
/// A value goes to at most two steps: a sum of two gradients has the same bits in either order.
class program {
 public:
  program(unsigned seed, const gpu_device& where, std::vector<c10::Stream> streams)
      : where_(where), streams_(std::move(streams)) {
    std::mt19937 random(seed);
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const auto leaf = [&] { return (at::rand({width, width}, generator) + 0.5).to(where.device()).requires_grad_(); };
    for (std::size_t left = 2 + random() % 3; left > 0; --left) leaves.push_back(leaf());
    for (std::size_t left = 6 + random() % 20; left > 0; --left) {
      steps_.push_back({static_cast<kind>(random() % 5), random(), random(), random()});
      if (steps_.back().what == kind::product) weights.push_back(leaf());
    }
  }

  /// The loss. With `nodes`, products and steps of the CPU run on the other node.
  at::Tensor run(two_nodes* nodes) const {
    std::vector<at::Tensor> values = leaves;
    std::vector<int> uses(values.size(), 0);
    const auto take = [&](std::size_t draw) {
      std::size_t at = draw % values.size();
      while (uses[at] == 2) at = (at + 1) % values.size();
      ++uses[at];
      return values[at];
    };
    std::int64_t products = 0;
    for (const step& each : steps_) {
      where_.synchronize();
      std::optional<c10::StreamGuard> on;
      if (!streams_.empty()) on.emplace(streams_[each.stream % streams_.size()]);
      values.push_back(one(each, take, products, nodes));
      uses.push_back(0);
    }
    where_.synchronize();
    at::Tensor loss;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (uses[i] == 0) loss = loss.defined() ? loss + values[i].mean() : values[i].mean();
    }
    return loss;
  }

  std::vector<at::Tensor> leaves, weights;

 private:
  enum class kind { product, step_of_cpu, local_step_of_cpu, sum, tanh };
  struct step {
    kind what;
    std::size_t first, second, stream;
  };

  template <class Take>
  at::Tensor one(const step& each, const Take& take, std::int64_t& products, two_nodes* nodes) const {
    const at::Tensor x = take(each.first);
    const auto call = [&](const char* function, const at::Tensor& argument, attributes values = {}) {
      return nodes->call(function, {argument}, std::move(values)).tensors.at(0);
    };
    switch (each.what) {
      case kind::product: {
        const auto index = products++;
        return nodes != nullptr ? call("product", x, {{"weight", index}})
                                : product(x, weights[static_cast<std::size_t>(index)]);
      }
      case kind::step_of_cpu:
        return (nodes != nullptr ? call("step_of_cpu", x.cpu()) : step_of_cpu(x.cpu())).to(where_.device());
      case kind::local_step_of_cpu:
        return step_of_cpu(x.cpu()).to(where_.device());
      case kind::sum:
        return x + take(each.second);
      case kind::tanh:
        return at::tanh(x);
    }
    return x;
  }

  const gpu_device& where_;
  std::vector<c10::Stream> streams_;
  std::vector<step> steps_;
};

/// The gradients of a pass of libtorch's engine over all steps in one process.
std::vector<at::Tensor> gradients_in_one_process(const gpu_device& where, const program& drawn) {
  std::vector<at::Tensor> all = drawn.leaves;
  all.insert(all.end(), drawn.weights.begin(), drawn.weights.end());
  torch::autograd::backward({drawn.run(nullptr)}, {});
  where.synchronize();
  for (auto& each : all) each = each.grad();
  return all;
}

std::vector<at::Tensor> gradients_on_nodes(const gpu_device& where, const program& drawn, two_nodes& nodes) {
  std::vector<at::Tensor> all;
  for (const auto& each : drawn.weights) all.push_back(each.detach());
  nodes.call("weights", std::exchange(all, {}));
  context pass(nodes.a);
  pass.backward({drawn.run(&nodes)}).get();
  for (const auto& each : drawn.leaves) all.push_back(pass.gradient(each));
  const auto of_weights = nodes.call("gradients");
  all.insert(all.end(), of_weights.tensors.begin(), of_weights.tensors.end());
  where.synchronize();
  return all;
}

}  // namespace

other_node::other_node(const std::function<void()>& begin)
    : process_([&begin](int stop, const auto& tell) {
        begin();
        node here(named(called));
        add_functions(here);
        tell(here.port());
        wait_for(stop);
      }) {}

std::uint16_t other_node::port() {
  if (!port_) port_ = process_.told();
  return *port_;
}

two_nodes::two_nodes(std::size_t pass_workers) : a(named("gpu_check_a", pass_workers)) {
  b.emplace(named(called, pass_workers));
  add_functions(*b);
  a.join("127.0.0.1", b->port());
}

two_nodes::two_nodes(other_node& there) : a(named("gpu_check_a")) { a.join("127.0.0.1", there.port()); }

call_reply two_nodes::call(std::string function, std::vector<at::Tensor> tensors, attributes values,
                           std::optional<wire_format> format) {
  return a.peer(called).call(std::move(function), std::move(tensors), std::move(values), {}, {}, format).get();
}

std::string two_nodes::transport() const {
  for (const auto& each : a.status().peers)
    if (each.who.name == called) return each.transport;
  return "none";
}

// On several streams libtorch's engine sometimes makes wrong sums, so its pass has all steps on one stream. The bits are the same.
void compare_programs(const gpu_device& where, two_nodes& nodes, const std::string& what, unsigned programs,
                      const std::vector<c10::Stream>& streams, gpu_report& report) {
  std::vector<at::Tensor> peer, troupe;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    const auto expected = gradients_in_one_process(where, program(seed, where, {}));
    peer.insert(peer.end(), expected.begin(), expected.end());
    const auto came = gradients_on_nodes(where, program(seed, where, streams), nodes);
    troupe.insert(troupe.end(), came.begin(), came.end());
  }
  report.same(what + " (" + std::to_string(programs) + ")", peer, troupe);
}

void compare_compressed(const gpu_device& where, two_nodes& nodes, const std::string& what, gpu_report& report) {
  const auto x = at::rand({1 << 16}, where.device()) - 0.5;
  std::vector<at::Tensor> expected, came;
  for (const auto format : {wire_format::bfloat16, wire_format::float16, wire_format::int8}) {
    const auto echo = [&](const at::Tensor& of) { return nodes.call("echo", {of}, {}, format).tensors.at(0); };
    expected.push_back(echo(x.cpu()));
    came.push_back(echo(x));
  }
  where.synchronize();
  report.same(what, expected, came);
}

void measure_echoes(const gpu_device& where, bool quick, two_nodes& nodes, const std::string& what, gpu_report& report) {
  const std::string unit = quick ? " KiB" : " MiB";
  for (const std::int64_t size : {1, 16, 64, 256}) {
    const std::int64_t elements = size << (quick ? 8 : 18);
    const auto here = at::rand({elements});
    const auto there = here.to(where.device());
    workload work;
    work.before = [&] { where.synchronize(); };
    work.run = [&](runner which) {
      nodes.call("echo", {which == runner::peer ? here : there});
      where.synchronize();
    };
    const auto took = measure("nodes", work, quick ? effort::quick() : effort{0.05, 4, 2});
    const auto rate = [&](double seconds) { return 2 * 4 * static_cast<double>(elements) / seconds / 1e9; };
    char text[96];
    std::snprintf(text, sizeof text, "CPU %.2f GB/s, device %.2f GB/s", rate(took.peer), rate(took.troupe));
    report.figure(what + ": a call with " + std::to_string(size) + unit + ", there and back", text, took.peer / took.troupe);
  }
}

}  // namespace troupe::bench
