// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <troupe/devices/cuda/functions.hpp>

#include "../support/models.hpp"
#include "gpu_report.hpp"

namespace troupe::bench {

class other_node;

using named_models = std::vector<std::pair<std::string, model_graph (*)(c10::Device)>>;

/// The models of models.hpp.
named_models all_models();

/// Compares the gradients of troupe's engine with those of libtorch's engine, bit for bit: the models, each on one
/// stream; all models at once, each on a stream of its own; and random programs on one stream and on several.
/// A graph for which libtorch's engine does not repeat its own bits is skipped.
void compare_gradients(const gpu_device& where, const named_models& models, bool quick, gpu_report& report);

/// The kernels for this device: own_cuda_kernels() for a GPU; for the CPU their bodies, so that gpu_check compares without a GPU; null if
/// there are none.
const devices::cuda::functions* kernels_of(const gpu_device& where);

/// Compares each kernel with its counterpart on the host (devices/compression.hpp, and copies), bit for bit: random elements of all
/// magnitudes, NaN and infinity, and sizes that fill no block.
void compare_kernels(const gpu_device& where, bool quick, gpu_report& report);

/// Two nodes of this process, which talk over loopback.
/// Compares, bit for bit, the gradients of distributed passes with those of libtorch's engine over the same functions in one
/// process: random programs whose steps run on the device, on the CPU, on the other node's device and on the other node's CPU,
/// in any order, on one stream and on several. And what a call brings back through a device map.
void compare_nodes(const gpu_device& where, bool quick, gpu_report& report);

/// Measures calls that take a tensor of the device to the other node and back, beside the same calls with tensors of the CPU.
void measure_nodes(const gpu_device& where, bool quick, gpu_report& report);

/// As compare_nodes() and measure_nodes(), with a node of another process, which has the same device. Also measures what a small
/// tensor of the device adds to a call, and calls whose tensors travel compressed.
void compare_processes(const gpu_device& where, other_node& there, bool quick, gpu_report& report);
void measure_processes(const gpu_device& where, other_node& there, bool quick, gpu_report& report);

/// Measures, in turns: backward passes that wait for launches and passes that fill the device, on libtorch's engine and on troupe's;
/// packing beside copies; compression beside the bandwidth of a copy. Each time is one between two synchronisations.
void measure_figures(const gpu_device& where, bool quick, gpu_report& report);

}  // namespace troupe::bench
