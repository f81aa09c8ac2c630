// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/engine_test.py
#include <cstdint>
#include <exception>
#include <string>

#include <troupe/engine/drop_in/substitute.hpp>

#include "c_api.hpp"
#include "engine/python_passes.hpp"

namespace {

/// Null after success, otherwise the error's text, which lives until the thread's next call.
template <class Function>
const char* text_of_error(Function&& call) {
  static thread_local std::string text;
  try {
    call();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
    return text.c_str();
  }
}

}  // namespace

TORCHTROUPE_EXPORT const char* torchtroupe_install_engine(int compiled) {
  return text_of_error([&] { torchtroupe::take_python_passes(compiled != 0); });
}

TORCHTROUPE_EXPORT const char* torchtroupe_uninstall_engine() { return text_of_error(torchtroupe::return_python_passes); }

/// Passes on troupe's engine, nanoseconds in them, and passes left to libtorch's engine in the order of left_because.
TORCHTROUPE_EXPORT void torchtroupe_engine_report(std::uint64_t (&counts)[2 + troupe::engine::left_because_count]) {
  const auto passes = troupe::engine::passes_so_far();
  counts[0] = passes.troupe;
  counts[1] = torchtroupe::nanoseconds_in_passes();
  for (std::size_t i = 0; i < passes.because.size(); ++i) counts[2 + i] = passes.because[i];
}
