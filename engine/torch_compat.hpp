// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <c10/core/SafePyObject.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/torch_version.hpp>
#if TROUPE_TORCH_HAS_CREATION_HOOKS
#include <ATen/NodeCreationHooks.h>
#endif

/// Names that hide differences between versions of libtorch (torch_version.hpp).
namespace troupe::engine {

/// The pointer with which a graph holds a function.
using node_pointer = decltype(torch::autograd::Edge::function);

/// The same pointer to a function of a known class.
#if TROUPE_TORCH_HAS_INTRUSIVE_NODES
template <class Function>
using pointer_to = c10::intrusive_ptr<Function>;
#else
template <class Function>
using pointer_to = std::shared_ptr<Function>;
#endif

/// Makes an autograd function. The graph that the function leads to is freed without recursion, however deep the graph is.
template <class Function, class... Arguments>
pointer_to<Function> make_node(Arguments&&... arguments) {
#if TROUPE_TORCH_HAS_INTRUSIVE_NODES
  return c10::make_intrusive<Function>(std::forward<Arguments>(arguments)...);
#else
  return pointer_to<Function>(new Function(std::forward<Arguments>(arguments)...), torch::autograd::deleteNode);
#endif
}

/// The thread's hooks of the creation of functions.
#if TROUPE_TORCH_HAS_CREATION_HOOKS
struct creation_hooks {
  using state = at::impl::NodeCreationHooksTLS;
  static const state& get() { return at::impl::NodeCreationHooks::get_tls_state(); }
  static void set(const state& hooks) { at::impl::NodeCreationHooks::set_tls_state(hooks); }
};
#else
struct creation_hooks {
  struct state {
    std::span<const c10::SafePyObject> stack;
  };
  static const state& get() {
    static const state none;
    return none;
  }
  static void set(const state&) {}
};
#endif

}  // namespace troupe::engine
