// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/fresh_stack.hpp>

#include <exception>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <troupe/engine/current_streams.hpp>
#include <troupe/engine/lane.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/warning_relay.hpp>

namespace troupe::engine {

void on_fresh_stack(const std::function<void()>& what) {
  const at::ThreadLocalState state;
  const current_streams streams;
  running_pass* const outer = running_pass::innermost();
  surroundings* const around = surroundings::current;
  lane* const served = lane::of_this_thread();
  warning_relay warnings;
  std::exception_ptr thrown;
  const auto run = [&] {
    const c10::WarningUtils::WarningHandlerGuard relayed(&warnings);
    try {
      at::init_num_threads();
      streams.set();
      const at::ThreadLocalStateGuard as_there(state);
      const same_passes here(outer, around);
      lane::serve_on_this_thread(served);
      what();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  std::thread worker;
  try {
    worker = std::thread(run);
  } catch (const std::system_error& refused) {
    throw std::system_error(refused.code(),
                            "passes are nested so deeply that one needs a thread of its own, and the system gives none");
  }
  worker.join();
  warnings.replay_and_rethrow(thrown);
}

}  // namespace troupe::engine
