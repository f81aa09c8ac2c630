// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/gateway_actor_test.cpp
#pragma once

#include <utility>

namespace troupe::network {

/// While an object that was made with `is_now` lives, this thread hands a message of a connection to CAF. Meanwhile the
/// receiving actor may handle the message at once. Otherwise CAF would put the message into the actor's mailbox.
class handing_over {
 public:
  explicit handing_over(bool is_now) noexcept : before_(std::exchange(now_, is_now)) {}
  ~handing_over() { now_ = before_; }
  handing_over(const handing_over&) = delete;
  handing_over& operator=(const handing_over&) = delete;

  static bool is_now() noexcept { return now_; }

 private:
  static inline thread_local bool now_ = false;
  const bool before_;
};

}  // namespace troupe::network
