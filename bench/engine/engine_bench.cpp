// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <troupe/actors/worker_team.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/drop_in/install.hpp>

#include "../support/models.hpp"
#include "../support/no_work_graphs.hpp"
#include "../support/row_program.hpp"

namespace troupe::bench {

namespace {

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined() || !b[i].defined() || a[i].sizes() != b[i].sizes()) return false;
    const at::Tensor x = a[i].contiguous();
    const at::Tensor y = b[i].contiguous();
    if (std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) != 0) return false;
  }
  return true;
}

void expect_same(const std::vector<at::Tensor>& peer, const std::vector<at::Tensor>& troupe) {
  if (peer.empty() || !same_bits(peer, troupe))
    throw std::runtime_error("the gradients of troupe's engine are not those of libtorch's");
}

/// Runs the graph once by each of the runners. Throws if the gradients at its end differ.
void expect_same_at_end(const no_work_graph& graph, const std::vector<runner>& which, const std::function<void(runner)>& run) {
  std::vector<std::vector<at::Tensor>> heard;
  graph.end->listening = true;
  for (const runner each : which) {
    run(each);
    heard.push_back(std::exchange(graph.end->heard, {}));
  }
  graph.end->listening = false;
  for (const auto& each : heard) expect_same(heard.front(), each);
}

workload over(const no_work_graph& graph) {
  const auto run = [graph](runner which) {
    switch (which) {
      case runner::peer:
        return torch::autograd::backward({graph.root}, {graph.gradient}, false);
      case runner::troupe:
        return troupe::backward({graph.root}, {graph.gradient}, false);
      case runner::floor: {
        const c10::AutoGradMode as_in_a_pass(false);
        return graph.bare_loop();
      }
    }
  };
  expect_same_at_end(graph, {runners.begin(), runners.end()}, run);
  return {run, {}, {}, true};
}

workload over(const model_graph& model) {
  const auto clear = [model] {
    for (const at::Tensor& each : model.parameters) each.mutable_grad().reset();
  };
  const auto run = [model](runner which) {
    which == runner::peer ? torch::autograd::backward({model.loss}, {}, true) : troupe::backward({model.loss}, {}, true);
  };
  std::vector<std::vector<at::Tensor>> gradients(2);
  for (const runner which : {runner::peer, runner::troupe}) {
    clear();
    run(which);
    for (const at::Tensor& each : model.parameters) gradients[static_cast<std::size_t>(which)].push_back(each.grad());
  }
  expect_same(gradients[0], gradients[1]);
  return {run, clear, {}, false};
}

// Makes a new graph for each run. The pass frees the graph, so memory that is released late counts in the peak.
workload over_fresh(model_graph (*make)(c10::Device)) {
  over(make(c10::kCPU));  // throws if the gradients differ
  const auto model = std::make_shared<model_graph>();
  const auto build = [=] { *model = make(c10::kCPU); };
  const auto run = [=](runner which) {
    which == runner::peer ? torch::autograd::backward({model->loss}) : troupe::backward({model->loss});
  };
  return {run, build, {}, false};
}

// Compares libtorch's engine with troupe's engine, which is installed in its place. Both run through libtorch's API.
workload through_drop_in(std::size_t length) {
  const no_work_graph graph = make_chain(length);
  const auto enter = [](runner which) { which == runner::troupe ? install_engine() : uninstall_engine(); };
  const auto run = [graph](runner) { torch::autograd::backward({graph.root}, {graph.gradient}, false); };
  expect_same_at_end(graph, {runner::peer, runner::troupe}, [&](runner which) {
    enter(which);
    run(which);
  });
  return {run, {}, enter, false};
}

// The peer is troupe's serial pass. The other runner has a worker beside its thread.
workload over_workers(const no_work_graph& graph) {
  struct team {
    caf::actor_system_config config;
    caf::actor_system system{config.set("scheduler.max-threads", std::size_t{1})};
    worker_team workers{system, 1};
  };
  const auto beside = std::make_shared<team>();
  const auto run = [graph, beside](runner which) {
    pass_options options;
    options.workers = which == runner::troupe ? &beside->workers : nullptr;
    troupe::backward({graph.root}, {graph.gradient}, options);
  };
  expect_same_at_end(graph, {runner::peer, runner::troupe}, run);
  return {run, {}, {}, false};
}

timed_row no_work(const char* name, const char* text, std::size_t functions, double bar, std::function<no_work_graph()> make) {
  return {name, text, "ns/function", 1e9 / static_cast<double>(functions), at_least(bar), [=] { return over(make()); }};
}

