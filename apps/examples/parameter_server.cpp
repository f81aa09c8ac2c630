// SPDX-License-Identifier: BSD-3-Clause
/// A parameter server. One node holds an embedding of a million rows. Three trainers look rows up, learn on their own share of
/// the data, and step the rows that they used. The trainers work at once and do not wait for each other. The gradients of the
/// table are sparse: messages and steps are far smaller than the table.
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <troupe/troupe.hpp>

namespace {

constexpr std::int64_t rows = 1'000'000;
constexpr std::int64_t width = 8;
constexpr std::int64_t words = 600;  // words that occur in the data
constexpr int trainers = 3;

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

/// The embedding as a module. Its method `look_up` gets row numbers and returns these rows.
class table : public troupe::module {
 public:
  table() : weight_(torch::zeros({rows, width}).requires_grad_()) {}

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method != "look_up") throw std::invalid_argument("expected the method 'look_up', got '" + method + "'");
    return {{torch::embedding(weight_, arguments.tensor(0), -1, false, /*sparse=*/true)}};
  }

  troupe::named_tensors parameters() override { return {{"weight", weight_}}; }

 private:
  torch::Tensor weight_;
};

/// The value that is to be learned for each word.
torch::Tensor truth(const torch::Tensor& numbers) { return torch::sin(numbers.to(torch::kFloat) * 0.37).unsqueeze(1); }

/// Trains on the words with the numbers `mine`, `mine + trainers`, ... Returns the loss of the last step.
double train(troupe::node& here, const troupe::remote_module& shared, int mine) {
  auto head = torch::full({width, 1}, 1.0 / width);  // the table learns; this layer does not
  troupe::optimizer optimizer{here, {"adagrad", {{"lr", 0.2}}}, {shared}};
  const auto share = torch::arange(mine, words, trainers) * (rows / words);
  double loss = 0;
  for (int step = 0; step < 60; ++step) {
    const auto batch = share.index({torch::randint(share.numel(), {64})});
    troupe::context pass{here};
    const auto looked_up = shared.call("look_up", {batch}).get().tensor(0);
    const auto error = torch::mse_loss(looked_up.matmul(head), truth(batch));
    pass.backward({error}).get();
    optimizer.step(pass);
    loss = error.item<double>();
  }
  return loss;
}

void run() {
  torch::manual_seed(1);
  troupe::node server{named("server")};
  troupe::add_module_type(server, "table", [](auto&) { return std::make_shared<table>(); });

  std::vector<std::unique_ptr<troupe::node>> nodes;
  for (int i = 0; i < trainers; ++i) {
    nodes.push_back(std::make_unique<troupe::node>(named("trainer" + std::to_string(i))));
    nodes.back()->join("127.0.0.1", server.port());
  }
  // The first trainer creates the table and lends it to the others. The table lives as long as one trainer holds it.
  const auto made = nodes[0]->peer("server").create("table");
  std::vector<troupe::remote_module> handles{made};
  for (int i = 1; i < trainers; ++i)
    handles.push_back(troupe::remote_module::accept(*nodes[i], made.lend(nodes[0]->peer(nodes[i]->name()))));

  std::vector<std::future<double>> losses;
  for (int i = 0; i < trainers; ++i)
    losses.push_back(std::async(std::launch::async, train, std::ref(*nodes[i]), std::cref(handles[i]), i));
  double worst = 0;
  for (auto& loss : losses) worst = std::max(worst, loss.get());

  const auto weight = made.parameter("weight");
  const auto touched = weight.abs().sum(1).ne(0).sum().item<std::int64_t>();
  std::printf("%d trainers, a table of %lld rows: %lld were learned, the worst loss is %.4f\n", trainers,
              static_cast<long long>(rows), static_cast<long long>(touched), worst);
  if (touched > words || touched < words / 2) throw std::runtime_error("expected steps on the rows of the data alone");
  if (!(worst < 0.05)) throw std::runtime_error("expected losses below 0.05");
}

}  // namespace

int main() try { run(); } catch (const std::exception& failure) {
  std::fprintf(stderr, "parameter_server: %s\n", failure.what());
  return 1;
}
