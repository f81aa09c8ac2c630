// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/call_workers.hpp>

#include <string>
#include <system_error>
#include <utility>

#include <caf/send.hpp>

#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::calls {

contracts::call_worker_actor call_workers::spawn() {
  checked_lock lock(mutex_);
  throw_if_stopped();  // after stop() nobody would end a new worker
  try {
    auto made = make_call_worker(here_);
    auto guard = here_.services.network.peers.own->add(made.id(), gate::own_actors::kind::inner);
    const auto number = made.id();
    return all_.emplace(number, guarded_worker{std::move(made), std::move(guard)}).first->second.worker;
  } catch (const std::system_error& refused) {
    throw error(errc::function_failed, "node '" + here_.services.self.name() + "' gets no thread for it beside the " +
                                         std::to_string(all_.size()) + " that run calls (" + refused.code().message() +
                                         "); nest fewer calls that wait for each other, or raise the limit on the process's "
                                         "threads or memory");
  }
}

contracts::call_worker_actor call_workers::find(caf::actor_id worker) {
  checked_lock lock(mutex_);
  throw_if_stopped();
  return all_.at(worker).worker;
}

void call_workers::let_go(caf::actor_id worker) {
  checked_unique_lock lock(mutex_);
  const auto gone = all_.extract(worker);
  lock.unlock();
  if (gone) caf::anon_send_exit(gone.mapped().worker, caf::exit_reason::user_shutdown);
}

void call_workers::throw_if_stopped() const {
  if (stopped_) throw error(errc::stopping, "node '" + here_.services.self.name() + "' is stopping");
}

std::vector<contracts::call_worker_actor> call_workers::stop() {
  checked_lock lock(mutex_);
  stopped_ = true;
  std::vector<contracts::call_worker_actor> result;
  for (auto& [number, each] : std::exchange(all_, {})) result.push_back(std::move(each.worker));
  return result;
}

}  // namespace troupe::calls
