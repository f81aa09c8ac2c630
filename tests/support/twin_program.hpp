// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include "support/simulated_accelerator.hpp"

namespace troupe::test {

/// The same program twice: on the CPU, and on streams of the devices 0 to the last one that has a stream in `all`.
struct twin_program {
  std::mt19937 random;
  std::vector<c10::Stream> streams;
  std::vector<at::Tensor> here;
  std::vector<at::Tensor> there;
  std::size_t leaves = 0;

  twin_program(unsigned seed, const std::vector<c10::Stream>& all) : random(seed), streams(all) {
    leaves = 1 + draw(3);
    c10::DeviceIndex last = 0;
    for (const auto& each : all) last = std::max(last, each.device_index());
    const auto devices = static_cast<std::size_t>(last) + 1;
    for (std::size_t i = 0; i < leaves; ++i) {
      const c10::StreamGuard on(any_stream());
      here.push_back((at::rand({4}) + 0.5).requires_grad_());
      there.push_back(
        here.back().detach().to(simulated::device(static_cast<c10::DeviceIndex>(draw(devices)))).requires_grad_());
    }
    for (std::size_t left = 3 + draw(12); left > 0; --left) grow();
    simulated::synchronize();
  }

  std::size_t draw(std::size_t below) { return random() % below; }
  const c10::Stream& any_stream() { return streams[draw(streams.size())]; }

  void grow() {
    simulated::synchronize();
    const c10::StreamGuard on(any_stream());
    const auto a = draw(here.size());
    const auto b = draw(here.size());
    const auto other = there[b].device() == there[a].device() ? there[b] : there[b].to(there[a].device());
    switch (draw(5)) {
      case 0:
        return add(at::tanh(here[a]), at::tanh(there[a]));
      case 1:
        return add(here[a] * here[b], there[a] * other);
      case 2:
        return add(here[a] * 0.5, there[a] * 0.5);
      default:
        return add(here[a] + here[b], there[a] + other);  // gives the same gradient to both
    }
  }

  void add(at::Tensor cpu, at::Tensor device) {
    here.push_back(std::move(cpu));
    there.push_back(std::move(device));
  }
};

/// Calls `run`, which runs a pass, while gates block about half of the streams, drawn at random. Then queues an operator that reads
/// the gradients of the leaves, on the current streams of this thread, and opens the gates in a random order. Returns what the
/// operators read.
inline std::vector<at::Tensor> pass_with_gates(twin_program& program, const std::function<void()>& run) {
  std::vector<std::unique_ptr<simulated::gate>> gates;
  for (const auto& stream : program.streams)
    if (program.draw(2) == 0) gates.push_back(std::make_unique<simulated::gate>(stream));
  std::vector<at::Tensor> read;
  {
    const c10::StreamGuard callers(program.any_stream());
    const c10::StreamGuard on_another_device(program.any_stream());
    run();
    for (std::size_t i = 0; i < program.leaves; ++i) {
      const auto gradient = program.there[i].grad();
      read.push_back(gradient.defined() ? gradient * 1 : gradient);
    }
  }
  while (!gates.empty()) {
    simulated::settle();
    gates.erase(gates.begin() + static_cast<std::ptrdiff_t>(program.draw(gates.size())));
  }
  simulated::synchronize();
  return read;
}

}  // namespace troupe::test
