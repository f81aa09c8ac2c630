// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/drop_in/install.hpp>

#include <mutex>

#include <torch/csrc/autograd/engine.h>

#include <troupe/engine/drop_in/substitute.hpp>

namespace troupe {

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::variable_list;

variable_list run_on_libtorch(Engine& engine, const engine::pass_request& request) {
  return engine.execute(request.roots, request.gradients, request.keep_graph, request.create_graph, request.accumulate_grad,
                        request.inputs);
}

/// In the place of libtorch's engine, which still does what is no pass: anomaly metadata, default hooks, threads.
class installed_engine final : public Engine {
 public:
  explicit installed_engine(Engine& libtorch) : libtorch_(libtorch) {}

  variable_list execute(const edge_list& roots, const variable_list& gradients, bool keep_graph, bool create_graph,
                        bool accumulate_grad, const edge_list& inputs) override {
    return engine::run_substituted(libtorch_, run_on_libtorch,
                                   {roots, gradients, keep_graph, create_graph, accumulate_grad, inputs});
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(const std::shared_ptr<torch::autograd::GraphTask>& task,
                                                                 std::shared_ptr<torch::autograd::Node> root,
                                                                 torch::autograd::InputBuffer&& buffer) override {
    return libtorch_.execute_with_graph_task(task, std::move(root), std::move(buffer));
  }

  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return libtorch_.make_anomaly_metadata();
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return libtorch_.get_default_saved_variable_hooks();
  }

  Engine& libtorch() { return libtorch_; }

 private:
  Engine& libtorch_;
};

std::mutex installing;
installed_engine* ours = nullptr;  // made once and never destroyed: passes may run until the process ends

Engine& stub_of_ours() { return *ours; }
Engine& stub_of_libtorch() { return ours->libtorch(); }

}  // namespace

void install_engine() {
  const std::scoped_lock lock(installing);
  if (ours == nullptr) {
    ours = new installed_engine(Engine::get_default_engine());
  }
  torch::autograd::set_default_engine_stub(stub_of_ours);
}

void uninstall_engine() {
  const std::scoped_lock lock(installing);
  if (ours != nullptr && &Engine::get_default_engine() == ours) {
    torch::autograd::set_default_engine_stub(stub_of_libtorch);
  }
}

}  // namespace troupe
