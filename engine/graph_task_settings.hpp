// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/recordings.hpp>
#include <troupe/engine/send_backward.hpp>

namespace troupe::engine {

class cpu_workers;
class gradient_table;
class warning_relay;
struct recv_backward;

/// Takes the gradients that reach a recv_backward while a graph task runs. `more`: the task has other functions ready.
class outlet {
 public:
  virtual ~outlet() = default;
  virtual void emit(const recv_backward& from, std::vector<at::Tensor> gradients, bool more) = 0;
};

/// A send as a source of a distributed pass. Where nothing is known of the functions' recordings, those that it reaches have
/// its rank. Higher ranks run first, so sums do not depend on arrival.
struct send_source {
  std::shared_ptr<send_backward> function;
  std::uint64_t rank = 0;
};

/// Is handed the gradient of an input when it is captured, and returns the one that is kept. Those of an input run as listed.
struct capture_hook {
  std::size_t input;
  std::function<at::Tensor(const at::Tensor&)> call;
};

/// What a graph task runs. See graph_task.
struct graph_task_settings {
  torch::autograd::edge_list roots;               // gradient edges of the roots, with
  torch::autograd::variable_list root_gradients;  // one gradient for each
  std::vector<send_source> sends;                 // distributed pass: sources that wait for their gradients
  std::vector<recording> recordings;              // of the context's functions on this node; empty: ranks are those of sends
  torch::autograd::edge_list inputs;              // empty: everything; otherwise only what leads to these
  bool capture = false;                           // with inputs: return their gradients instead of accumulating (grad())
  std::vector<capture_hook> capture_hooks;        // with `capture`
  bool keep_graph = false;
  bool create_graph = false;
  gradient_table* leaves = nullptr;   // leaf gradients go here instead of `.grad`, hooks of the leaf included
  outlet* emit_to = nullptr;          // for recv_backward functions; must be set where the graph has one
  pass_recorder* recorder = nullptr;  // with create_graph and recordings: is told what the pass records
  warning_relay* warnings = nullptr;  // takes warnings of functions that another thread runs; to be replayed
  cpu_workers* workers = nullptr;     // large functions may run there; not with create_graph: see GT-7
  bool in_libtorch_task = false;      // run() is called inside one that publish() was told of, and stays on its stack
  bool one_thread = false;            // run() stays on the constructing thread: its state need not be kept
};

}  // namespace troupe::engine
