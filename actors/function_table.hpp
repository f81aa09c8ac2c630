// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/messages/attributes.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe {

class node;

namespace engine {
class gradient_table;
}

/// The table of a context that has gathered no gradients.
std::shared_ptr<const engine::gradient_table> no_gradients() noexcept;

/// The arguments of a function that another node calls. A tensor that required grad on the calling node has a recv_backward as
/// its gradient function here.
///   XA-1  `gradients` is never null. The table is empty outside any context, and before a pass of the context has left
///         gradients here.
struct call_arguments {
  node& here;
  object_id target;  // the object that the function is called on, or none
  attributes values;
  std::vector<at::Tensor> tensors;
  context_id context;                                                        // none if the call was made outside any context
  std::shared_ptr<const engine::gradient_table> gradients = no_gradients();  // gradients of `context` on this node
  std::string called = {};   // name of the function, or of the method of a module
  node_id caller = {};       // the node that calls; its name: node::name_of
  bool from_itself = false;  // whether this node calls itself, and not on behalf of a call of another node

  /// Tensor `index` of the call, counted from 0; throws troupe::error (misuse) if the call has fewer tensors.
  at::Tensor tensor(std::size_t index) const;
};

/// The result of a function that another node calls.
struct call_reply {
  std::vector<at::Tensor> tensors;
  attributes values;

  call_reply() = default;
  call_reply(std::vector<at::Tensor> t, attributes v = {}) : tensors(std::move(t)), values(std::move(v)) {}

  /// Tensor `index` of the reply, counted from 0; throws troupe::error (misuse) if the reply has fewer tensors.
  at::Tensor tensor(std::size_t index) const;
};

using function = std::function<call_reply(call_arguments&)>;

/// The functions of a node by name. Safe to use from any thread.
class function_table {
 public:
  /// Registers `run` under `name`; throws troupe::error (misuse) if the name is taken, or `name` or `run` is empty.
  void add(std::string name, function run);

  /// The function with this name; throws troupe::error (unknown_function) with the registered names.
  function find(const std::string& name) const;

  std::vector<std::string> names() const;

 private:
  mutable checked_mutex mutex_;
  std::unordered_map<std::string, function> functions_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe
