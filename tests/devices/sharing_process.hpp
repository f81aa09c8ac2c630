// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

#include "actors/node_processes.hpp"

namespace troupe::test {

/// A process that has a tensor of sevens on the first simulated device, and shares it. Its makers run in a nursery that is forked
/// before the test's process has a second thread.
class sharing_process {
 public:
  static constexpr std::int64_t elements = 50'000;
  static constexpr std::int64_t before = 100;  // elements of the tensor's memory that come first

  /// What the process tells of its tensor.
  struct facts {
    std::array<char, 128> allocation_text;
    std::array<char, 128> event_text;
    std::size_t allocation_size;
    std::size_t event_size;
    std::uint64_t offset;

    std::string allocation() const { return {allocation_text.data(), allocation_size}; }
    std::string event() const { return {event_text.data(), event_size}; }
  };

  /// `how`: "at once"; "late": the elements are made only after go_on(); "frees": go_on() frees the tensor.
  explicit sharing_process(const std::string& how);
  ~sharing_process();
  sharing_process(const sharing_process&) = delete;
  sharing_process& operator=(const sharing_process&) = delete;

  std::uint64_t number() const { return static_cast<std::uint64_t>(pid_); }
  const facts& shared() const;
  /// Returns when the process has done what `how` says.
  void go_on();
  void kill();

 private:
  pid_t pid_;
  std::uint16_t number_;  // among at most three that live at once
};

}  // namespace troupe::test
