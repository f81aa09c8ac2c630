// SPDX-License-Identifier: BSD-3-Clause
#include "checks.hpp"

#include <functional>
#include <optional>
#include <random>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <troupe/engine/backward.hpp>

namespace troupe::bench {

namespace {

using pass = std::function<void()>;

constexpr const char* does_not_repeat = "libtorch's engine gives other bits each time";

std::vector<at::Tensor> gradients_after(const gpu_device& where, const std::vector<at::Tensor>& leaves, const pass& run) {
  for (const auto& each : leaves) each.mutable_grad().reset();
  where.synchronize();
  run();
  where.synchronize();
  std::vector<at::Tensor> all;
  for (const auto& each : leaves) all.push_back(each.grad());
  return all;
}

/// The gradients of both engines. None of libtorch's if that engine does not repeat its bits.
struct both_gradients {
  std::vector<at::Tensor> peer, troupe;
  bool repeats = true;
};

both_gradients gradients_of(const gpu_device& where, const model_graph& of) {
  const auto peer = [&] { torch::autograd::backward({of.loss}, {}, true); };
  both_gradients all;
  all.peer = gradients_after(where, of.parameters, peer);
  all.troupe = gradients_after(where, of.parameters, [&] { troupe::backward({of.loss}, {}, true); });
  for (int again = 0; again < 3 && all.repeats; ++again)
    all.repeats = difference(all.peer, gradients_after(where, of.parameters, peer)).empty();
  return all;
}

void compare(const gpu_device& where, const std::string& what, const model_graph& of, gpu_report& report) {
  const auto came = gradients_of(where, of);
  came.repeats ? report.same(what, came.peer, came.troupe) : report.skipped(what, does_not_repeat);
}

void append(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) { to.insert(to.end(), from.begin(), from.end()); }

void order(const c10::Stream& first, const c10::Stream& then) {
  c10::Event done(first.device_type());
  done.record(first);
  done.block(then);
}

c10::Stream current_stream(const gpu_device& where) {
  return c10::impl::VirtualGuardImpl(where.device().type()).getStream(where.device());
}

/// All models, each with its forward on a stream of its own, and one loss.
model_graph on_streams(const gpu_device& where, const named_models& models) {
  const auto streams = where.streams(models.size());
  model_graph all;
  for (std::size_t i = 0; i < models.size(); ++i) {
    model_graph made;
    {
      const c10::StreamGuard on(streams[i]);
      made = models[i].second(where.device());
    }
    order(streams[i], current_stream(where));
    all.loss = all.loss.defined() ? all.loss + made.loss : made.loss;
    append(all.parameters, made.parameters);
  }
  return all;
}

/// A random program of small functions. With streams, each function runs on one of them, drawn at random.
model_graph random_program(const gpu_device& where, unsigned seed, const std::vector<c10::Stream>& streams) {
  std::mt19937 random(seed);
  const auto draw = [&random](std::size_t below) { return random() % below; };
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  model_graph made;
  for (std::size_t left = 1 + draw(4); left > 0; --left)
    made.parameters.push_back((at::rand({64, 64}, generator) + 0.5).to(where.device()).requires_grad_());
  std::vector<at::Tensor> values = made.parameters;
  for (std::size_t left = 5 + draw(40); left > 0; --left) {
    where.synchronize();
    std::optional<c10::StreamGuard> on;
    if (!streams.empty()) on.emplace(streams[draw(streams.size())]);
    const auto& a = values[draw(values.size())];
    const auto& b = values[draw(values.size())];
    switch (draw(5)) {
      case 0:
        values.push_back(at::tanh(a));
        break;
      case 1:
        values.push_back(a * b);
        break;
      case 2:
        values.push_back(at::mm(at::sigmoid(a), b) / 64);
        break;
      default:
        values.push_back(a + b);
    }
  }
  where.synchronize();
  for (const auto& each : values) made.loss = made.loss.defined() ? made.loss + each.mean() : each.mean();
  return made;
}

void compare_random(const gpu_device& where, const std::string& what, unsigned programs, bool several, gpu_report& report) {
  const auto streams = several ? where.streams(4) : std::vector<c10::Stream>{};
  std::vector<at::Tensor> peer, troupe;
  unsigned compared = 0;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    auto came = gradients_of(where, random_program(where, seed, streams));
    if (!came.repeats) continue;
    ++compared;
    append(peer, came.peer);
    append(troupe, came.troupe);
  }
  const std::string count = std::to_string(compared) + " of " + std::to_string(programs);
  compared > 0 ? report.same(what + " (" + count + ")", peer, troupe) : report.skipped(what, does_not_repeat);
}

}  // namespace

named_models all_models() {
  return {{"mlp_batch_1", make_mlp_batch_1},
          {"lstm_64", make_lstm_64},
          {"transformer_64", make_transformer_64},
          {"conv_small", make_conv_small}};
}

void compare_gradients(const gpu_device& where, const named_models& models, bool quick, gpu_report& report) {
  const unsigned programs = quick ? 10 : 200;
  for (const auto& [name, make] : models) compare(where, "gradients of `" + name + "`", make(where.device()), report);
  compare_random(where, "gradients of random programs", programs, false, report);
  const std::string together = "gradients of all models, each on a stream of its own";
  const std::string mixed = "gradients of random programs on 4 streams";
  if (where.device().is_cpu()) {
    for (const auto& what : {together, mixed}) report.skipped(what, "the CPU has no streams");
    return;
  }
  compare(where, together, on_streams(where, models), report);
  compare_random(where, mixed, programs, true, report);
}

}  // namespace troupe::bench
