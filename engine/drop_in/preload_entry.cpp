// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <torch/csrc/autograd/engine.h>

#include <troupe/engine/drop_in/preload_entry.hpp>
#include <troupe/engine/drop_in/substitute.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::variable_list;
using troupe::engine::node_pointer;

static_assert(sizeof(variable_list) == sizeof(troupe::preload::opaque_list));
static_assert(sizeof(node_pointer) == sizeof(troupe::preload::opaque_pointer));

/// The type of Engine::execute as a plain function. libtroupe_preload.so hides the member function from this library, and
/// passes its address to troupe_preload_entry().
using execute_function = variable_list (*)(Engine*, const edge_list&, const variable_list&, bool, bool, bool, const edge_list&);

execute_function libtorchs_execute = nullptr;

variable_list run_on_libtorch(Engine& engine, const troupe::engine::pass_request& request) {
  return libtorchs_execute(&engine, request.roots, request.gradients, request.keep_graph, request.create_graph,
                           request.accumulate_grad, request.inputs);
}

/// If TROUPE_REPORT is set, prints at the end of the process how many passes ran on which engine.
struct report_at_exit {
  ~report_at_exit() {
    if (std::getenv("TROUPE_REPORT") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
      const auto passes = troupe::engine::passes_so_far();
      std::fprintf(stderr, "troupe: %llu backward passes, and %llu left to PyTorch's engine\n",
                   static_cast<unsigned long long>(passes.troupe), static_cast<unsigned long long>(passes.libtorch));
    }
  }
};
const report_at_exit report;

}  // namespace

/// Called by libtroupe_preload.so, which uses the types of preload_entry.hpp in place of libtorch's types.
extern "C" __attribute__((visibility("default"))) variable_list troupe_preload_entry(
  execute_function execute, Engine* engine, const edge_list& roots, const variable_list& gradients, bool keep_graph,
  bool create_graph, bool accumulate_grad, const edge_list& inputs);

variable_list troupe_preload_entry(execute_function execute, Engine* engine, const edge_list& roots,
                                   const variable_list& gradients, bool keep_graph, bool create_graph, bool accumulate_grad,
                                   const edge_list& inputs) {
  __atomic_store_n(&libtorchs_execute, execute, __ATOMIC_RELAXED);
  return troupe::engine::run_substituted(*engine, run_on_libtorch,
                                         {roots, gradients, keep_graph, create_graph, accumulate_grad, inputs});
}

extern "C" __attribute__((visibility("default"))) node_pointer troupe_preload_current_function(node_pointer (*libtorchs)());

node_pointer troupe_preload_current_function(node_pointer (*libtorchs)()) {
  return troupe::engine::current_function(libtorchs());
}

using buffers_function = variable_list (*)(torch::autograd::Node*);

extern "C" __attribute__((visibility("default"))) variable_list troupe_preload_gradient_buffers(
  buffers_function libtorchs, node_pointer (*current)(), torch::autograd::Node* function);

variable_list troupe_preload_gradient_buffers(buffers_function libtorchs, node_pointer (*current)(),
                                              torch::autograd::Node* function) {
  variable_list none = libtorchs(function);  // throws where libtorch gives no buffers
  return troupe::engine::gradient_buffers(current(), std::move(none));
}
