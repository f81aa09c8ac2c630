// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/call_workers.hpp>

#include <string>
#include <system_error>
#include <utility>

#include <caf/send.hpp>

#include <troupe/actors/services/node_services.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::calls {

contracts::call_worker_actor call_workers::spawn() {
  std::lock_guard lock(mutex_);
  const auto& name = here_.services.name();
  if (stopped_) throw error(errc::stopping, "node '" + name + "' is stopping");  // no actor would tell a new worker to end
  try {
    auto made = make_call_worker(here_);
    auto guard = here_.services.guard(made.id(), network::own_actors::kind::inner);
    return all_.emplace_back(guarded_worker{std::move(made), std::move(guard)}).worker;
  } catch (const std::system_error& refused) {
    throw error(errc::function_failed, "node '" + name + "' gets no thread for it beside the " + std::to_string(all_.size()) +
                                         " that run calls (" + refused.code().message() +
                                         "); nest fewer calls that wait for each other, or raise the limit on the process's "
                                         "threads or memory");
  }
}

void call_workers::let_go(const contracts::call_worker_actor& worker) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const guarded_worker& each) { return each.worker == worker; });
  }
  caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
}

std::vector<contracts::call_worker_actor> call_workers::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  std::vector<contracts::call_worker_actor> result;
  for (auto& each : std::exchange(all_, {})) result.push_back(std::move(each.worker));
  return result;
}

}  // namespace troupe::calls
