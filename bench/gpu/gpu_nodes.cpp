// SPDX-License-Identifier: BSD-3-Clause
#include "checks.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <troupe/engine/cost_book.hpp>
#include <troupe/troupe.hpp>

#include "../support/stopwatch.hpp"

namespace troupe::bench {

namespace {

constexpr std::int64_t width = 64;

settings named(std::string name, std::size_t pass_workers) {
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

struct two_nodes {
  /// `pass_workers`: with one or more, functions that wait for the device run on its device worker.
  explicit two_nodes(std::size_t pass_workers = 0)
      : a(named("gpu_check_a", pass_workers)), b(named("gpu_check_b", pass_workers)) {
    b.functions().add("product", [this](call_arguments& arguments) {
      const auto index = static_cast<std::size_t>(get<std::int64_t>(arguments.values, "weight"));
      return call_reply{{product(arguments.tensors.at(0), weights.at(index))}};
    });
    b.functions().add("step_of_cpu",
                      [](call_arguments& arguments) { return call_reply{{step_of_cpu(arguments.tensors.at(0))}}; });
    b.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
    b.functions().add("gradients", [this](call_arguments& arguments) {
      call_reply reply;
      for (const auto& each : weights) reply.tensors.push_back(arguments.gradients->find(each));
      return reply;
    });
    b.functions().add("asks_too_much",
                      [](call_arguments& arguments) { return call_reply{{asks_too_much::apply(arguments.tensors.at(0))}}; });
    b.functions().add("on_cpu", [](call_arguments& arguments) {
      const auto& x = arguments.tensors.at(0);
      if (!x.is_cpu()) throw std::runtime_error("expected a tensor on the CPU, but it is on " + x.device().str());
      return call_reply{{x + 1}};
    });
    a.join("127.0.0.1", b.port());
  }

  std::vector<at::Tensor> weights;  // of `b`
  node a;
  node b;
};

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
      return nodes->a.peer(nodes->b.name()).call(function, {argument}, std::move(values)).get().tensors.at(0);
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
  nodes.weights = drawn.weights;
  context pass(nodes.a);
  pass.backward({drawn.run(&nodes)}).get();
  std::vector<at::Tensor> all;
  for (const auto& each : drawn.leaves) all.push_back(pass.gradient(each));
  const auto of_weights = nodes.a.peer(nodes.b.name()).call("gradients").get();
  all.insert(all.end(), of_weights.tensors.begin(), of_weights.tensors.end());
  where.synchronize();
  return all;
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

void compare_map(const gpu_device& where, two_nodes& nodes, gpu_report& report) {
  const auto x = at::rand({1 << 16}, where.device());
  const device_map to_cpu{{where.device().str(), "cpu"}};
  const auto came = nodes.a.peer(nodes.b.name()).with_devices(to_cpu).call("on_cpu", {x}).get().tensors;
  where.synchronize();
  report.same("nodes: a device map takes a tensor to the CPU, and the result back", {x + 1}, came);
}

/// A tensor of the device that travels compressed has the elements of one of the CPU that does.
void compare_compressed(const gpu_device& where, two_nodes& nodes, gpu_report& report) {
  const auto x = at::rand({1 << 16}, where.device()) - 0.5;
  std::vector<at::Tensor> expected, came;
  for (const auto format : {wire_format::bfloat16, wire_format::float16, wire_format::int8}) {
    const auto echo = [&](const at::Tensor& of) {
      return nodes.a.peer(nodes.b.name()).call("echo", {of}, {}, {}, {}, format).get().tensors.at(0);
    };
    expected.push_back(echo(x.cpu()));
    came.push_back(echo(x));
  }
  where.synchronize();
  report.same("nodes: tensors that travel as bfloat16, float16 and int8", expected, came);
}

/// A function of the device and one of the CPU, each of which ends once the other has begun. The worker of the CPU is busy, so that the
/// thread of the pass has one of the two, and a device worker the other.
void compare_device_worker(const gpu_device& where, node& here, gpu_report& report) {
  const std::string what = "passes: a device worker runs a function beside one of the CPU";
  if (where.device().is_cpu()) return report.skipped(what, "the CPU has no device worker");
  worker_team team(here, 1);
  std::promise<void> over;
  team.post([is_over = over.get_future().share()] { is_over.wait(); });
  const auto x = at::ones({8}).requires_grad_();
  const auto y = at::ones({8}, where.device()).requires_grad_();
  const std::vector<at::Tensor> products{x * 2, y * 3};
  std::vector<std::promise<void>> begun(2);
  std::vector<std::thread::id> threads(2);
  std::vector<char> in_time(2);
  for (std::size_t i = 0; i < 2; ++i) {
    team.costs().note(engine::cost_book::kind_of(*products[i].grad_fn(), {at::ones_like(products[i])}), 1'000'000'000);
    products[i].register_hook([&, i](const at::Tensor&) {
      threads[i] = std::this_thread::get_id();
      begun[i].set_value();
      in_time[i] = begun[1 - i].get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready ? 1 : 0;
    });
  }
  team.busy() = true;
  const auto gradients = troupe::grad({products[0].sum() + products[1].sum().cpu()}, {x, y}, {}, {.workers = &team});
  over.set_value();
  where.synchronize();
  if (in_time[0] == 0 || in_time[1] == 0 || threads[0] == threads[1])
    return report.failure(what, "one thread ran both functions");
  report.same(what, {at::full({8}, 2.0F), at::full({8}, 3.0F)}, {gradients[0], gradients[1].cpu()});
}

/// A pass for whose function the memory does not suffice fails, and says where. The nodes go on.
void compare_without_memory(const gpu_device& where, two_nodes& nodes, gpu_report& report) {
  const auto x = at::rand({8}, where.device()).requires_grad_();
  std::string text = "no error";
  {
    context pass(nodes.a);
    const auto y = nodes.a.peer(nodes.b.name()).call("asks_too_much", {x}).get().tensors.at(0);
    try {
      pass.backward({y.sum()}).get();
    } catch (const error& failed) {
      text = failed.what();
    }
  }
  for (const std::string part : {"gpu_check_b", "asks_too_much", "memory"})
    if (text.find(part) == std::string::npos)
      return report.failure("nodes: memory that runs out", "no " + part + " in: " + text);
  context pass(nodes.a);
  pass.backward({nodes.a.peer(nodes.b.name()).call("echo", {x * 3}).get().tensors.at(0).sum()}).get();
  const auto gradient = pass.gradient(x);
  where.synchronize();
  report.same("nodes: after memory ran out in a pass, the next pass", {at::full({8}, 3.0F)}, {gradient});
}

}  // namespace

void compare_nodes(const gpu_device& where, bool quick, gpu_report& report) {
  two_nodes nodes;
  const unsigned programs = quick ? 5 : 100;
  compare_programs(where, nodes, "nodes: gradients of passes with steps on two nodes and their CPUs", programs, {}, report);
  compare_without_memory(where, nodes, report);
  compare_compressed(where, nodes, report);
  two_nodes with_workers(1);
  compare_programs(where, with_workers, "nodes: gradients of such passes with device workers", programs, {}, report);
  compare_device_worker(where, with_workers.b, report);
  const std::string mixed = "nodes: gradients of such passes on 4 streams";
  const std::string map = "nodes: a device map";
  if (where.device().is_cpu()) {
    report.skipped(mixed, "the CPU has no streams");
    return report.skipped(map, "both nodes have the CPU alone");
  }
  compare_programs(where, nodes, mixed, programs, where.streams(4), report);
  compare_map(where, nodes, report);
}

void measure_nodes(const gpu_device& where, bool quick, gpu_report& report) {
  two_nodes nodes;
  const std::string unit = quick ? " KiB" : " MiB";
  for (const std::int64_t size : {1, 16, 64, 256}) {
    const std::int64_t elements = size << (quick ? 8 : 18);
    const auto here = at::rand({elements});
    const auto there = here.to(where.device());
    workload work;
    work.before = [&] { where.synchronize(); };
    work.run = [&](runner which) {
      nodes.a.peer(nodes.b.name()).call("echo", {which == runner::peer ? here : there}).get();
      where.synchronize();
    };
    const auto took = measure("nodes", work, quick ? effort::quick() : effort{0.05, 4, 4});
    const auto rate = [&](double seconds) { return 2 * 4 * static_cast<double>(elements) / seconds / 1e9; };
    char text[96];
    std::snprintf(text, sizeof text, "CPU %.2f GB/s, device %.2f GB/s", rate(took.peer), rate(took.troupe));
    report.figure("nodes: a call with " + std::to_string(size) + unit + ", there and back", text, took.peer / took.troupe);
  }
}

}  // namespace troupe::bench
