// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/rights/policy_test.cpp, tests/actors/gate/rights_of_roles_test.cpp
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include <troupe/actors/rights/policy.hpp>

namespace troupe::rights {

/// The policy of a node: a file, which may be read again while the node runs. Any thread may use it.
///   PB-1  a file that can't be read, or has a mistake, changes nothing.
///   PB-2  once read_again() has returned, now() gives the new policy on every thread. A thread that has looked before may still decide
///         by the old one.
///   PB-3  a policy that now() has given never changes, and is valid as long as this object: a look takes one atomic load, no lock and no
///         count of references. So each different text that the file has had stays in memory.
class policy_file {
 public:
  /// Throws std::runtime_error (PY-2).
  explicit policy_file(std::string path);

  const policy& now() const noexcept { return *now_.load(std::memory_order_acquire); }
  /// Reads the file again. Returns whether another policy counts from now on. Throws std::runtime_error (PB-1).
  bool read_again();

 private:
  const std::string path_;
  std::mutex mutex_;                    // guards read_, and what changes now_
  std::map<std::string, policy> read_;  // by their texts
  std::atomic<const policy*> now_{nullptr};
};

}  // namespace troupe::rights
