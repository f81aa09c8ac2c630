// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <functional>

namespace troupe::bench {

/// A child process that runs a function until it is told to stop. Make all of them before the first thread exists.
class other_process {
 public:
  /// `run(stop, tell)`: returns once `stop` can be read; may tell a number.
  explicit other_process(const std::function<void(int stop, const std::function<void(std::uint16_t)>& tell)>& run);
  /// Asks the child to end.
  void stop();
  /// Stops it and waits for the child's end.
  ~other_process();
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  /// What the child told; waits for it. Throws std::runtime_error when it ends without.
  std::uint16_t told() const;

 private:
  pid_t child_ = 0;
  int stop_ = -1;
  int told_ = -1;
};

}  // namespace troupe::bench
