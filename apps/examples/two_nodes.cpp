// SPDX-License-Identifier: BSD-3-Clause
/// The shortest whole program: two nodes, here in one process, train a model of which each holds a half.
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include <troupe/troupe.hpp>

namespace {

troupe::settings named(const std::string& name) {
  troupe::settings result;
  result.name = name;
  return result;
}

// readme:begin
/// The half of the model that lives on the other node.
struct encoder : troupe::module {
  torch::nn::Linear layer{1, 32};

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method != "forward") throw std::invalid_argument("expected the method 'forward', got '" + method + "'");
    return {{torch::tanh(layer->forward(arguments.tensor(0)))}};
  }
  troupe::named_tensors parameters() override { return {{"weight", layer->weight}, {"bias", layer->bias}}; }
};

double train(const torch::Tensor& inputs, const torch::Tensor& targets) {
  troupe::node stage{named("stage")};  // usually a process of its own, on another machine
  troupe::add_module_type(stage, "encoder", [](auto&) { return std::make_shared<encoder>(); });

  troupe::node driver{named("driver")};
  driver.join("127.0.0.1", stage.port());
  auto half = driver.peer("stage").create("encoder");
  torch::nn::Linear head(32, 1);
  troupe::optimizer optimizer{driver, {"adam", {{"lr", 0.02}}}, {half}, {{"weight", head->weight}, {"bias", head->bias}}};

  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    troupe::context context{driver};                               // one forward pass and its backward pass
    auto hidden = half.call("forward", {inputs}).get().tensor(0);  // computed on the other node, joined to the graph here
    auto error = torch::mse_loss(head(hidden), targets);
    context.backward({error}).get();  // runs on both nodes
    optimizer.step(context);          // each parameter is stepped where it lives
    loss = error.item<double>();
  }
  return loss;
}
// readme:end

}  // namespace

int main() try {
  torch::manual_seed(1);
  const auto inputs = torch::linspace(-3, 3, 64).unsqueeze(1);
  const double loss = train(inputs, torch::sin(inputs));
  std::printf("loss after 200 steps: %.4f\n", loss);
  if (!(loss < 0.01)) throw std::runtime_error("expected a loss below 0.01");
} catch (const std::exception& failure) {
  std::fprintf(stderr, "two_nodes: %s\n", failure.what());
  return 1;
}
