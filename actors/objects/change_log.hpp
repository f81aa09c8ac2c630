// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/objects/local_optimizer_test.cpp
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/errors.hpp>

namespace troupe::objects {

/// Which changes of an optimizer were made (LO-7, LO-8). The caller numbers its changes upwards from 1; 0 is a change without a number.
class change_log {
 public:
  std::uint64_t last() const noexcept { return last_; }

  /// Whether the change has to be made now. Throws troupe::error (misuse) if it can't be made any more.
  bool is_due(std::uint64_t number) const {
    const bool is_last = number != 0 && number == last_;
    if (is_last && state_ == state::made) return false;
    if (state_ == state::midway)
      throw error(errc::misuse, "optimizer: change " + std::to_string(last_) +
                                  " failed midway, so some parameters are changed and others are not; load a checkpoint");
    if (is_last || (number != 0 && number < last_))
      throw error(errc::misuse,
                  "optimizer: change " + std::to_string(number) +
                    (is_last ? " was given up before it came" : " came late, after change " + std::to_string(last_)));
    return true;
  }

  /// From here to made() the parameters may be half changed.
  void begin(std::uint64_t number) noexcept {
    if (number != 0) last_ = number;
    state_ = state::midway;
  }
  void made() noexcept { state_ = state::made; }

  /// As local_optimizer::has_made().
  bool has_made(std::uint64_t number, bool give_up) {
    if (state_ == state::midway) is_due(0);  // throws
    if (number <= last_) return number == last_ && state_ == state::made;
    if (!give_up) return false;
    last_ = number;
    state_ = state::given_up;
    return false;
  }

 private:
  enum class state : std::uint8_t { made, given_up, midway };

  std::uint64_t last_ = 0;  // number of the last change
  state state_ = state::made;
};

}  // namespace troupe::objects
