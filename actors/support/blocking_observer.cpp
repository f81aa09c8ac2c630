// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/blocking_observer.hpp>

namespace troupe {

blocking_observer*& blocking_observer::current() {
  thread_local blocking_observer* observer = nullptr;
  return observer;
}

}  // namespace troupe
