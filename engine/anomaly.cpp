// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/anomaly.hpp>

#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

/// Passes each warning on to `next` and adds its message to `text`.
class warning_copy final : public c10::WarningHandler {
 public:
  explicit warning_copy(c10::WarningHandler& next) : next_(next) {}
  void process(const c10::Warning& warning) override {
    text += (text.empty() ? "" : "\n") + warning.msg();
    next_.process(warning);
  }
  std::string text;

 private:
  c10::WarningHandler& next_;
};

/// True for each function, except `parent` itself, that this thread has created since sequence number `from`.
class made_by {
 public:
  made_by(Node& parent, std::uint64_t from)
      : parent_(parent), from_(from), to_(at::sequence_number::peek()), thread_(at::RecordFunction::currentThreadId()) {}

  bool operator()(const Node& function) const {
    return function.sequence_nr() >= from_ && function.sequence_nr() < to_ && function.thread_id() == thread_ &&
           &function != &parent_;
  }

 private:
  const Node& parent_;
  std::uint64_t from_;
  std::uint64_t to_;
  std::uint64_t thread_;
};

}  // namespace

void check_for_nan(Node& function, const variable_list& outputs) {
  c10::AutoGradMode no_grad(false);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    const c10::OptionalDeviceGuard device(outputs[i].device());
    TORCH_CHECK(!at::isnan(outputs[i])._is_any_true().item<bool>(), "Function '", function.name(),
                "' returned nan values in its ", i, "th output.");
  }
}

void adopt_outputs(Node& parent, std::uint64_t made_from, const variable_list& outputs) {
  const made_by made(parent, made_from);
  std::vector<Node*> open;
  std::unordered_set<Node*> seen;
  const auto visit = [&](Node* function) {
    if (function != nullptr && made(*function) && seen.insert(function).second) {
      function->metadata()->assign_parent(parent.getptr());
      open.push_back(function);
    }
  };
  for (const at::Tensor& output : outputs)
    if (output.defined()) visit(output.grad_fn().get());
  while (!open.empty()) {
    const Node& at = *open.back();
    open.pop_back();
    for (const auto& edge : at.next_edges()) visit(edge.function.get());
  }
}

void adopt_functions(Node& parent, std::uint64_t made_from, const plan& graph) {
  const made_by made(parent, made_from);
  for (const plan::vertex& each : graph.vertices)
    if (made(*each.function)) each.function->metadata()->assign_parent(parent.getptr());
}

std::string print_trace(Node& function) {
  warning_copy copy(*c10::WarningUtils::get_warning_handler());
  const c10::WarningUtils::WarningHandlerGuard copied(&copy);
  function.metadata()->print_stack(function.name());
  return std::move(copy.text);
}

}  // namespace troupe::engine
