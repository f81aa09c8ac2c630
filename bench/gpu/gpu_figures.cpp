// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <queue>
#include <unordered_map>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/tensor_packing.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/torch_compat.hpp>

#include "../support/stopwatch.hpp"
#include "checks.hpp"

namespace troupe::bench {

/// A backward pass without an engine: the functions of a graph in an order that was found beforehand, called in a loop. What a pass takes
/// at least, on one thread and one stream. Gradients are reduced to the shapes that functions expect, as in a pass.
class known_order {
 public:
  /// The graph is kept alive.
  explicit known_order(const at::Tensor& loss);
  /// Runs the functions, in the order of libtorch's engine. Gradients gather in `.grad`.
  void run() const;

 private:
  struct edge {
    std::size_t target;  // its index in the order
    std::uint32_t input;
  };
  struct step {
    engine::node_pointer function;
    std::vector<std::vector<edge>> outputs;  // of each output: none, or one
  };
  at::Tensor loss_;
  std::vector<step> steps_;
};

namespace {

using torch::autograd::Node;

std::unordered_map<Node*, int> waiting_for(Node* root) {
  std::unordered_map<Node*, int> inputs{{root, 0}};
  std::vector<Node*> left{root};
  while (!left.empty()) {
    Node* const function = left.back();
    left.pop_back();
    for (const auto& next : function->next_edges()) {
      if (!next.is_valid()) continue;
      if (++inputs[next.function.get()] == 1) left.push_back(next.function.get());
    }
  }
  return inputs;
}

void add_to(at::Tensor& sum, at::Tensor more) {
  if (!more.defined()) return;
  if (!sum.defined())
    sum = std::move(more);
  else if (sum.use_count() == 1 && sum.storage().use_count() == 1 && sum.is_non_overlapping_and_dense())
    sum.add_(more);
  else
    sum = sum + more;
}

}  // namespace

known_order::known_order(const at::Tensor& loss) : loss_(loss) {
  auto inputs = waiting_for(loss.grad_fn().get());
  const auto later = [](const auto& a, const auto& b) { return a->sequence_nr() < b->sequence_nr(); };
  std::priority_queue<engine::node_pointer, std::vector<engine::node_pointer>, decltype(later)> ready(later);
  ready.push(loss.grad_fn());
  std::unordered_map<Node*, std::size_t> numbers;
  while (!ready.empty()) {
    const auto function = ready.top();
    ready.pop();
    numbers.emplace(function.get(), steps_.size());
    steps_.push_back({function, {}});
    for (const auto& next : function->next_edges())
      if (next.is_valid() && --inputs.at(next.function.get()) == 0) ready.push(next.function);
  }
  for (step& each : steps_) {
    for (const auto& next : each.function->next_edges()) {
      auto& output = each.outputs.emplace_back();
      if (next.is_valid()) output.push_back({numbers.at(next.function.get()), next.input_nr});
    }
  }
}

void known_order::run() const {
  const c10::AutoGradMode no_graph(false);
  std::vector<std::vector<at::Tensor>> gradients(steps_.size());
  gradients.front() = {at::ones_like(loss_)};
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto& inputs = gradients[i];
    inputs.resize(steps_[i].function->num_inputs());
    auto outputs = (*steps_[i].function)(std::move(inputs));
    torch::autograd::validate_outputs(steps_[i].function->next_edges(), outputs,
                                      [](const std::string& reason) { return reason; });
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      for (const edge& to : steps_[i].outputs[k]) {
        auto& of_target = gradients[to.target];
        if (of_target.size() <= to.input) of_target.resize(to.input + 1);
        add_to(of_target[to.input], std::move(outputs[k]));
      }
    }
  }
}

namespace {

std::string micros(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1e-4 ? "%.1f" : "%.0f", seconds * 1e6);
  return std::string(text) + " µs";
}

/// Runs both sides in turns. The device is idle before and after each run.
results in_turns(const gpu_device& where, bool quick, const std::string& name, const std::function<void()>& before,
                 const std::function<void(runner)>& run, bool has_floor = false) {
  workload work;
  work.before = [&] {
    if (before) before();
    where.synchronize();
  };
  work.run = [&](runner which) {
    run(which);
    where.synchronize();
  };
  work.has_floor = has_floor;
  return measure(name, work, quick ? effort::quick() : effort{0.05, 6, 6});
}

void measure_pass(const gpu_device& where, bool quick, const std::string& name, const std::string& what, const model_graph& of,
                  double bar, gpu_report& report) {
  const auto clear = [&] {
    for (const auto& each : of.parameters) each.mutable_grad().reset();
  };
  const known_order functions(of.loss);
  const auto run = [&](runner which) {
    switch (which) {
      case runner::peer:
        return torch::autograd::backward({of.loss}, {}, true);
      case runner::troupe:
        return troupe::backward({of.loss}, {}, true);
      case runner::floor:
        return functions.run();
    }
  };
  const auto gradients_of = [&](runner which) {
    clear();
    run(which);
    std::vector<at::Tensor> all;
    for (const auto& each : of.parameters) all.push_back(each.grad());
    return all;
  };
  const auto expected = gradients_of(runner::peer), came = gradients_of(runner::floor);
  for (std::size_t i = 0; i < expected.size(); ++i)  // not always the same bits: see CUBLAS_WORKSPACE_CONFIG in check.sh
    if (!at::allclose(expected[i], came[i], 1e-3, 1e-6))
      return report.failure(what, "the functions alone make other gradients");
  const auto took = in_turns(where, quick, name, clear, run, true);
  report.figure(what,
                "libtorch " + micros(took.peer) + ", troupe " + micros(took.troupe) + ", functions alone " +
                  micros(took.floor) + " (ratio " + gpu_report::two_digits(took.peer / took.floor) + ")",
                took.peer / took.troupe, bar);
}

