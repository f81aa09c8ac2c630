// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_control_block.hpp>

#include <troupe/actors/call_workers.hpp>
#include <troupe/actors/function_table.hpp>
#include <troupe/actors/membership_contract.hpp>
#include <troupe/actors/memory_reader.hpp>
#include <troupe/actors/node_services.hpp>
#include <troupe/actors/object_store.hpp>
#include <troupe/actors/open_contexts.hpp>
#include <troupe/actors/outgoing_calls.hpp>

namespace troupe {

class node;

/// Actors of the user's, by name. Any thread may use it.
class published_actors {
 public:
  void add(std::string name, caf::strong_actor_ptr actor);
  /// Null if there is none of that name.
  caf::strong_actor_ptr find(const std::string& name) const;
  /// The node stops: hands out all of them, to be ended.
  std::vector<caf::strong_actor_ptr> stop();

 private:
  mutable std::mutex mutex_;  // guards
  std::map<std::string, caf::strong_actor_ptr> all_;
};

/// Whom the user has told to be told when a peer goes down. Any thread may use it.
class peer_down_handler {
 public:
  using handler = std::function<void(const std::string& name, const std::string& reason)>;

  void set(handler notify);
  /// What the handler throws goes to stderr.
  void tell(const peer_down& news) const;

 private:
  mutable std::mutex mutex_;  // guards
  handler notify_;
};

/// What the `peer` actor and the public API share of a node. Each part guards itself; any thread may use all of them, from the start of
/// the node's actors to their end.
struct node_parts {
  node_parts(node& handle, settings options, std::function<void()> tidy);

  node_services services;
  function_table functions;
  object_store objects;
  open_contexts contexts{services};
  outgoing_calls calls{services, contexts};
  call_workers workers;
  lazy_memory_reader memory_reader{services};
  published_actors published;
  peer_down_handler on_peer_down;
};

}  // namespace troupe
