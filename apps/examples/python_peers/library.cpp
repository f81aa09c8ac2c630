// SPDX-License-Identifier: BSD-3-Clause
/// What Python programs use of a C++ node: `troupe node --name stage1 --load libexample_python_peers.so`. The programs are
/// solver.py and middle_stage.py in python/torchtroupe/examples.
#include <memory>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include <troupe/actors/library.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/troupe.hpp>

namespace {

using torch::autograd::variable_list;

/// Solves x + k x^3 = y for x, by Newton's method. The derivatives are those of the equation, not of the steps.
struct cubic_solution : torch::autograd::Function<cubic_solution> {
  static at::Tensor forward(torch::autograd::AutogradContext* saved, const at::Tensor& y, const at::Tensor& k) {
    auto x = y / (1 + k);
    for (int step = 0; step < 60; ++step) x = x - (x + k * x.pow(3) - y) / (1 + 3 * k * x.square());
    saved->save_for_backward({x, k});
    return x;
  }
  static variable_list backward(torch::autograd::AutogradContext* saved, const variable_list& gradients) {
    const auto all = saved->get_saved_variables();
    const auto& x = all[0];
    const auto of_y = gradients[0] / (1 + 3 * all[1] * x.square());
    return {of_y, -(of_y * x.pow(3)).sum_to_size(all[1].sizes())};
  }
};

/// The middle of a model. `step` moves the parameters against the gradients of the context in which `step` is called.
class middle : public troupe::module {
 public:
  explicit middle(const troupe::attributes& values)
      : layer_(troupe::get<std::int64_t>(values, "width"), troupe::get<std::int64_t>(values, "width")) {}

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method == "forward") return {{torch::tanh(layer_->forward(arguments.tensor(0)))}};
    if (method != "step") throw std::invalid_argument("expected the method 'forward' or 'step', got '" + method + "'");
    const torch::NoGradGuard no_graph;
    const auto rate = troupe::get<double>(arguments.values, "rate");
    for (auto& each : layer_->parameters())
      if (const auto gradient = arguments.gradients->find(each); gradient.defined()) each.sub_(gradient, rate);
    return {};
  }
  troupe::named_tensors parameters() override { return {{"weight", layer_->weight}, {"bias", layer_->bias}}; }

 private:
  torch::nn::Linear layer_;
};

/// Doubles the tensor, and has a function of the calling node rate it.
troupe::call_reply rated(troupe::call_arguments& call) {
  const auto caller = call.here.peer(call.here.name_of(call.caller));
  return caller.call("reward", {call.tensor(0) * 2}, {{"scale", 3}}).get();
}

}  // namespace

TROUPE_LIBRARY(here) {
  here.functions().add("solve", [](troupe::call_arguments& call) -> troupe::call_reply {
    return {{cubic_solution::apply(call.tensor(0), call.tensor(1))}};
  });
  here.functions().add("rated", rated);
  here.functions().add("same", [](troupe::call_arguments& call) -> troupe::call_reply { return {call.tensors, call.values}; });
  troupe::add_module_type(here, "middle", [](auto& values) { return std::make_shared<middle>(values); });
}
