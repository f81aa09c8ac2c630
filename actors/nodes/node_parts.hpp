// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <caf/actor_control_block.hpp>

#include <troupe/actors/calls/call_workers.hpp>
#include <troupe/actors/calls/outgoing_calls.hpp>
#include <troupe/actors/calls/peer_rights.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/function_table.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/data_folder.hpp>
#include <troupe/actors/support/service_end.hpp>
#include <troupe/actors/transfers/memory_reader.hpp>

namespace troupe {

class node;

}  // namespace troupe

namespace troupe::nodes {

/// The user's actors that node::publish made known, by name. Any thread may use it.
class published_actors {
 public:
  void add(std::string name, caf::strong_actor_ptr actor);
  /// Null if no actor has this name.
  caf::strong_actor_ptr find(const std::string& name) const;
  /// For the node's end: returns and forgets all actors. The caller ends them.
  std::vector<caf::strong_actor_ptr> stop();

 private:
  mutable std::mutex mutex_;  // guards all_
  std::map<std::string, caf::strong_actor_ptr> all_;
};

/// The user's function for news about peers. Any thread may use it.
class peer_news_handler {
 public:
  using handler = std::function<void(const std::string& name, const std::string& reason)>;

  /// `name`: of the function in the public API, for the log.
  peer_news_handler(const logging::node_log& log, const char* name) : log_(log), name_(name) {}

  /// Replaces the handler; null: no handler.
  void set(handler notify);
  /// Calls the handler. Its exceptions go to the log.
  void tell(const std::string& peer, const std::string& reason) const;

 private:
  const logging::node_log log_;
  const char* const name_;
  mutable std::mutex mutex_;  // guards notify_
  handler notify_;
};

/// The parts of a node that the `gateway` actor and the public API share. Each part has its own lock: any thread may use any
/// part, from the start of the node's actors to their end.
struct node_parts {
  node_parts(node& handle, settings options, std::function<void()> tidy);

  support::data_folder data;
  services::node_services services;
  function_table functions;
  objects::object_store objects;
  passes::open_contexts contexts{services};
  calls::outgoing_calls calls{services, contexts};
  calls::call_workers workers;
  const calls::peer_rights rights{services, objects, contexts};
  transfers::lazy_memory_reader memory_reader{services};
  published_actors published;
  peer_news_handler on_peer_down{services.log, "on_peer_down"};
  peer_news_handler on_peer_gone{services.log, "on_peer_gone"};
  peer_news_handler on_peer_up{services.log, "on_peer_up"};
  peer_news_handler on_left{services.log, "until_left"};
  support::service_end end;
};

}  // namespace troupe::nodes
