// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/node_runtime_test.cpp
#pragma once

#include <caf/logger.hpp>

namespace troupe::support {

/// CAF leaves the logger of an actor system with each thread that has made an actor of this system, or worked for it. The
/// system's destructor waits until no living thread has the logger. This function makes the calling thread let go of the
/// logger.
inline void let_go_of_logger() { caf::logger::set_current_actor_system(nullptr); }

/// A function that makes actors on threads of the user begins with an object of this class: the thread then lets go of the
/// logger when the function returns.
class logger_release {
 public:
  logger_release() = default;
  ~logger_release() { let_go_of_logger(); }
  logger_release(const logger_release&) = delete;
  logger_release& operator=(const logger_release&) = delete;
};

}  // namespace troupe::support
