// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Between libtroupe_preload.so, which knows nothing of libtorch, and libtroupe.so, which it loads. Types of libtorch have
/// their shape for the calling convention alone.
namespace troupe::preload {

/// A torch::autograd::variable_list: three words that the caller makes room for.
struct opaque_list {
  opaque_list(const opaque_list&);
  ~opaque_list();
  void* words[3];
};

/// A std::shared_ptr<torch::autograd::Node>.
struct opaque_pointer {
  opaque_pointer(const opaque_pointer&);
  ~opaque_pointer();
  void* words[2];
};

/// torch::autograd::Engine::execute. The engine, roots, their gradients, keep_graph, create_graph, accumulate_grad, inputs.
using execute_function = opaque_list (*)(void*, const void*, const void*, bool, bool, bool, const void*);

/// `troupe_preload_entry` of libtroupe.so: the same, with libtorch's own definition before it.
using engine_entry = opaque_list (*)(execute_function, void*, const void*, const void*, bool, bool, bool, const void*);

/// torch::autograd::get_current_node, and `troupe_preload_current_function` of libtroupe.so, which is given libtorch's.
using current_function = opaque_pointer (*)();
using current_entry = opaque_pointer (*)(current_function);

}  // namespace troupe::preload
