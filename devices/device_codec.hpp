// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/compressed_tensors_test.cpp, tests/devices/device_codec_test.cpp
#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/messages/wire_format.hpp>

/// Compression of tensors (messages/packed_tensors.hpp) by their devices, with the same bits as on the host.
///   XC-1  all work is queued on the current stream, and no thread waits for a device.
///   XC-2  whether a format can hold a tensor is known when its largest magnitude has come to the host (see finish() in
///         compressed_tensors.hpp).
///   XC-3  int8 needs troupe's kernels for the device. Without them the host compresses.
namespace troupe::devices {

/// A tensor that its device compresses.
struct coded_tensor {
  std::size_t index;  // in the message, where `bytes` are
  at::Tensor exact;   // on the device; nobody else uses its memory
  at::Tensor bytes;
  at::Tensor largest;  // int32: the bits of the largest magnitude; undefined with int8
  packing how;         // without the exponent
};

/// Whether the device of the tensor compresses it. Pre: is_stageable(tensor).
bool is_codable(const at::Tensor& tensor, wire_format format);

/// Compresses a dense tensor for which is_codable() is true. Sets `bytes` and `largest`, which are on the device. `residual`:
/// null, or as for pack() of packed_tensors.hpp, on the device.
coded_tensor encode(std::size_t index, const at::Tensor& tensor, wire_format format, at::Tensor* residual);

/// Whether the device can decode bytes that were packed so.
bool is_decodable(const packing& how, c10::Device device);

/// The elements of a tensor that was packed, on the device of its bytes.
at::Tensor decode(const at::Tensor& bytes, const packing& how);

}  // namespace troupe::devices
