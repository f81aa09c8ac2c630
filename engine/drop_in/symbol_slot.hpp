// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/drop_in/symbol_slot_test.cpp
#pragma once

#include <string>

namespace troupe::engine {

/// The place in a loaded library's offset table (GOT) that holds the address of one function of another library. Each call of
/// that function from the library goes to the address in the slot.
///   OT-1  replace() changes the address at once: a call on another thread goes to the old or to the new one.
///         An exception: if the loader binds the library lazily, a thread that makes the first call of the function can write
///         the function's address after replace(). Python loads libtorch with RTLD_NOW, so that no call is the first one.
///   OT-2  afterwards the memory of the slot has the protection that it had before (RELRO).
class symbol_slot {
 public:
  /// The slot of `symbol`, a mangled name, in the library whose file is called `library` ("libtorch_python.so"). Throws
  /// std::runtime_error if the library is not loaded, is loaded twice, or does not call the function.
  symbol_slot(const std::string& library, const std::string& symbol);

  const void* place() const noexcept { return slot_; }
  void* address() const noexcept { return __atomic_load_n(slot_, __ATOMIC_ACQUIRE); }

  /// Writes `wanted` if the slot has `expected`; returns whether it had. Throws std::system_error if the memory can't be
  /// made writable.
  bool replace(void* expected, void* wanted) const;
  /// Writes `wanted`, whatever address the slot has.
  void set(void* wanted) const;

 private:
  void** slot_ = nullptr;
  bool is_read_only_ = false;  // part of the segment that the loader has protected
};

}  // namespace troupe::engine
