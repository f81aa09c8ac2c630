// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/future.hpp>

namespace troupe {

namespace detail {

int& continuation_scope::depth() noexcept {
  thread_local int depth = 0;
  return depth;
}

void continuation_scope::refuse_to_wait() {
  if (depth() > 0)
    throw error(errc::misuse,
                "a continuation waits for a result: it would block the thread that brings results. Inside then() and "
                "on_peer_down(), "
                "start calls and add continuations to them, or wait on another thread");
}

}  // namespace detail

}  // namespace troupe
