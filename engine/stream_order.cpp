// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/stream_order.hpp>

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function.h>

namespace troupe::engine {

namespace {

constinit std::optional<accelerator_support> registered;  // set before main(), and constant from then on

}  // namespace

void register_accelerators(const accelerator_support& how) noexcept { registered = how; }

std::unique_ptr<stream_order> make_stream_order(const plan& graph) {
  if (registered) return registered->make_order(graph);
  for (const auto& each : graph.vertices)
    TORCH_CHECK(!at::accelerator::isAccelerator(each.function->device().type()), "troupe: function ", each.function->name(),
                " computes on ", each.function->device(),
                ", and nothing orders the work of accelerators here; link the program with troupe::streams");
  return nullptr;
}

std::optional<c10::DeviceType> type_with_stream_order() { return registered ? registered->type() : std::nullopt; }

}  // namespace troupe::engine
