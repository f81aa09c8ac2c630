// SPDX-License-Identifier: BSD-3-Clause
#include "engine_rows.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
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

workload over(no_work_graph graph) {
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
  std::vector<std::vector<at::Tensor>> heard;
  graph.end->listening = true;
  for (const runner which : runners) {
    run(which);
    heard.push_back(std::exchange(graph.end->heard, {}));
  }
  graph.end->listening = false;
  expect_same(heard[0], heard[1]);
  expect_same(heard[0], heard[2]);
  return {run, {}, {}, true};
}

workload over(model_graph model) {
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
  std::vector<std::vector<at::Tensor>> heard;
  graph.end->listening = true;
  for (const runner which : {runner::peer, runner::troupe}) {
    enter(which);
    run(which);
    heard.push_back(std::exchange(graph.end->heard, {}));
  }
  graph.end->listening = false;
  expect_same(heard[0], heard[1]);
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
  std::vector<std::vector<at::Tensor>> heard;
  graph.end->listening = true;
  for (const runner which : {runner::peer, runner::troupe}) {
    run(which);
    heard.push_back(std::exchange(graph.end->heard, {}));
  }
  graph.end->listening = false;
  expect_same(heard[0], heard[1]);
  return {run, {}, {}, false};
}

template <class Make>
row_definition no_work(const char* name, std::size_t functions, double bar, Make make) {
  return {name,
          "ns/function",
          1e9 / static_cast<double>(functions),
          comparison::peer_over_troupe,
          bar,
          "",
          [make] { return over(make()); },
          false};
}

void add_model(std::vector<row_definition>& rows, const std::string& name, double bar, model_graph (*make)(c10::Device)) {
  rows.push_back({name, "us/pass", 1e6, comparison::peer_over_troupe, bar, "", [=] { return over(make(c10::kCPU)); }, false});
  rows.push_back({name + "_memory", "KiB", 0, comparison::troupe_over_peer, 1, "", [=] { return over_fresh(make); }, true});
}

}  // namespace

std::vector<row_definition> engine_rows(bool quick) {
  const std::size_t large = quick ? 2000 : 100000;
  const std::size_t deep = quick ? 20000 : 1000000;
  std::vector<row_definition> rows;
  rows.push_back(no_work("one_function", 1, 8, [] { return make_chain(1); }));
  rows.push_back(no_work("chain_10", 10, 10, [] { return make_chain(10); }));
  rows.push_back(no_work("chain_1000", 1000, 10, [] { return make_chain(1000); }));
  rows.push_back(no_work("chain_100000", large, 7.5, [=] { return make_chain(large); }));
  rows.push_back(no_work("chain_1000000", deep, 3, [=] { return make_chain(deep); }));
  rows.back().compare = comparison::troupe_over_other;
  rows.back().other = "chain_1000";
  rows.push_back(no_work("wide_1000", 2001, 10, [] { return make_wide(1000); }));
  rows.push_back(no_work("wide_100000", 2 * large + 1, 8, [=] { return make_wide(large); }));
  rows.push_back(no_work("fan_in_1000", 1002, 4, [] { return make_fan_in(1000); }));
  const std::size_t layers = quick ? 10 : 300;
  rows.push_back(no_work("lattice_30000", 100 * layers + 1, 4, [=] { return make_lattice(layers, 100); }));
  for (const auto& [length, bar] : {std::pair<std::size_t, double>{1, 0.85}, {10, 2}, {1000, 7}}) {
    rows.push_back({"drop_in_" + std::to_string(length), "ns/function", 1e9 / static_cast<double>(length),
                    comparison::peer_over_troupe, bar, "", [length = length] { return through_drop_in(length); }, false});
  }
  const std::size_t heavy = quick ? 4 : 100;
  rows.push_back({"parallel_wide", "us/function", 1e6 / static_cast<double>(heavy), comparison::peer_over_troupe, 1.8, "",
                  [=] { return over_workers(make_wide_at_work(heavy, 200)); }, false});
  rows.push_back({"parallel_no_work", "ns/function", 1e9 / 2001, comparison::peer_over_troupe, 0.95, "",
                  [] { return over_workers(make_wide(1000)); }, false});
  add_model(rows, "mlp_batch_1", 1.3, make_mlp_batch_1);
  add_model(rows, "lstm_64", 1.15, make_lstm_64);
  add_model(rows, "transformer_64", 1.05, make_transformer_64);
  add_model(rows, "conv_small", 1, make_conv_small);
  return rows;
}

}  // namespace troupe::bench
