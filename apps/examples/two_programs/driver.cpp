// SPDX-License-Identifier: BSD-3-Clause
/// The driver, the first of two programs. It trains a model of which it holds one half. The other half is on the stage
/// (stage.cpp).
#include <cstdio>
#include <exception>
#include <stdexcept>

#include <torch/torch.h>

#include <troupe/troupe.hpp>

namespace {

void train(troupe::node& here) {
  auto half = here.peer("stage").create("encoder", {{"inputs", 1}, {"width", 32}});
  torch::nn::Linear head(32, 1);
  troupe::optimizer optimizer{here, {"adam", {{"lr", 0.02}}}, {half}, {{"weight", head->weight}, {"bias", head->bias}}};
  const auto inputs = torch::linspace(-3, 3, 64).unsqueeze(1);
  const auto targets = torch::sin(inputs);
  double loss = 1;
  for (int step = 0; step < 200; ++step) {
    troupe::context context{here};
    const auto hidden = half.call("forward", {inputs}).get().tensor(0);
    const auto error = torch::mse_loss(head(hidden), targets);
    context.backward({error}).get();
    optimizer.step(context);
    loss = error.item<double>();
  }
  std::printf("loss after 200 steps: %.4f\n", loss);
  if (!(loss < 0.01)) throw std::runtime_error("expected a loss below 0.01");
}

}  // namespace

int main(int argc, char** argv) try {
  troupe::node here(troupe::settings(argc, argv));  // --name=driver --join=HOST:PORT ...
  train(here);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "driver: %s\n", failure.what());
  return 1;
}
