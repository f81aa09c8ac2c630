// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/forged_senders_test.cpp
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::gate {

/// Which node has which certificate. A certificate says the name of a node; the node says its id, which it draws when it starts.
/// Any thread may use it.
///   IO-1  a name has one id: that of its last introduction. An id has one name: as long as a name has an id, no other name gets it.
///   IO-2  a name that gets another id gives its earlier id up: the owner then drops what has come from that id.
class introduced_nodes {
 public:
  /// `give_up` is called, by the thread that introduces, with an id that its node no longer has.
  explicit introduced_nodes(std::function<void(node_id)> give_up = {}) : give_up_(std::move(give_up)) {}

  /// A node with this certificate says that it has this id. False: another node has it.
  bool introduce(const certificates::identity& who, node_id id);
  /// The certificate of the node; nothing if it has not introduced itself by a connection with certificates.
  std::optional<certificates::identity> find(node_id id) const;
  /// The id with which the node of this name has introduced itself; nothing if it has not.
  std::optional<node_id> find(const std::string& name) const;

 private:
  const std::function<void(node_id)> give_up_;
  mutable std::mutex mutex_;  // guards the next two
  std::map<std::string, node_id> ids_;
  std::map<node_id, certificates::identity> all_;
};

}  // namespace troupe::gate
