// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::devices {

namespace cuda {
struct functions;
}

/// troupe's kernels for tensors of this device: own_cuda_kernels() for a GPU; null for all other devices.
const cuda::functions* kernels_for(c10::Device device);

/// Throws troupe::error(function_failed) that names the kernel, the device and the reason, if a launch failed.
void expect_launched(int result, const char* kernel, c10::Device device, const cuda::functions& kernels);

/// The current stream of a device, as kernels take it; null for the CPU.
void* current_stream(c10::Device device);

struct packed_tensors {
  at::Tensor bytes;                   // one dimension, kByte, on the device of the tensors
  std::vector<std::int64_t> offsets;  // where the elements of each tensor begin; multiples of 16
};

/// Copies the elements of many tensors of one device into one tensor, and back.
///   TK-1  elements keep their bits and the order that they have in memory. A tensor with gaps is packed without gaps.
///   TK-2  the copies are queued on the current stream of the device, as those of libtorch's operators are.
///   TK-3  with kernels, one kernel copies the elements of up to 1,024 tensors. Without kernels, libtorch copies each tensor.
///   TK-4  tensors of other devices, tensors that are not strided or have no memory, and tensors to which unpack() can't write
///         are refused with troupe::error(misuse) before anything is copied.
packed_tensors pack(const std::vector<at::Tensor>& tensors, const cuda::functions* kernels);

/// Copies the packed elements to `tensors`. These have the types, sizes and strides of the tensors that were packed; if a
/// tensor was packed without its gaps, its copy is contiguous.
void unpack(const packed_tensors& packed, const std::vector<at::Tensor>& tensors, const cuda::functions* kernels);

}  // namespace troupe::devices
