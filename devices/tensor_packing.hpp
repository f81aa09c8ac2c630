// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::devices {

namespace cuda {
struct functions;
}

/// Returns troupe's kernels for tensors on this device; null if there are none.
const cuda::functions* kernels_for(c10::Device device);

/// For an accelerator that is not CUDA's: its kernels, which have to live until the process ends.
void set_kernels(c10::DeviceType type, const cuda::functions* kernels);

/// Throws troupe::error(function_failed) if `result` says that a launch failed. The error names the kernel, the device and the
/// reason.
void expect_launched(int result, const char* kernel, c10::Device device, const cuda::functions& kernels);

/// Returns the current stream of a device, in the form that the functions of cuda::functions accept; null for the CPU.
void* current_stream(c10::Device device);

struct packed_tensors {
  at::Tensor bytes;                   // one dimension, kByte, on the device of the tensors
  std::vector<std::int64_t> offsets;  // where the elements of each tensor begin; multiples of 16
};

/// Returns memory as a tensor of bytes. The tensor keeps nothing alive.
at::Tensor bytes_at(void* first, std::uint64_t bytes, c10::Device device);

/// Where the elements of each tensor begin if they are packed without gaps, and at the end the number of all bytes. The tensors
/// are dense.
std::vector<std::int64_t> packed_offsets(const std::vector<at::Tensor>& tensors);

/// pack() copies the elements of many tensors on one device into one tensor. unpack() copies them back.
///   TK-1  elements keep their bits and the order that they have in memory. A tensor with gaps is packed without gaps.
///   TK-2  the copies are queued on the current stream of the device, as the work of libtorch's operators is.
///   TK-3  with `kernels`, one kernel copies the elements of up to 1,024 tensors. If `kernels` is null, libtorch copies each
///         tensor.
///   TK-4  tensors on another device, tensors that are not strided and tensors without memory are refused with
///         troupe::error(misuse). unpack() also refuses tensors to which it can't write. Nothing is copied before these checks.
packed_tensors pack(const std::vector<at::Tensor>& tensors, const cuda::functions* kernels);

/// Copies the packed elements to `tensors`. Each of these has the type, sizes and strides of the tensor that was packed. If a
/// tensor was packed without its gaps, the tensor in `tensors` is contiguous.
void unpack(const packed_tensors& packed, const std::vector<at::Tensor>& tensors, const cuda::functions* kernels);

}  // namespace troupe::devices
