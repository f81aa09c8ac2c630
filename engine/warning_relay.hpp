// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <mutex>
#include <vector>

#include <c10/util/Exception.h>

namespace troupe::engine {

/// Holds warnings of other threads back until the thread of the caller, whose handler they are for, replays them.
class warning_relay final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override;

  /// Hands what was held back to the handler of this thread, in order.
  void replay();

  /// The same where work has ended: `failure`, unless it is null, is thrown afterwards, also where the handler throws too.
  void replay_and_rethrow(std::exception_ptr failure);

 private:
  std::mutex mutex_;
  std::vector<c10::Warning> held_;
};

}  // namespace troupe::engine
