// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/packed_tensors_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe {

/// How the elements of tensors travel between nodes. A format is an option of a context, or of one call. Only dense float32
/// tensors of at least `least_packed_elements` elements are compressed. All other tensors travel exactly: integers and bools,
/// float64 (a program that uses float64 wants its precision), and small tensors. A tensor with a value that the format can't
/// hold travels exactly too. So does a tensor to a node that is not connected yet: which formats that node reads is not known.
/// A tensor of an accelerator is compressed there, with the same bits. So is one that arrives for an accelerator.
///   exact     every bit.
///   bfloat16  2 bytes an element: 8 bits of precision, float32's range. Below 2^-126, numbers are multiples of 2^-133.
///             Infinities and NaN stay what they are. A tensor with a finite element above 3.39e38, which would become
///             infinite, travels exactly.
///   float16   2 bytes an element: 11 bits of precision. The elements are multiplied by a power of two, so that the largest
///             element is near the end of float16's range: no element becomes infinite, and an element of at least 2^-28 of the
///             largest keeps its precision. A tensor with an infinity, NaN, or an element of at least 2^127 travels exactly.
///   int8      1 byte an element, and 4 bytes for each block of 256: the error of an element is at most 1/254 of the largest
///             element of its block, plus a rounding error. A block whose largest element is below 2^-143 may become 0. A
///             tensor with an infinity or NaN travels exactly. The rounding error of a gradient is added to the next gradient
///             with the same key (residual_book.hpp).
/// half_floats.hpp and int8_blocks.hpp have the bits.
enum class wire_format : std::uint8_t { exact = 0, bfloat16 = 1, float16 = 2, int8 = 3 };

/// Smaller tensors travel exactly: compressing them would save less than a message costs.
inline constexpr std::int64_t least_packed_elements = 1024;

/// The formats that this version reads, one bit each. Nodes tell each other (`member::formats`).
inline constexpr std::uint32_t formats_read = 1U << 1 | 1U << 2 | 1U << 3;

/// Whether a node that reads these `formats` reads the format `what`.
constexpr bool reads(std::uint32_t formats, wire_format what) {
  return what == wire_format::exact || (formats >> static_cast<unsigned>(what) & 1U) != 0;
}

/// Returns the format with this number on the wire; none if this version does not know the number.
constexpr std::optional<wire_format> wire_format_of(std::uint32_t number) {
  if (number > static_cast<std::uint32_t>(wire_format::int8)) return std::nullopt;
  return static_cast<wire_format>(number);
}

/// "exact", "bf16", "fp16" or "int8": the names that `troupe train --wire` takes.
constexpr std::string_view to_text(wire_format what) {
  constexpr std::string_view names[] = {"exact", "bf16", "fp16", "int8"};
  return names[static_cast<std::size_t>(what)];
}

/// The largest exponent of a float16 packing: elements are multiplied by 2^-126 to 2^126.
inline constexpr std::int32_t most_exponent = 126;

/// Returns the format whose to_text() is this name; none if no format has the name.
constexpr std::optional<wire_format> wire_format_named(std::string_view name) {
  for (std::uint32_t number = 0; const auto each = wire_format_of(number); ++number)
    if (to_text(*each) == name) return each;
  return std::nullopt;
}

/// How a tensor of a message was packed. Its packed bytes alone do not say so.
struct packing {
  wire_format format = wire_format::exact;
  std::int32_t exponent = 0;          // float16: elements were multiplied by 2^exponent
  std::vector<std::int64_t> sizes;    // of the tensor
  std::vector<std::int64_t> strides;  // empty: contiguous

  bool operator==(const packing&) const = default;
};

}  // namespace troupe
