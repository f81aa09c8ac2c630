// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <troupe/troupe.hpp>

#include "../support/background.hpp"
#include "../support/bench_program.hpp"
#include "../support/other_process.hpp"
#include "../support/scratch_folder.hpp"

namespace troupe::bench {

/// What carries the messages of two processes on loopback.
enum class carrier { caf, tcp, tls, shared_memory };

/// What `measure` returns, in some turns, each in a process of its own: one value for each figure and each turn.
class measured_turns {
 public:
  measured_turns(int turns, const std::function<std::vector<double>()>& measure);
  /// A figure of all turns. `figure`: its index in what `measure` returns.
  std::vector<double> all(std::size_t figure) const;
  double median(std::size_t figure) const;

 private:
  std::vector<std::vector<double>> turns_;
};

/// The measurements of suite_bench. Each one is to be called in a process of its own and starts the process that answers. Microseconds of
/// each run, unless said otherwise.

/// The bytes of a small call of troupe, with its header.
inline constexpr std::size_t small_message = 200;

/// A request of CAF with `bytes` bytes to an actor of another process and its answer with as many, over CAF's own network. `pause`: before
/// each.
std::vector<double> caf_requests(int runs, std::size_t bytes = small_message, std::chrono::microseconds pause = {});
/// `bytes` bytes to another process and back by gRPC, over TCP or, if troupe's calls are carried `by` TLS, by TLS with the same
/// certificates. Throws std::runtime_error if the suite was built without gRPC.
std::vector<double> grpc_calls(carrier by, int runs, std::size_t bytes);
/// `bytes` bytes to another process and back by PyTorch's RPC on TensorPipe. `by` tcp: over TCP. `by` shared_memory: TensorPipe
/// chooses the way within the machine.
std::vector<double> tensorpipe_calls(carrier by, int runs, std::size_t bytes);
/// `bytes` bytes to another process and back over TCP, and nothing else.
std::vector<double> tcp_exchanges(int runs, std::size_t bytes);
/// A question to a node of another process and its answer, each after a pause. `loaded`: all cores compute meanwhile.
std::vector<double> answers_after_pauses(std::chrono::microseconds pause, bool loaded, int runs);
/// Milliseconds of a backward pass in which each of `nodes` nodes of this process calls each other one.
std::vector<double> all_to_all_ms(std::size_t nodes, int runs);
/// A call of troupe with two tensors of one element.
std::vector<double> small_calls(carrier by, int runs);
/// A call of troupe with one tensor of `bytes` bytes, which comes back.
std::vector<double> echo_calls(carrier by, int runs, std::size_t bytes);
/// `bytes` bytes to another process and back, in shared memory that both processes watch without a pause.
std::vector<double> spinning_exchanges(int runs, std::size_t bytes = small_message);
/// As spinning_exchanges(), but a process that waits sleeps until the other process wakes it (futex).
std::vector<double> sleeping_exchanges(int runs, std::size_t bytes = small_message);
/// `bytes` bytes copied within this process, there and back.
std::vector<double> copies(int runs, std::size_t bytes);
/// The milliseconds, from the common start on, until each of `count` equal passes over two nodes is over. A pass has eight steps.
std::vector<double> times_of_passes(int count);
/// Bytes by which the resident memory grows for a context that is open and idle: of the node that opened it, and of the node that answered
/// one call in it.
std::vector<double> bytes_of_context(int count);
/// Bytes by which the resident memory of the node grows that holds an object without tensors for another node, and that of its owner.
std::vector<double> bytes_of_object(int count);

/// Makes the kits of the nodes a and b, which are valid for 127.0.0.1.
void make_kits(const scratch_folder& kits);
/// The file of a node's kit.
std::string kit_in(const scratch_folder& kits, const std::string& name);

/// How the two nodes of a pair are started. All else is as the code has it.
struct pair_settings {
  carrier by = carrier::shared_memory;
  std::chrono::microseconds short_work = settings().short_work;
  std::size_t workers = settings().workers;
  std::function<void(caf::actor_system_config&)> configure{};
};

/// This process's node "a", and the node "b" of another process. To be made before this process has other threads. Functions of b:
///   add       the sum of two tensors                    echo      the tensors of the call
///   spin      computes for `us` microseconds            compute   computes for 50 ms
///   resident  `bytes`, as resident_bytes()              throws    the tensor; its function in backward throws
///   peak      `bytes`: the most since "forget_peak"
/// b has the module type "empty", without parameters: what libtorch takes for tensors is not measured.
class node_pair {
 public:
  explicit node_pair(pair_settings how);

