// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/forged_senders_test.cpp
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::gate {

/// Stores which node id belongs to which certificate. A certificate says the name of a node. The node itself says its id, which
/// it draws when it starts. Any thread may use it.
///
///   id of a name   meaning                                       next state
///   claimed        its node has said it in a greeting            accept(): accepted. introduce() with another id: given up
///   accepted       the node is a member, or this process itself  accept() of another id of the name: given up
///
///   IO-1  an id belongs to one name: as long as a name has an id, no other name gets the id. A name has at most one claimed id
///         and one accepted id.
///   IO-2  the gate_owner learns by `give_up` which id a name gives up. The gate_owner then drops all that has come from that
///         id.
///   IO-3  a greeting does not change the accepted id of its name. If a second process with the kit of a node greets and is
///         refused, the node keeps its id.
class introduced_nodes {
 public:
  /// `give_up` is called with each id that a node has given up, by the thread that calls introduce() or accept().
  explicit introduced_nodes(std::function<void(node_id)> give_up = {}) : give_up_(std::move(give_up)) {}

  /// Notes that a node with this certificate says that it has this id. Returns false if another node has the id.
  bool introduce(const certificates::identity& who, node_id id);
  /// Notes that the node with this id becomes a member. Returns false if no node has this id, or the node has given the id up.
  bool accept(node_id id);
  /// The certificate of the node with this id; nothing if the node has not introduced itself by a connection with certificates.
  std::optional<certificates::identity> find(node_id id) const;
  /// The accepted id of the node of this name, otherwise the claimed id; nothing if the node has not introduced itself.
  std::optional<node_id> find(const std::string& name) const;

 private:
  struct ids {
    std::optional<node_id> accepted;
    std::optional<node_id> claimed;
  };

  const std::function<void(node_id)> give_up_;
  mutable checked_mutex mutex_;
  std::map<std::string, ids> ids_ TROUPE_GUARDED_BY(mutex_);
  std::map<node_id, certificates::identity> all_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::gate
