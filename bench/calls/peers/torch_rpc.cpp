// SPDX-License-Identifier: BSD-3-Clause
#include "../distributed.hpp"

#include <unistd.h>

#include <ATen/core/op_registration/op_registration.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/engine/dist_engine.h>
#include <torch/csrc/distributed/autograd/utils.h>
#include <torch/csrc/distributed/rpc/script_call.h>

#include "../../support/torch_agent.hpp"

namespace troupe::bench {

namespace {

namespace rpc = torch::distributed::rpc;
namespace autograd = torch::distributed::autograd;

torch_agent_options agent_options(const std::string& meeting_file, int rank) {
  return {.meeting_file = meeting_file, .rank = rank, .processes = chain_length};
}

c10::intrusive_ptr<rpc::JitFuture> start(const std::shared_ptr<torch::jit::Operator>& what, int rank,
                                         std::vector<c10::IValue> arguments) {
  const auto agent = rpc::RpcAgent::getCurrentRpcAgent();
  rpc::ScriptCall call(what, std::move(arguments));
  return autograd::sendMessageWithAutograd(*agent, agent->getWorkerInfo(torch_worker_name(rank)), std::move(call).toMessage());
}

int own_rank = 0;

/// From C++, PyTorch can call only operators on another process. This operator calls itself on the next process.
at::Tensor chain(const at::Tensor& x) {
  const auto forth = x + x;
  if (own_rank + 1 == chain_length) return forth;
  const auto back = torch_answer(start(torch_operator("aten::troupe_bench_chain", ""), own_rank + 1, {forth}));
  return back + back;
}

const auto registered = c10::RegisterOperators().op("aten::troupe_bench_chain(Tensor x) -> Tensor", &chain);

class driver : public round_trips {
 public:
  explicit driver(const std::string& meeting_file)
      : agent_(start_torch_agent(agent_options(meeting_file, 0))), add_(torch_operator("aten::add", "Tensor")) {}
  ~driver() override { stop_torch_agent(agent_); }

  void open() override { context_ = autograd::DistAutogradContainer::getInstance().newContext(); }
  void close() override {
    autograd::DistAutogradContainer::getInstance().releaseContext(context_->contextId());
    context_.reset();
  }
  at::Tensor call(const at::Tensor& x) override { return torch_answer(start(add_, 1, {x, x, 1})); }
  std::vector<at::Tensor> call_at_once(const at::Tensor& x, int calls) override {
    std::vector<c10::intrusive_ptr<rpc::JitFuture>> started;
    for (int i = 0; i < calls; ++i) started.push_back(start(add_, 1, {x, x, 1}));
    std::vector<at::Tensor> result;
    for (const auto& each : started) result.push_back(torch_answer(each));
    return result;
  }
  at::Tensor call_chain(const at::Tensor& x) override {
    return torch_answer(start(torch_operator("aten::troupe_bench_chain", ""), 1, {x}));
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
  const auto agent = start_torch_agent(agent_options(meeting_file, rank));
  char word;
  [[maybe_unused]] const auto asked = ::read(stop, &word, 1);
  stop_torch_agent(agent);
}

}  // namespace troupe::bench