model_graph small_chain(const gpu_device& where, int length) {
  model_graph made;
  made.parameters.push_back(at::ones({16}, where.device()).requires_grad_());
  at::Tensor value = made.parameters.front();
  for (int i = 0; i < length; ++i) value = value * 1.0001;
  made.loss = value.sum();
  return made;
}

model_graph wide_layers(const gpu_device& where, std::int64_t width) {
  model_graph made;
  at::Tensor value = at::randn({width, width}, where.device());
  for (int layer = 0; layer < 4; ++layer) {
    made.parameters.push_back((at::randn({width, width}, where.device()) / static_cast<double>(width)).requires_grad_());
    value = at::relu(at::linear(value, made.parameters.back()));
  }
  made.loss = value.square().mean();
  return made;
}

void measure_packing(const gpu_device& where, bool quick, const devices::cuda::functions& kernels, gpu_report& report) {
  std::vector<at::Tensor> gradients;
  for (int i = 0; i < 1000; ++i) gradients.push_back(at::randn({1024}, where.device()));
  const auto took = in_turns(where, quick, "packing", {},
                             [&](runner which) { devices::pack(gradients, which == runner::peer ? nullptr : &kernels); });
  report.figure("packing 1,000 gradients of 4 KiB", "copies " + micros(took.peer) + ", kernel " + micros(took.troupe),
                took.peer / took.troupe, 10);
}

/// A kernel that reads and writes so many bytes for each element.
struct measured_kernel {
  std::string name;
  double bytes;
  std::function<int()> launch;
};

void measure_compression(const gpu_device& where, bool quick, const devices::cuda::functions& kernels, gpu_report& report) {
  const std::int64_t count = quick ? std::int64_t{1} << 12 : std::int64_t{1} << 26;
  const auto make = [&](std::int64_t size, at::ScalarType type) {
    return at::zeros({size}, at::TensorOptions(where.device()).dtype(type));
  };
  const auto elements = at::randn({count}, where.device());
  const auto copy = make(count, at::kFloat), residual = make(count, at::kFloat);
  const auto halves = make(count, at::kShort);
  const auto bytes = make(static_cast<std::int64_t>(element_formats::int8_bytes(static_cast<std::uint64_t>(count))), at::kChar);
  const auto of = [](const at::Tensor& tensor) { return static_cast<float*>(tensor.mutable_data_ptr()); };
  auto* const half = static_cast<std::uint16_t*>(halves.mutable_data_ptr());
  auto* const code = static_cast<std::int8_t*>(bytes.mutable_data_ptr());
  const auto size = static_cast<std::uint64_t>(count);
  void* const stream = devices::current_stream(where.device());
  const devices::cuda::encoding plain{of(elements), nullptr, code, size};
  const devices::cuda::encoding with_residual{of(elements), of(residual), code, size};
  const devices::cuda::decoding back{code, of(copy), size};
  const double of_scale = 4.0 / element_formats::block_elements;
  const std::vector<measured_kernel> all{
    {"float32 to bfloat16", 6, [&] { return kernels.to_bfloat16(of(elements), half, size, stream); }},
    {"bfloat16 to float32", 6, [&] { return kernels.from_bfloat16(half, of(copy), size, stream); }},
    {"encode", 5 + of_scale, [&] { return kernels.encode_blocks(&plain, stream); }},
    {"encode with a residual", 13 + of_scale, [&] { return kernels.encode_blocks(&with_residual, stream); }},
    {"decode", 5 + of_scale, [&] { return kernels.decode_blocks(&back, stream); }}};
  for (const auto& each : all) {
    const auto took = in_turns(where, quick, "compression", {}, [&](runner which) {
      if (which == runner::peer)
        copy.copy_(elements);
      else
        devices::expect_launched(each.launch(), each.name.c_str(), where.device(), kernels);
    });
    const auto rate = [&](double bytes, double seconds) { return static_cast<double>(count) * bytes / seconds / 1e9; };
    const double copies = rate(8, took.peer), own = rate(each.bytes, took.troupe);
    char text[96];
    std::snprintf(text, sizeof text, "copy %.0f GB/s, kernel %.0f GB/s", copies, own);
    report.figure("share of a copy's bandwidth: " + each.name, text, own / copies, 0.6);
  }
}

/// A GPU that had nothing to do has low clocks. After a second of work they are high.
void warm_up(const gpu_device& where) {
  if (where.device().is_cpu()) return;
  const at::Tensor factor = at::randn({4096, 4096}, where.device());
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
       std::chrono::steady_clock::now() < until;) {
    at::mm(factor, factor);
    where.synchronize();
  }
}

}  // namespace

void measure_figures(const gpu_device& where, bool quick, gpu_report& report) {
  warm_up(where);
  measure_pass(where, quick, "chain", "launch-bound backward: 1,000 products of 16 elements", small_chain(where, 1000), 1.2,
               report);
  measure_pass(where, quick, "lstm", "launch-bound backward: `lstm_64`", make_lstm_64(where.device()), 1.2, report);
  const std::int64_t width = quick ? 64 : 8192;
  const std::string size = std::to_string(width) + " x " + std::to_string(width);
  measure_pass(where, quick, "large", "large backward: 4 layers of " + size, wide_layers(where, width), 1.0, report);
  const auto* kernels = kernels_of(where);
  if (kernels == nullptr) return report.skipped("packing, compression", "this build of troupe has no kernels");
  measure_packing(where, quick, *kernels, report);
  measure_compression(where, quick, *kernels, report);
}

}  // namespace troupe::bench