  node& here() { return *here_; }
  const peer& to() const { return *to_; }
  double resident_there() const { return get<double>(to_->call("resident").get().values, "bytes"); }

 private:
  scratch_folder kits_;
  other_process server_;
  std::optional<node> here_;
  std::optional<peer> to_;
};

/// Computes for about so long.
void compute(std::chrono::microseconds for_long);

/// Opens a context and runs `within` in it. Contexts of one thread do not nest, so another thread opens the context and ends.
template <class Run>
std::unique_ptr<context> open_context(node& here, Run within) {
  std::unique_ptr<context> result;
  on_own_thread([&] {
    result = std::make_unique<context>(here);
    within();
  });
  return result;
}

/// The plots of suite_bench, by the file that measures them.
std::vector<plot_definition> message_plots();
std::vector<plot_definition> actor_plots();
std::vector<plot_definition> scheduling_plots();
std::vector<plot_definition> grain_plots();
std::vector<plot_definition> shape_plots();
std::vector<plot_definition> memory_plots();
std::vector<plot_definition> training_plots();

/// The times that all but one of so many runs keep, for each of `one_of`.
std::vector<double> late_ones(const std::vector<double>& times, const std::vector<double>& one_of);
/// The curve of turns that have returned late_ones().
curve curve_of_late_ones(const std::string& name, role as, const measured_turns& found, const std::vector<double>& one_of);

/// Microseconds of a small call, of `at_once` that are under way at once.
std::vector<double> calls_together(const pair_settings& how, int at_once, int runs);

/// Microseconds until a node answers a question for its status, which travels as a heartbeat does. `loaded`: calls keep the workers of the
/// node busy, and two threads of this process for each core compute.
std::vector<double> times_of_answers(int runs, bool loaded);

/// Layers of a small call and its answer, each alone, in microseconds: the messages of CAF within the two processes, without the time to
/// wake a thread; writing and reading the two headers; the tensors of both.
struct call_layers {
  double caf = 0;
  double headers = 0;
  double tensors = 0;
};
call_layers layers_of_call(int runs);

/// Bytes by which the resident memory grows for an idle actor of CAF: one that is scheduled, and one with a thread of its own.
std::vector<double> bytes_of_actor(int count);
/// Bytes by which the resident memory of a process grows for an idle node that has met no other, and for a connection of a node to an
/// idle node of another process, on the node's side.
std::vector<double> bytes_of_node(int count);

/// A training of the model of `troupe train`, with one process for each stage and one thread in each operation. Both trainings have
/// the same layers, batch, micro-batches and optimizer.
struct training_size {
  int stages = 2;
  int steps = 30;
  bool quick = false;  // a small model
};

/// Tokens per second of `troupe train`, by the median time of a step, and those of its model in a single process, which is 0 unless
/// `compare`. Throws std::runtime_error with the last lines of the training if the training fails.
std::vector<double> tokens_of_troupe(const training_size& what, bool compare);

/// The bubble of `troupe train` with a schedule, and the one by the formula of this schedule. Throws as above.
std::vector<double> bubbles_of_troupe(const training_size& what, const std::string& schedule);

/// Tokens per second of peers/torch_pipelining.py: PyTorch's torch.distributed.pipelining over gloo, with each of these schedules in
/// turn. Throws as above. Pre: has_pipelining().
std::vector<double> tokens_of_pipelining(const training_size& what, const std::vector<std::string>& schedules);

/// Whether there is a Python with the PyTorch of this troupe: that of the environment variable TROUPE_PYTHON, or build/python, which
/// `make test-python` makes.
bool has_pipelining();

}  // namespace troupe::bench
