// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/warning_relay.hpp>

namespace troupe::engine {

void warning_relay::process(const c10::Warning& warning) {
  const checked_lock lock(mutex_);
  held_.push_back(warning);
}

void warning_relay::replay() {
  std::vector<c10::Warning> warnings;
  {
    const checked_lock lock(mutex_);
    warnings.swap(held_);
  }
  for (const c10::Warning& each : warnings) c10::warn(each);
}

void warning_relay::replay_and_rethrow(std::exception_ptr failure) {
  try {
    replay();
  } catch (...) {
    failure = failure ? failure : std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace troupe::engine
