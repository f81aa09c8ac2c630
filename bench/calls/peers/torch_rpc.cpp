// SPDX-License-Identifier: BSD-3-Clause
#include "../distributed.hpp"

#include <unistd.h>

#include <ATen/core/op_registration/op_registration.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/engine/dist_engine.h>
#include <torch/csrc/distributed/autograd/utils.h>
#include <torch/csrc/distributed/rpc/request_callback_no_python.h>
#include <torch/csrc/distributed/rpc/script_call.h>
#include <torch/csrc/distributed/rpc/script_resp.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

namespace troupe::bench {

namespace {

namespace rpc = torch::distributed::rpc;
namespace autograd = torch::distributed::autograd;

constexpr int worker_threads = 16;  // PyTorch's default

std::string worker_name(int rank) { return "worker" + std::to_string(rank); }

// Does what PyTorch's Python layer does when a program calls init_rpc.
std::shared_ptr<rpc::TensorPipeAgent> start_agent(const std::string& meeting_file, int rank) {
  rpc::TensorPipeRpcBackendOptions options(worker_threads, std::nullopt, std::nullopt, 60, "unused");
  auto store = c10::make_intrusive<c10d::FileStore>(meeting_file, chain_length);
  auto agent =
    std::make_shared<rpc::TensorPipeAgent>(store, worker_name(rank), static_cast<rpc::worker_id_t>(rank), chain_length,
                                           std::move(options), std::unordered_map<std::string, rpc::DeviceMap>{},
                                           std::vector<c10::Device>{}, std::make_unique<rpc::RequestCallbackNoPython>());
  agent->setTypeResolver(std::make_shared<rpc::TypeResolver>([](const c10::QualifiedName& name) {
    const bool dictionary = name.qualifiedName().find("Dict") != std::string::npos;
    c10::TypePtr type = c10::TensorType::get();
    if (dictionary) type = c10::DictType::create(c10::StringType::get(), c10::StringType::get());
    return c10::StrongTypePtr(nullptr, type);
  }));
  rpc::RpcAgent::setCurrentRpcAgent(agent);
  autograd::DistAutogradContainer::init(rank);
  agent->start();
  return agent;
}

void stop_agent(const std::shared_ptr<rpc::TensorPipeAgent>& agent) {
  agent->join(true);
  agent->shutdown();
  rpc::RpcAgent::setCurrentRpcAgent(nullptr);
}

std::shared_ptr<torch::jit::Operator> operator_of(const char* name, const char* overload) {
  for (const auto& each : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)))
    if (each->schema().overload_name() == overload) return each;
  throw std::runtime_error(std::string("this libtorch has no operator ") + name);
}

c10::intrusive_ptr<rpc::JitFuture> start(const std::shared_ptr<torch::jit::Operator>& what, int rank,
                                         std::vector<c10::IValue> arguments) {
  const auto agent = rpc::RpcAgent::getCurrentRpcAgent();
  rpc::ScriptCall call(what, std::move(arguments));
  return autograd::sendMessageWithAutograd(*agent, agent->getWorkerInfo(worker_name(rank)), std::move(call).toMessage());
}

at::Tensor answer(const c10::intrusive_ptr<rpc::JitFuture>& from) {
  from->waitAndThrow();
  const auto message = from->constValue().toCustomClass<rpc::Message>();
  auto type = message->type();
  const auto response = rpc::deserializeResponse(*message, type);
  return static_cast<rpc::ScriptResp&>(*response).value().toTensor();
}

int own_rank = 0;

/// From C++, PyTorch can call only operators on another process. This operator calls itself on the next process.
at::Tensor chain(const at::Tensor& x) {
  const auto forth = x + x;
  if (own_rank + 1 == chain_length) return forth;
  const auto back = answer(start(operator_of("aten::troupe_bench_chain", ""), own_rank + 1, {forth}));
  return back + back;
}

const auto registered = c10::RegisterOperators().op("aten::troupe_bench_chain(Tensor x) -> Tensor", &chain);

class driver : public round_trips {
 public:
  explicit driver(const std::string& meeting_file)
      : agent_(start_agent(meeting_file, 0)), add_(operator_of("aten::add", "Tensor")) {}
  ~driver() override { stop_agent(agent_); }

  void open() override { context_ = autograd::DistAutogradContainer::getInstance().newContext(); }
  void close() override {
    autograd::DistAutogradContainer::getInstance().releaseContext(context_->contextId());
    context_.reset();
  }
  at::Tensor call(const at::Tensor& x) override { return answer(start(add_, 1, {x, x, 1})); }
  std::vector<at::Tensor> call_at_once(const at::Tensor& x, int calls) override {
    std::vector<c10::intrusive_ptr<rpc::JitFuture>> started;
    for (int i = 0; i < calls; ++i) started.push_back(start(add_, 1, {x, x, 1}));
    std::vector<at::Tensor> result;
    for (const auto& each : started) result.push_back(answer(each));
    return result;
  }
  at::Tensor call_chain(const at::Tensor& x) override {
    return answer(start(operator_of("aten::troupe_bench_chain", ""), 1, {x}));
  }
  void backward(const at::Tensor& root, bool) override {
    autograd::DistEngine::getInstance().execute(context_->contextId(), {root}, false);
  }
  at::Tensor gradient(const at::Tensor& leaf) override { return context_->getGradients().at(leaf); }

 private:
  std::shared_ptr<rpc::TensorPipeAgent> agent_;
  std::shared_ptr<torch::jit::Operator> add_;
  autograd::ContextPtr context_;
};

}  // namespace

std::unique_ptr<round_trips> make_torch_driver(const std::string& meeting_file) {
  return std::make_unique<driver>(meeting_file);
}

void serve_torch(const std::string& meeting_file, int rank, int stop) {
  own_rank = rank;
  const auto agent = start_agent(meeting_file, rank);
  char word;
  [[maybe_unused]] const auto asked = ::read(stop, &word, 1);
  stop_agent(agent);
}

}  // namespace troupe::bench
