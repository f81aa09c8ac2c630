// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps {

/// Watches stdin. Another program holds the other end open, and sends bytes, as long as this process should live. The bytes are
/// not used.
///   QS-1  `silent` runs once, on a thread of this object, when stdin has ended or has brought no byte for `patience`.
class stdin_watch {
 public:
  stdin_watch(std::chrono::milliseconds patience, std::function<void()> silent);
  ~stdin_watch();

 private:
  void run(std::chrono::milliseconds patience) const;

  std::function<void()> silent_;
  support::pipe_ends leave_;
  std::thread thread_;
};

}  // namespace troupe::apps
