// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_control_block.hpp>
#include <caf/fwd.hpp>

#include <troupe/actors/calls/call_workers.hpp>
#include <troupe/actors/calls/outgoing_calls.hpp>
#include <troupe/actors/calls/peer_rights.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/contracts/send_credits.hpp>
#include <troupe/actors/function_table.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/services/burst_threads.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/device_maps.hpp>
#include <troupe/actors/services/garbage.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/outbox.hpp>
#include <troupe/actors/services/running_work.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/data_folder.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/service_end.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/actors/transfers/memory_reader.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe {

class node;

}  // namespace troupe

namespace troupe::nodes {

/// The user's actors that node::publish made known, by name. Any thread may use published_actors.
class published_actors {
 public:
  void add(std::string name, caf::strong_actor_ptr actor);
  /// Null if no actor has this name.
  caf::strong_actor_ptr find(const std::string& name) const;
  /// For the node's end: returns and forgets all actors. The caller ends them.
  std::vector<caf::strong_actor_ptr> stop();

 private:
  mutable checked_mutex mutex_;
  std::map<std::string, caf::strong_actor_ptr> all_ TROUPE_GUARDED_BY(mutex_);
};

/// The user's function for news about peers. Any thread may use peer_news_handler.
class peer_news_handler {
 public:
  using handler = std::function<void(const std::string& name, const std::string& reason)>;

  /// `name`: the name of the function in the public API, for the log.
  peer_news_handler(const logging::node_log& log, const char* name) : log_(log), name_(name) {}

  /// Replaces the handler; null: no handler.
  void set(handler notify);
  /// Calls the handler. Its exceptions go to the log.
  void tell(const std::string& peer, const std::string& reason) const;

 private:
  const logging::node_log log_;
  const char* const name_;
  mutable checked_mutex mutex_;
  handler notify_ TROUPE_GUARDED_BY(mutex_);
};

/// The functions that the user has set for news about peers. There is one for each kind of news.
struct peer_news {
  explicit peer_news(const logging::node_log& log)
      : on_peer_down(log, "on_peer_down"),
        on_peer_gone(log, "on_peer_gone"),
        on_peer_up(log, "on_peer_up"),
        on_left(log, "until_left") {}

  peer_news_handler on_peer_down;
  peer_news_handler on_peer_gone;
  peer_news_handler on_peer_up;
  peer_news_handler on_left;
};

TROUPE_SERVICE(objects, objects::object_store);
TROUPE_SERVICE(contexts, passes::open_contexts);
TROUPE_SERVICE(rights, const calls::peer_rights);
TROUPE_SERVICE(published, published_actors);
TROUPE_SERVICE(news, const peer_news);

/// The list of all services of a node, each a class of its own. Any thread may use any service, from the start of the node's
/// actors to their end. Desks and actors get only the services that they use (services/uses.hpp). The runtime, the node's
/// pages, the public API and the handlers of requests get all services.
struct node_services {
  /// `handle`: the node, for calls that run here; null in tests in which no call runs. `tidy`: see garbage.
  node_services(node* handle, settings with, std::function<void()> tidy);

  const settings options;
  support::data_folder data;  // made before the log, whose file may lie in this folder
  const logging::node_log log;
  services::node_identity self;
  support::activity counts;
  membership::peer_directory directory;
  const services::device_maps maps;
  tracing::trace_recorder recorder;
  services::message_clock clock;
  services::node_network network;
  services::node_actors actors;
  support::deadline_clock deadlines;
  support::work_times times;
  contracts::send_credits gradient_credits;
  services::running_work running;
  std::atomic<bool> is_ending{false};
  services::burst_threads bursts;
  std::atomic<engine::cpu_workers*> pass_workers{nullptr};  // they outlive the bursts of the node
  std::optional<services::departures> departures;           // empty until live_on()
  services::outbox outbox{options, self, directory, log, recorder, clock, departures};
  services::garbage garbage;
  function_table functions;
  objects::object_store objects;
  passes::open_contexts contexts{*this};
  calls::outgoing_calls calls{*this, contexts};
  calls::call_workers workers;
  const calls::peer_rights rights{*this, directory, objects, contexts};
  transfers::lazy_memory_readers memory_readers{*this};
  published_actors published;
  peer_news news{log};
  support::service_end end;
};

/// Sets the actor system of the node's actors. `multiplexer`: the multiplexer of the system; null if it is not troupe's.
/// `arriving`: null if the system has no network. To be called before the first actor starts.
void live_on(node_services& services, caf::actor_system& system, network::shared_multiplexer* multiplexer,
             arriving_tensors* arriving);

}  // namespace troupe::nodes
