// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/drop_in/preload_test.cpp
#pragma once

#include <troupe/engine/torch_version.hpp>

/// The interface between libtroupe_preload.so, which is built without libtorch, and libtroupe.so, which libtroupe_preload.so
/// loads. A type here has the size of a type of libtorch, and its own copy constructor and destructor: the calling convention
/// depends on the size, the copy constructor and the destructor.
namespace troupe::preload {

/// Stands for a torch::autograd::variable_list and has its size, three pointers. Because of the copy constructor and the
/// destructor, a function returns the list in memory that the caller provides.
struct opaque_list {
  opaque_list(const opaque_list&);
  ~opaque_list();
  void* words[3];
};

/// Stands for an engine::node_pointer and has its size.
struct opaque_pointer {
  opaque_pointer(const opaque_pointer&);
  ~opaque_pointer();
  void* words[TROUPE_TORCH_HAS_INTRUSIVE_NODES ? 1 : 2];
};

/// The type of torch::autograd::Engine::execute. Arguments: engine, roots, their gradients, keep_graph, create_graph,
/// accumulate_grad, inputs.
using execute_function = opaque_list (*)(void*, const void*, const void*, bool, bool, bool, const void*);

/// The type of `troupe_preload_entry` of libtroupe.so. The first argument is libtorch's own execute; the other arguments are
/// those of execute.
using engine_entry = opaque_list (*)(execute_function, void*, const void*, const void*, bool, bool, bool, const void*);

/// The types of torch::autograd::get_current_node and of `troupe_preload_current_function` of libtroupe.so. The argument of the
/// latter is libtorch's get_current_node.
using current_function = opaque_pointer (*)();
using current_entry = opaque_pointer (*)(current_function);

/// The types of torch::autograd::get_current_input_grad_buffers and of `troupe_preload_gradient_buffers` of libtroupe.so. The
/// first arguments of the latter are libtorch's function and libtorch's get_current_node.
using buffers_function = opaque_list (*)(void*);
using buffers_entry = opaque_list (*)(buffers_function, current_function, void*);

}  // namespace troupe::preload
