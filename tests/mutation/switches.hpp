// SPDX-License-Identifier: BSD-3-Clause
// Included by mutated sources. `mutant_is_on(7)` is true in a process whose environment has TROUPE_MUTANT=7.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace troupe_mutation {

inline int chosen() noexcept {
  static const int number = [] {
    const char* text = std::getenv("TROUPE_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return number;
}

inline std::size_t& marks_size() noexcept {
  static std::size_t size = 0;
  return size;
}

// One byte per mutant, in the file that TROUPE_MUTANTS_REACHED names: set if any process of a test reaches the mutant.
inline unsigned char* marks() noexcept {
  static unsigned char* const memory = []() -> unsigned char* {
    const char* path = std::getenv("TROUPE_MUTANTS_REACHED");
    const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
    struct stat about {};
    if (file < 0 || ::fstat(file, &about) != 0) return nullptr;
    void* mapped = ::mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    marks_size() = static_cast<std::size_t>(about.st_size);
    return mapped == MAP_FAILED ? nullptr : static_cast<unsigned char*>(mapped);
  }();
  return memory;
}

inline bool mutant_is_on(int number) noexcept {
  if (auto* reached = marks()) reached[number] = 1;
  return number == chosen();
}

}  // namespace troupe_mutation
