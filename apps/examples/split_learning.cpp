// SPDX-License-Identifier: BSD-3-Clause
/// Split learning between two parties. The clinic has the data and the labels, and keeps both: it holds the first and the last
/// layer. The laboratory holds the large middle part. The laboratory sees only the output of the first layer and gradients.
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <troupe/troupe.hpp>

namespace {

constexpr std::int64_t patients = 256;
constexpr std::int64_t findings = 2;  // values per patient: the raw data
constexpr std::int64_t width = 24;

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

/// The laboratory's part of the model. It records how many columns each tensor has that it gets.
class middle : public troupe::module {
 public:
  explicit middle(std::vector<std::int64_t>& shown) : shown_(shown) {
    layers_ = torch::nn::Sequential(torch::nn::Linear(width, width), torch::nn::Tanh(), torch::nn::Linear(width, width));
  }

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method != "forward") throw std::invalid_argument("expected the method 'forward', got '" + method + "'");
    for (const auto& each : arguments.tensors) shown_.push_back(each.size(1));
    return {{layers_->forward(arguments.tensor(0))}};
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
  std::vector<std::int64_t>& shown_;
};

void run() {
  torch::manual_seed(3);
  std::vector<std::int64_t> shown;
  troupe::node laboratory{named("laboratory")};
  troupe::add_module_type(laboratory, "middle", [&](auto&) { return std::make_shared<middle>(shown); });

  troupe::node clinic{named("clinic")};
  clinic.join("127.0.0.1", laboratory.port());
  auto theirs = clinic.peer("laboratory").create("middle");
  torch::nn::Linear first(findings, width);
  torch::nn::Linear last(width, 2);
  troupe::optimizer optimizer{
    clinic,
    {"adam", {{"lr", 0.02}}},
    {theirs},
    {{"first.weight", first->weight}, {"first.bias", first->bias}, {"last.weight", last->weight}, {"last.bias", last->bias}}};

  const auto data = torch::randn({patients, findings});     // stays in the clinic
  const auto labels = data.prod(1).gt(0).to(torch::kLong);  // stay in the clinic
  torch::Tensor scores;
  for (int step = 0; step < 120; ++step) {
    troupe::context pass{clinic};
    const auto hidden = torch::tanh(first(data));
    scores = last(torch::tanh(theirs.call("forward", {hidden}).get().tensor(0)));
    pass.backward({torch::nn::functional::cross_entropy(scores, labels)}).get();
    optimizer.step(pass);
  }
  const auto right = scores.argmax(1).eq(labels).to(torch::kFloat).mean().item<double>();
  std::printf("%.0f%% right after 120 steps; the laboratory saw %zu tensors, all of %lld columns, never the %lld findings\n",
              100 * right, shown.size(), static_cast<long long>(width), static_cast<long long>(findings));
  for (const auto columns : shown)
    if (columns != width) throw std::runtime_error("expected the laboratory to see hidden layers alone");
  if (!(right > 0.95)) throw std::runtime_error("expected more than 95% right");
}

}  // namespace

int main() try { run(); } catch (const std::exception& failure) {
  std::fprintf(stderr, "split_learning: %s\n", failure.what());
  return 1;
}
