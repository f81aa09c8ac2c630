// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/messages/residual_book.hpp>
#include <troupe/messages/tensor_memory.hpp>
#include <troupe/messages/wire_format.hpp>

/// Tensors in the formats of wire_format.hpp. A packed tensor is a tensor of bytes and a `packing`:
///   bfloat16, float16   2 bytes an element, in the order of memory (half_floats.hpp)
///   int8                1 byte an element, in the order of memory, and a scale for each block (int8_blocks.hpp)
///   PF-1  pack() packs only what the format can hold (see wire_format); otherwise it changes nothing.
///   PF-2  unpack() gives each tensor its sizes and strides again.
///   PF-3  before it allocates, unpack_all() throws for bytes that do not fit their packing, and for a scale that no block of
///         finite elements has: a negative, infinite, NaN or too large one.
namespace troupe {

/// Returns the number of bytes of a packed tensor of `elements` elements.
std::uint64_t packed_bytes(wire_format format, std::uint64_t elements);

struct packed_tensor {
  at::Tensor bytes;
  packing how;
};

/// Whether pack() can pack a tensor in travelling form (tensor_codec.hpp), if its elements allow it. The tensor has to be dense
/// float32 on the CPU, and not small.
bool is_packable(const at::Tensor& form);

/// Packs a tensor in travelling form. Returns none if the tensor has to travel exactly. `residual`: null, or a contiguous
/// float32 tensor with as many elements, in the order of memory. With int8, the residual is added to the tensor, and then holds
/// the rounding errors. If the result is none, the residual is undefined afterwards.
std::optional<packed_tensor> pack(const at::Tensor& form, wire_format format, tensor_memory& memory,
                                  at::Tensor* residual = nullptr);

/// Completes `how`, which says how a device has packed elements: float16's exponent is missing. Returns false if the format
/// can't hold the elements; `bytes` then mean nothing. `bytes`: on the host. `largest`: the bits of the largest magnitude; any
/// with int8.
bool complete(packing& how, const at::Tensor& bytes, std::uint64_t elements, std::uint32_t largest);

/// Pre: the packing fits the bytes; unpack_all() checks this.
at::Tensor unpack(const at::Tensor& bytes, const packing& how, tensor_memory& memory);

/// Where pack_all() finds and stores the residuals of a message's tensors.
struct residual_line {
  residual_book* book = nullptr;  // null: no error feedback
  node_id peer;
  std::uint64_t call_key = 0;
};

/// Packs, in place, each tensor that can be packed. `packings` then has an entry for each tensor, or is empty if no tensor was
/// packed. A tensor that occurs twice is packed once. With int8, residuals are taken from the book of `residuals` and given
/// back to it.
void pack_all(std::vector<at::Tensor>& forms, std::vector<packing>& packings, wire_format format, tensor_memory& memory,
              const residual_line& residuals = {});

/// The inverse of pack_all(). Throws troupe::error (malformed_message) for packings that do not fit to the tensors. Tensors
/// whose bytes are the same memory share their elements (copy on write), so the result takes at most four times the memory of
/// the bytes.
void unpack_all(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, tensor_memory& memory);

/// The checks of unpack_all().
void check_packings(const std::vector<at::Tensor>& tensors, const std::vector<packing>& packings);

/// Returns how many bytes the tensors have when they are not packed.
std::uint64_t plain_bytes(const std::vector<at::Tensor>& tensors, const std::vector<packing>& packings);

}  // namespace troupe
