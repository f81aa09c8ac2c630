// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/dist_engine.hpp"

#include <memory>
#include <mutex>

#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/engine/dist_engine.h>

#include <troupe/engine/drop_in/symbol_slot.hpp>

#include "rpc/agent.hpp"
#include "rpc/private_members.hpp"

namespace torchtroupe {

namespace da = torch::distributed::autograd;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

namespace {

// Calls from this library go to libtorch's own functions, whatever the slots of other libraries lead to.

std::shared_ptr<agent> current_agent() {
  namespace rpc = torch::distributed::rpc;
  return rpc::RpcAgent::isCurrentRpcAgentSet() ? std::dynamic_pointer_cast<agent>(rpc::RpcAgent::getCurrentRpcAgent())
                                               : nullptr;
}

void execute(da::DistEngine* engine, std::int64_t context, const variable_list& roots, bool keep_graph) {
  const auto ours = current_agent();
  if (!ours) return engine->execute(context, roots, keep_graph);
  static_cast<void>(da::DistAutogradContainer::getInstance().retrieveContext(context));  // throws if it was released
  edge_list edges;
  variable_list gradients;
  (engine->*member_of(check_of_roots{}))(roots, edges, gradients);
  ours->contexts().backward(context, std::move(edges), std::move(gradients), keep_graph);
}

std::size_t passes(const da::DistEngine* engine) { return current_agent() ? passes_now() : engine->numBackwardPasses(); }

void release(da::DistAutogradContainer* container, std::int64_t context) {
  container->releaseContext(context);
  if (const auto ours = current_agent()) ours->contexts().release(context);
}

template <class Function>
void lead(const char* library, const char* symbol, Function to) {
  troupe::engine::symbol_slot(library, symbol).set(reinterpret_cast<void*>(to));
}

}  // namespace

void take_distributed_passes() {
  static std::once_flag done;
  std::call_once(done, [] {
    lead("libtorch_cpu.so", "_ZN5torch11distributed8autograd10DistEngine7executeElRKSt6vectorIN2at6TensorESaIS5_EEb", &execute);
    lead("libtorch_cpu.so", "_ZNK5torch11distributed8autograd10DistEngine17numBackwardPassesEv", &passes);
    lead("libtorch_python.so", "_ZN5torch11distributed8autograd21DistAutogradContainer14releaseContextEl", &release);
  });
}

}  // namespace torchtroupe
