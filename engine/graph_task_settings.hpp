// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/recordings.hpp>
#include <troupe/engine/send_backward.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace troupe::engine {

class cpu_workers;
class gradient_table;
class guest;
class warning_relay;
struct recv_backward;

/// Takes the gradients that reach recv_backward functions. A graph task calls emit() once for each recv_backward that it runs.
/// `unreached`: empty, or one flag for each gradient. True: no function of the pass leads to the tensor, and its gradient is
/// undefined. Gradients of other tensors may be undefined too.
/// `more`: whether more gradients may follow, because functions of the task are ready, or run in lanes, or callbacks wait, or
/// `from` has post-hooks.
class outlet {
 public:
  virtual ~outlet() = default;
  virtual void emit(const recv_backward& from, std::vector<at::Tensor> gradients, std::vector<bool> unreached, bool more) = 0;
};

/// A send from which a distributed pass continues on this node. Without recordings, the functions that the send reaches get the
/// rank of the send (see PL-3). Functions of a higher rank run first, so the order of sums does not depend on the order of
/// arrival.
struct send_source {
  pointer_to<send_backward> function;
  std::uint64_t rank = 0;
};

/// A hook that gets the gradient of a captured input and returns the gradient to keep. The hooks of one input run in the order
/// of the list.
struct capture_hook {
  std::size_t input;
  std::function<at::Tensor(const at::Tensor&)> call;
};

struct graph_task_settings {
  torch::autograd::edge_list roots;               // gradient edges of the roots
  torch::autograd::variable_list root_gradients;  // one gradient per root
  std::vector<send_source> sends;                 // distributed pass: sources that wait for their gradients
  std::vector<recording> recordings;              // of the context's functions on this node; if empty, `sends` give the ranks
  torch::autograd::edge_list inputs;              // if empty, all functions run; otherwise only those that lead to an input
  bool capture = false;                           // return the gradients of `inputs` instead of accumulating them (grad())
  std::vector<capture_hook> capture_hooks;        // used with `capture`
  bool keep_graph = false;
  bool create_graph = false;
  gradient_table* leaves = nullptr;    // if set, takes leaf gradients instead of `.grad`; the hooks of leaves run
  std::mutex* leaves_mutex = nullptr;  // if set, held while the task changes `leaves`; other threads lock it to read the table
  outlet* emit_to = nullptr;           // takes the gradients of recv_backward functions; must be set if the graph has one
  guest* of_guest = nullptr;           // if set, functions of another library are parts of the graph
  pass_recorder* recorder = nullptr;   // used with create_graph and recordings: notes the functions that the pass records
  warning_relay* warnings = nullptr;   // collects the warnings if run() is called on another thread than the constructor
  cpu_workers* workers = nullptr;      // may run large functions; not used with create_graph (GT-7)
  bool in_libtorch_task = false;       // run() is called in a graph task of libtorch (drop_in/task_state.hpp); no fresh stack
  bool one_thread = false;             // run() is called only on the constructing thread, so its state is not copied
};

}  // namespace troupe::engine
