// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include <troupe/actors/node.hpp>

#include "other_process.hpp"

namespace troupe {

class context;

}  // namespace troupe

namespace troupe::bench {

/// Real nodes in processes of this machine, or of several hosts, which run the passes that pass_shape describes. A function sleeps in backward, so that a few
/// cores are enough for many nodes.
///   RC-1  the graph of a pass over a shape has the functions, sends and recvs of pass_shape, on the same nodes.
class real_cluster {
 public:
  /// Starts `nodes - 1` processes; this process is node 0. To be made before this process has other threads.
  explicit real_cluster(std::size_t nodes);
  /// This process is node 0, with these settings; the others run serve(), here or on other hosts, and listen at these addresses
  /// ("host:port").
  real_cluster(settings own, const std::vector<std::string>& others);
  ~real_cluster();

  /// The same with all nodes in this process.
  static std::unique_ptr<real_cluster> in_this_process(std::size_t nodes);

  /// What each node but node 0 runs: tells its port, and returns when `wait` does. The names of nodes are n0, n1 and so on.
  static void serve(settings own, const std::function<void(std::uint16_t)>& tell_port, const std::function<void(node&)>& wait);

  /// A forward and a backward pass over the first `nodes` nodes, of which only the backward is measured, in ms. `function`: how long each
  /// function sleeps; 0: not at all. Throws std::invalid_argument if there is no such shape, and std::runtime_error if the gradient is wrong.
  /// `of_node_0`: for a pipeline, a tree and a parameter server, how long the functions of node 0 sleep, if not as long.
  double pass_ms(const std::string& shape, std::size_t nodes, std::chrono::microseconds function,
                 std::optional<std::chrono::microseconds> of_node_0 = {});

  /// `batches` micro-batches through all other nodes, one node after the other, and back. Only the backward is measured, in ms. Each node
  /// has one function for a micro-batch, and runs them one after the other. `own_contexts`: each micro-batch has a context, and all passes
  /// are under way at once; else one pass is over all.
  double pipeline_ms(std::int64_t batches, std::chrono::microseconds function, bool own_contexts);

  /// A backward pass over `calls` calls of node 1, whose functions do not sleep, in ms: what messages take while both processes have work.
  double busy_pass_ms(std::int64_t calls);

  /// How long a sleep takes that should take `wanted`: the median.
  static double slept_ms(std::chrono::microseconds wanted);

 private:
  struct neighbour;

  real_cluster();
  double backward_ms(context& pass, const at::Tensor& end, const at::Tensor& x, double expected, const std::string& what);

  void start(settings own, const std::vector<std::string>& others);
  static void check(const at::Tensor& gradient, double expected, const std::string& what);

  std::vector<std::unique_ptr<other_process>> others_;
  std::promise<at::Tensor> arrived_;  // what came around the ring
  std::vector<std::unique_ptr<neighbour>> neighbours_;
  std::unique_ptr<node> here_;
  std::size_t nodes_ = 0;
};

}  // namespace troupe::bench
