// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <troupe/actors/node.hpp>
#include <troupe/actors/nodes/node_runtime.hpp>

namespace troupe {

/// Gives the classes of the public API, and tests, access to the actors behind a node.
struct node_access {
  static nodes::node_runtime& runtime_of(node& which) noexcept { return *which.runtime_; }
  static const std::shared_ptr<nodes::node_link>& link_of(const peer& which) noexcept { return which.here_; }
  static peer peer_by(std::shared_ptr<nodes::node_link> link, std::string name, node_id id) {
    return {std::move(link), std::move(name), id};
  }
  /// As peer::call(), for a request of any kind.
  static future<call_reply> ask(const peer& to, request what, std::vector<at::Tensor> tensors = {}, attributes values = {},
                                object_id target = {}, std::optional<wire_format> format = {}) {
    return to.ask_for(std::move(what), std::move(tensors), std::move(values), target, {}, format);
  }
};

inline nodes::node_runtime& runtime_of(node& which) noexcept { return node_access::runtime_of(which); }
/// The link to the node that made the peer object.
inline nodes::node_link& link_of(const peer& which) noexcept { return *node_access::link_of(which); }
inline nodes::node_services& services_of(node& which) noexcept { return runtime_of(which).services(); }

}  // namespace troupe
