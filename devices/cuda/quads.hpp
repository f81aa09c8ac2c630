// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/cuda/conversion_test.cpp, tests/devices/cuda/block_codec_test.cpp
#pragma once

#include <cstdint>

#include <troupe/messages/float_bits.hpp>

/// A quad is four neighbouring elements. A thread of a GPU reads or writes a quad in one access if its address is aligned to
/// the size of the quad. Accesses to single elements would use less of the bandwidth of the GPU's memory.
///   QD-1  no element after the end is read or written: the last quad may have fewer than four elements. Addresses may be
///         unaligned.
namespace troupe::devices::cuda {

inline constexpr std::uint32_t quad_elements = 4;

template <class T>
struct alignas(quad_elements * sizeof(T)) quad {
  T of[quad_elements];
};

// Copies one quad. Pre: both addresses are aligned. nvcc turns an assignment into one access, but not a memcpy. The host uses
// memcpy, because its compiler may assume that a quad and an array of elements do not overlap (strict aliasing).
template <class T>
TROUPE_HOST_DEVICE inline void move_at_once(void* to, const void* from) {
#ifdef __CUDA_ARCH__
  *static_cast<quad<T>*>(to) = *static_cast<const quad<T>*>(from);
#else
  __builtin_memcpy(to, from, sizeof(quad<T>));
#endif
}

/// Returns how many of the `count` elements are at `element` or after it, four at most.
TROUPE_HOST_DEVICE inline std::uint32_t left_in_quad(std::uint64_t element, std::uint64_t count) {
  if (element >= count) return 0;
  return count - element < quad_elements ? static_cast<std::uint32_t>(count - element) : quad_elements;
}

template <class T>
TROUPE_HOST_DEVICE inline bool is_aligned(const T* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(quad<T>) == 0;
}

/// Reads `left` elements. The rest of the quad is 0.
template <class T>
TROUPE_HOST_DEVICE inline quad<T> read_quad(const T* from, std::uint32_t left) {
  quad<T> what{};
  if (left == quad_elements && is_aligned(from)) {
    move_at_once<T>(&what, from);
  } else {
    for (std::uint32_t i = 0; i < quad_elements; ++i)
      if (i < left) what.of[i] = from[i];
  }
  return what;
}

template <class T>
TROUPE_HOST_DEVICE inline void write_quad(T* to, const quad<T>& what, std::uint32_t left) {
  if (left == quad_elements && is_aligned(to)) {
    move_at_once<T>(to, &what);
  } else {
    for (std::uint32_t i = 0; i < quad_elements; ++i)
      if (i < left) to[i] = what.of[i];
  }
}

}  // namespace troupe::devices::cuda
