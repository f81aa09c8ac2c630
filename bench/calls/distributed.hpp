// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "../support/bench_program.hpp"

namespace troupe::bench {

/// The number of processes on one side. The first one is the driver.
inline constexpr int chain_length = 4;

/// A driver that calls `add(x, x)` on another process and runs backward over the result. There is one for troupe and one for
/// PyTorch.
class round_trips {
 public:
  virtual ~round_trips() = default;

  /// Opens a context. Calls of this thread join the context until close().
  virtual void open() = 0;
  virtual void close() = 0;
  /// Calls the other process and waits for the answer.
  virtual at::Tensor call(const at::Tensor& x) = 0;
  /// Makes `calls` calls at once and returns their answers.
  virtual std::vector<at::Tensor> call_at_once(const at::Tensor& x, int calls) = 0;
  /// Calls through all processes, forth and back; each process calls the next one. On the way forth, each process except the
  /// first one doubles the tensor. On the way back, each process except the first and the last one doubles the tensor again.
  virtual at::Tensor call_chain(const at::Tensor& x) = 0;
  /// Runs backward and waits until the pass is over on all processes. `fast`: troupe's fast mode, which is the only mode of
  /// PyTorch.
  virtual void backward(const at::Tensor& root, bool fast = false) = 0;
  virtual at::Tensor gradient(const at::Tensor& leaf) = 0;
};

/// The messages that a row needs at least. A bare TCP exchange of the same messages is the row's floor.
struct wire {
  int trips = 0;  // round trips; 0: the row has no floor
  std::size_t bytes = 200;
};

/// The figures of a row that only troupe runs.
struct figures {
  results value;
  double ratio = 0;
};

/// A row. Either PyTorch and troupe both run the row (`run`), or only troupe does (`alone`). Both functions throw
/// std::runtime_error if a gradient is wrong.
struct call_row {
  std::string name;
  std::string text;  // what the row measures, in one plain sentence
  bar should_be;
  int runs = 0;
  std::function<double(round_trips&)> run{};  // runs once and returns the seconds that the row measures
  wire least{};
  /// `port`: the port of troupe's next process. `quick`: only a few runs.
  std::function<figures(round_trips& troupe, std::uint16_t port, bool quick)> alone{};
  std::string unit = "us";
};

/// All rows of distributed_bench.
std::vector<call_row> distributed_rows();

/// The median, in microseconds, of runs that are given in seconds.
double median(std::vector<double> runs);

/// A node of troupe that calls the nodes at these ports on loopback. The first port is the next node in the chain.
std::unique_ptr<round_trips> make_troupe_driver(const std::vector<std::uint16_t>& ports);

/// What another process runs, at `position` in the chain: tells its port and answers calls until `stop` can be read.
void serve_troupe(int position, const std::function<void(std::uint16_t)>& tell_port, int stop);

/// By how many KiB the resident memory grows from `few` to `many` contexts. The contexts are made one after another, each with
/// a call and a pass. Returns the growth of this process or of the process at `port`, whichever is larger.
double contexts_memory(std::uint16_t port, int few, int many);

/// The microseconds, per node, of a forward and backward that goes through `count` nodes in this process one by one.
double cost_of_nodes(int count, int runs);

/// A driver on PyTorch's TensorPipe agent and distributed engine. `meeting_file`: a file for this run only, through which the
/// processes find each other.
std::unique_ptr<round_trips> make_torch_driver(const std::string& meeting_file);

/// What another process runs, at `rank` in the chain: answers calls until `stop` can be read.
void serve_torch(const std::string& meeting_file, int rank, int stop);

/// For each row, the seconds of its runs.
using times = std::vector<std::vector<double>>;

/// The sides that take turns. The processes of a side exist only during its turn, because PyTorch's processes poll and would
/// take time from the other sides.
enum class side { torch, troupe, floor };

/// Runs one turn: `share` of each row's runs, but at least two, in new processes. Rows that the side does not have stay empty.
/// A row with `alone` gets the values {peer, troupe, ratio}. To be called while this process has one thread. Throws std::runtime_error
/// if one of the processes fails; that process has then printed the reason.
times take_turn(side who, const std::vector<call_row>& rows, double share, bool quick);

}  // namespace troupe::bench
