// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_figures.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/tensor_packing.hpp>
#include <troupe/engine/backward.hpp>

#include "gpu_kernels.hpp"
#include "known_order.hpp"
#include "../support/models.hpp"
#include "../support/stopwatch.hpp"

namespace troupe::bench {

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
struct streaming {
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
  const std::vector<streaming> all{
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
