// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/engine_test.py
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <troupe/engine/drop_in/substitute.hpp>

#include "c_api.hpp"
#include "engine/python_passes.hpp"
#include "engine/small_memory.hpp"

using torchtroupe::text_of_error;

TORCHTROUPE_EXPORT const char* torchtroupe_install_engine(int compiled, int reuse_memory) {
  return text_of_error([&] {
    torchtroupe::take_python_passes(compiled != 0);
    torchtroupe::reuse_memory(reuse_memory != 0);
  });
}

TORCHTROUPE_EXPORT const char* torchtroupe_uninstall_engine() {
  return text_of_error([] {
    torchtroupe::return_python_passes();
    torchtroupe::reuse_memory(false);
  });
}

/// Passes on troupe's engine, nanoseconds in them, and passes left to libtorch's engine in the order of left_because.
TORCHTROUPE_EXPORT const char* torchtroupe_engine_report(std::uint64_t* counts, std::size_t length) {
  return text_of_error([&] {
    const auto passes = troupe::engine::passes_so_far();
    if (length != 2 + passes.because.size())
      throw std::invalid_argument("expected room for " + std::to_string(2 + passes.because.size()) + " counts, got " +
                                  std::to_string(length) + "; the library is of another torchtroupe");
    *counts++ = passes.troupe;
    *counts++ = torchtroupe::nanoseconds_in_passes();
    std::copy(passes.because.begin(), passes.because.end(), counts);
  });
}
