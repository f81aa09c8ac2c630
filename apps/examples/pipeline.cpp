// SPDX-License-Identifier: BSD-3-Clause
/// A pipeline. Two stages on two nodes work at once on the micro-batches of one batch, and one backward pass goes through
/// both. At the end the gradients of both stages are compared with those of the whole model in one process on libtorch's own
/// engine.
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <troupe/troupe.hpp>

namespace {

constexpr std::int64_t width = 64;
constexpr std::int64_t micro_batches = 4;

/// One stage of the model. Two blocks that are made with one seed have the same parameters.
class block : public troupe::module {
 public:
  explicit block(std::int64_t seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    layers_ = torch::nn::Sequential(torch::nn::Linear(width, width), torch::nn::GELU(), torch::nn::Linear(width, width));
  }

  torch::Tensor forward(const torch::Tensor& inputs) { return layers_->forward(inputs); }

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method != "forward") throw std::invalid_argument("expected the method 'forward', got '" + method + "'");
    return {{forward(arguments.tensor(0))}};
  }

  troupe::named_tensors parameters() override { return listed(layers_->named_parameters()); }
  troupe::named_tensors buffers() override { return listed(layers_->named_buffers()); }

 private:
  static troupe::named_tensors listed(const torch::OrderedDict<std::string, torch::Tensor>& from) {
    troupe::named_tensors all;
    for (const auto& each : from) all.emplace_back(each.key(), each.value());
    return all;
  }

  torch::nn::Sequential layers_{nullptr};
};

std::unique_ptr<troupe::node> make_stage(const std::string& name, std::uint16_t first) {
  troupe::settings options;
  options.name = name;
  if (first != 0) options.join.push_back("127.0.0.1:" + std::to_string(first));
  auto stage = std::make_unique<troupe::node>(options);
  troupe::add_module_type(*stage, "block",
                          [](auto& values) { return std::make_shared<block>(troupe::get<std::int64_t>(values, "seed")); });
  return stage;
}

/// Computes the loss of a batch on both stages at once: the second stage works on one micro-batch while the first stage works
/// on the next.
torch::Tensor pipelined_loss(const troupe::remote_module& first, const troupe::remote_module& second,
                             const torch::Tensor& batch) {
  std::vector<troupe::future<troupe::call_reply>> halfway;
  for (auto& micro_batch : batch.chunk(micro_batches)) halfway.push_back(first.call("forward", {micro_batch}));
  std::vector<troupe::future<troupe::call_reply>> done;
  for (auto& each : halfway) done.push_back(second.call("forward", {each.get().tensor(0)}));
  std::vector<torch::Tensor> outputs;
  for (auto& each : done) outputs.push_back(each.get().tensor(0));
  return torch::cat(outputs).square().mean();
}

double largest_difference(const troupe::named_tensors& gradients, block& reference) {
  double largest = 0;
  auto expected = reference.parameters();
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, (gradients.at(i).second - expected[i].second.grad()).abs().max().item<double>());
  return largest;
}

void run() {
  auto stage1 = make_stage("stage1", 0);
  auto stage2 = make_stage("stage2", stage1->port());
  troupe::settings options;
  options.name = "driver";
  options.join = {"127.0.0.1:" + std::to_string(stage1->port())};
  troupe::node driver{options};
  auto first = driver.peer("stage1").create("block", {{"seed", 1}});
  auto second = driver.peer("stage2").create("block", {{"seed", 2}});
  auto batch = torch::randn({32, width});

  troupe::context pass{driver};
  auto loss = pipelined_loss(first, second, batch);
  pass.backward({loss}).get();

  block first_here(1);
  block second_here(2);
  second_here.forward(first_here.forward(batch)).square().mean().backward();
  auto difference =
    std::max(largest_difference(first.gradients(pass), first_here), largest_difference(second.gradients(pass), second_here));
  std::printf("loss %.6f over %lld micro-batches; gradients within %.1e of one process\n", loss.item<double>(),
              static_cast<long long>(micro_batches), difference);
  if (!(difference < 1e-6)) throw std::runtime_error("expected the gradients of one process");
}

}  // namespace

int main() try { run(); } catch (const std::exception& failure) {
  std::fprintf(stderr, "pipeline: %s\n", failure.what());
  return 1;
}
