// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <vector>

#include <c10/util/Exception.h>

#include <troupe/messages/mutex.hpp>

namespace troupe::engine {

/// Collects warnings of other threads until the calling thread replays them to its own warning handler.
class warning_relay final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override;

  /// Hands the collected warnings to the warning handler of this thread, in order.
  void replay();

  /// To be called after the work has ended. Replays the warnings, then throws `failure`. If `failure` is null, throws the
  /// exception of the warning handler, if any.
  void replay_and_rethrow(std::exception_ptr failure);

 private:
  checked_mutex mutex_;
  std::vector<c10::Warning> held_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::engine
