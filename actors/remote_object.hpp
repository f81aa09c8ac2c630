// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/remote_module_test.cpp
#pragma once

#include <memory>

#include <troupe/actors/node.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::objects {

class node_tether;

}  // namespace troupe::objects

namespace troupe {

class context;

/// Owns an object on a node, alone or with other owners. The destructor gives up this ownership, and neither waits nor throws.
/// If this node has stopped, the destructor sends nothing: the object's node drops objects whose owner is gone.
class remote_object {
 public:
  remote_object(peer where, object_id id);
  ~remote_object();
  remote_object(const remote_object&) = delete;
  remote_object& operator=(const remote_object&) = delete;

  const peer& where() const noexcept { return where_; }
  object_id id() const noexcept { return id_; }

  /// Sends a request about the object to its node.
  future<call_reply> ask(request what, std::vector<at::Tensor> tensors = {}) const;

  const std::shared_ptr<objects::node_tether>& tether() const noexcept { return tether_; }

 private:
  peer where_;
  object_id id_;
  std::shared_ptr<objects::node_tether> tether_;
};

/// Throws troupe::error (misuse) unless `pass` is the context that is open on this thread. The error text begins with `who`.
void require_current(const context& pass, const char* who);

}  // namespace troupe