void add_model(std::vector<timed_row>& rows, const std::string& name, const std::string& what, double bar,
               model_graph (*make)(c10::Device)) {
  rows.push_back({name, "A pass over " + what + ".", "us/pass", 1e6, at_least(bar), [=] { return over(make(c10::kCPU)); }});
  rows.push_back({.name = name + "_memory",
                  .text = "Memory at the peak of a pass over " + what + ".",
                  .unit = "KiB",
                  .per_second = 0,
                  .should_be = at_most(1),
                  .make = [=] { return over_fresh(make); },
                  .compare = comparison::troupe_over_peer,
                  .memory = true});
}

std::vector<timed_row> engine_rows(bool quick) {
  const std::size_t large = quick ? 2000 : 100000;
  const std::size_t deep = quick ? 20000 : 1000000;
  const std::size_t layers = quick ? 10 : 300;
  std::vector<timed_row> rows{
    no_work("one_function", "A backward pass over one function without work.", 1, 11, [] { return make_chain(1); }),
    no_work("chain_10", "A pass over a chain of 10 functions without work.", 10, 10, [] { return make_chain(10); }),
    no_work("chain_1000", "A pass over a chain of 1,000 functions without work.", 1000, 22, [] { return make_chain(1000); }),
    no_work("chain_100000", "A pass over a chain of 100,000 functions without work.", large, 7.5,
            [=] { return make_chain(large); }),
    no_work("chain_1000000", "A pass over a chain of 1,000,000 functions; ratio: its cost of a function by that of chain_1000.",
            deep, 3, [=] { return make_chain(deep); })};
  rows.back().should_be = at_most(3);
  rows.back().compare = comparison::troupe_over_other;
  rows.back().other = "chain_1000";
  rows.push_back(no_work("wide_1000", "A pass over 1,000 functions side by side.", 2001, 21, [] { return make_wide(1000); }));
  rows.push_back(
    no_work("wide_100000", "A pass over 100,000 functions side by side.", 2 * large + 1, 8, [=] { return make_wide(large); }));
  rows.push_back(
    no_work("fan_in_1000", "1,000 gradients that add up in one function.", 1002, 10, [] { return make_fan_in(1000); }));
  rows.push_back(no_work("lattice_30000", "300 layers of 100 functions, each with two inputs.", 100 * layers + 1, 7,
                         [=] { return make_lattice(layers, 100); }));
  struct drop_in {
    std::size_t length;
    double bar;
    const char* what;
  };
  for (const auto& [length, bar, what] :
       {drop_in{1, 1.4, "one function"}, {10, 2, "a chain of 10 functions"}, {1000, 12, "a chain of 1,000 functions"}})
    rows.push_back({"drop_in_" + std::to_string(length),
                    std::string("A program of libtorch with troupe's engine in its place: ") + what + ".", "ns/function",
                    1e9 / static_cast<double>(length), at_least(bar), [length = length] { return through_drop_in(length); }});
  const std::size_t heavy = quick ? 4 : 100;
  rows.push_back({"parallel_wide", "Functions of 200 µs side by side: one thread (peer) and one more worker (troupe).",
                  "us/function", 1e6 / static_cast<double>(heavy), at_least(1.8),
                  [=] { return over_workers(make_wide_at_work(heavy, 200)); }});
  rows.push_back({"parallel_no_work", "Functions without work: what a worker costs where it can't help. Peer: one thread.",
                  "ns/function", 1e9 / 2001, at_least(0.95), [] { return over_workers(make_wide(1000)); }});
  add_model(rows, "mlp_batch_1", "a small perceptron with a batch of 1", 1.3, make_mlp_batch_1);
  add_model(rows, "lstm_64", "an LSTM of 64 steps", 1.15, make_lstm_64);
  add_model(rows, "transformer_64", "a transformer layer, 64 tokens", 1.05, make_transformer_64);
  add_model(rows, "conv_small", "a small convolutional network", 1, make_conv_small);
  return rows;
}

constexpr const char* what_it_does =
  "Measures backward passes on libtorch's own engine, on troupe's and in a bare loop over the same functions, in turns on one "
  "thread, and prints a table: ratio is libtorch's cost by troupe's (of a ..._memory row troupe's by libtorch's, of "
  "chain_1000000 its cost per function by that of chain_1000). parallel_... compare troupe without and with one worker, in the "
  "columns libtorch and troupe. Also writes engine.json and engine.txt.";
constexpr const char* example = "Example: engine_bench --only chain_1000 mlp_batch_1 --out out/bench";

}  // namespace

}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  return run({"engine", what_it_does, example, "libtorch", engine_rows}, argc, argv);
}
