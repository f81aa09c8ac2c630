// SPDX-License-Identifier: BSD-3-Clause
#include "torch_agent.hpp"

#include <chrono>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/rpc/request_callback_no_python.h>
#include <torch/csrc/distributed/rpc/script_resp.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

namespace troupe::bench {

namespace rpc = torch::distributed::rpc;

namespace {

constexpr int worker_threads = 16;            // PyTorch's default
constexpr std::chrono::seconds deadline{60};  // of a meeting, and of a call

}  // namespace

std::string torch_worker_name(int rank) { return "worker" + std::to_string(rank); }

std::shared_ptr<rpc::TensorPipeAgent> start_torch_agent(const torch_agent_options& how) {
  rpc::TensorPipeRpcBackendOptions options(worker_threads, how.transports, how.channels, deadline.count(), "unused");
  auto store = c10::make_intrusive<c10d::FileStore>(how.meeting_file, how.processes);
  store->setTimeout(deadline);
  auto agent =
    std::make_shared<rpc::TensorPipeAgent>(store, torch_worker_name(how.rank), static_cast<rpc::worker_id_t>(how.rank),
                                           how.processes, std::move(options), std::unordered_map<std::string, rpc::DeviceMap>{},
                                           std::vector<c10::Device>{}, std::make_unique<rpc::RequestCallbackNoPython>());
  agent->setTypeResolver(std::make_shared<rpc::TypeResolver>([](const c10::QualifiedName& name) {
    const bool dictionary = name.qualifiedName().find("Dict") != std::string::npos;
    c10::TypePtr type = c10::TensorType::get();
    if (dictionary) type = c10::DictType::create(c10::StringType::get(), c10::StringType::get());
    return c10::StrongTypePtr(nullptr, type);
  }));
  rpc::RpcAgent::setCurrentRpcAgent(agent);
  torch::distributed::autograd::DistAutogradContainer::init(how.rank);
  agent->start();
  return agent;
}

void stop_torch_agent(const std::shared_ptr<rpc::TensorPipeAgent>& agent) {
  agent->join(true);
  agent->shutdown();
  rpc::RpcAgent::setCurrentRpcAgent(nullptr);
}

std::shared_ptr<torch::jit::Operator> torch_operator(const char* name, const char* overload) {
  for (const auto& each : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)))
    if (each->schema().overload_name() == overload) return each;
  throw std::runtime_error(std::string("this libtorch has no operator ") + name);
}

at::Tensor torch_answer(const c10::intrusive_ptr<rpc::JitFuture>& from) {
  from->waitAndThrow();
  const auto message = from->constValue().toCustomClass<rpc::Message>();
  auto type = message->type();
  const auto response = rpc::deserializeResponse(*message, type);
  return static_cast<rpc::ScriptResp&>(*response).value().toTensor();
}

}  // namespace troupe::bench
