// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/evaluate.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <troupe/engine/anomaly.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/guest.hpp>
#include <troupe/engine/hooks.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/running_pass.hpp>

namespace troupe::engine {

using torch::autograd::AccumulateGrad;
using torch::autograd::AnomalyMode;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

// True if libtorch's validation would not change the gradient. False for every unusual case, which libtorch's validation then
// handles.
bool fits(const torch::autograd::InputMetadata& wanted, const at::Tensor& gradient) {
  if (wanted.was_default_constructed() || wanted.is_nested_tensor() || wanted.is_tensor_subclass()) return false;
  const at::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
  const at::TensorOptions& options = wanted.options();
  if (impl.is_python_dispatch() || impl.has_symbolic_sizes_strides() || gradient.is_nested() || impl.layout() != at::kStrided ||
      options.layout() != at::kStrided || options.dtype_opt() != impl.dtype() || options.device_opt() != impl.device() ||
      wanted.grad_dtype() != gradient.scalar_type())
    return false;
  const at::IntArrayRef sizes = impl.sizes();
  const c10::SymIntArrayRef shape = wanted.shape_as_dim_vector();
  if (shape.size() != sizes.size()) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto length = shape[i].maybe_as_int();
    if (!length || *length != sizes[i]) return false;
  }
  return true;
}

bool all_fit(const edge_list& edges, const variable_list& gradients) {
  if (edges.size() != gradients.size()) return false;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto& edge = edges[i];
    if (edge.is_valid() && gradients[i].defined() && !fits(edge.function->input_metadata(edge.input_nr), gradients[i]))
      return false;
  }
  return true;
}

// libtorch's validation, which changes the outputs or throws.
void make_fit(const Node& function, variable_list& outputs) {
  torch::autograd::validate_outputs(function.next_edges(), outputs, [&](const std::string& reason) {
    return "Function " + function.name() + " returned an " + reason;
  });
}

// Drops outputs that the pass does not use. libtorch's functions do not compute such outputs, but a user's functions may.
void drop_unwanted(variable_list& outputs, std::size_t edges, const plan::edge* next) {
  for (std::size_t i = 0; i < std::min(outputs.size(), edges); ++i)
    if (next[i].vertex == plan::none) outputs[i].reset();
}

void accumulate_in(gradient_table& leaves, std::mutex* mutex, guest* of, AccumulateGrad& function, variable_list& inputs) {
  if (!inputs[0].defined()) return;
  TORCH_CHECK(function.variable.grad_fn() == nullptr, "leaf variable has been moved into the graph interior");
  const auto lock = mutex != nullptr ? std::unique_lock(*mutex) : std::unique_lock<std::mutex>();
  if (!function.variable.requires_grad()) return;
  if (of != nullptr) return of->accumulate(function.variable, inputs[0]);
  leaves.accumulate(function.variable, std::move(inputs[0]));
}

void inspect(const pass_notes& notes, Node& function, const variable_list& outputs) {
  if (AnomalyMode::should_check_nan()) check_for_nan(function, outputs);
  adopt_outputs(function, notes.made_from, outputs);
}

variable_list call(Node& function, variable_list& inputs, gradient_table* leaves, std::mutex* mutex, guest* of) {
  if (leaves != nullptr && function.num_outputs() == 0) {
    if (auto* leaf = dynamic_cast<AccumulateGrad*>(&function)) {
      accumulate_in(*leaves, mutex, of, *leaf, inputs);
      return {};
    }
    if (of != nullptr)
      if (auto* recv = of->recv_of(function)) return recv->apply(std::move(inputs));
  }
  return function(std::move(inputs));
}

}  // namespace

void validate(const edge_list& edges, variable_list& gradients,
              const std::function<std::string(const std::string&)>& describe) {
  if (!all_fit(edges, gradients)) torch::autograd::validate_outputs(edges, gradients, describe);
}

variable_list evaluation::operator()(Node& function, variable_list& inputs, const plan::edge* next,
                                     const std::vector<bool>* unreached) const {
  if (has_tensor_hooks(function)) call_tensor_hooks(function, inputs, unreached);
  if (!function.pre_hooks().empty()) call_pre_hooks(function, inputs);
  if (!keep_graph) function.will_release_variables();
  variable_list outputs;
  if (!function.post_hooks().empty()) {
    // The post-hooks need the inputs after the function has run, so two lists hold the inputs. libtorch's accumulation function
    // expects the second reference if there are post-hooks, and still takes the gradient without a copy.
    variable_list handed = inputs;
    outputs = call(function, handed, leaves, leaves_mutex, of_guest);
  } else {
    outputs = call(function, inputs, leaves, leaves_mutex, of_guest);
    inputs.clear();  // If the function adds a post-hook while it runs, the hook gets no inputs, as in libtorch.
  }
  const bool has_post_hooks = !function.post_hooks().empty();
  if (pruned && !has_post_hooks) drop_unwanted(outputs, function.num_outputs(), next);
  if (!all_fit(function.next_edges(), outputs)) make_fit(function, outputs);
  if (has_post_hooks) call_post_hooks(function, outputs, inputs);
  inputs.clear();
  if (!keep_graph) function.release_variables();
  if (anomaly != nullptr) inspect(*anomaly, function, outputs);
  return outputs;
}

}  // namespace troupe::engine
