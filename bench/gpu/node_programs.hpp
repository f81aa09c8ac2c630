// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "../support/other_process.hpp"
#include "gpu_report.hpp"

namespace troupe::bench {

/// A process whose node runs the functions of two_nodes.
class other_node {
 public:
  /// Makes the process, which first calls `begin`: to load what it needs for its devices. To be called while this process has
  /// one thread and has not used an accelerator.
  explicit other_node(const std::function<void()>& begin);
  /// Waits until the node listens. Throws std::runtime_error if it does not start; the process has printed why.
  std::uint16_t port();

 private:
  other_process process_;
  std::optional<std::uint16_t> port_;
};

/// A node, and the one that it calls.
class two_nodes {
 public:
  /// Both are nodes of this process. `pass_workers`: with one or more, functions that wait for the device run on its device
  /// worker.
  explicit two_nodes(std::size_t pass_workers = 0);
  /// The called node is that of another process.
  explicit two_nodes(other_node& there);

  /// Throws troupe::error.
  call_reply call(std::string function, std::vector<at::Tensor> tensors = {}, attributes values = {},
                  std::optional<wire_format> format = {});
  /// How bytes go to the called node.
  std::string transport() const;

  node a;
  std::optional<node> b;
};

/// Compares, bit for bit, the gradients of distributed passes over random programs with those of libtorch's engine over the same
/// functions in one process.
void compare_programs(const gpu_device& where, two_nodes& nodes, const std::string& what, unsigned programs,
                      const std::vector<c10::Stream>& streams, gpu_report& report);

/// A tensor of the device that travels compressed has the elements of one of the CPU that does.
void compare_compressed(const gpu_device& where, two_nodes& nodes, const std::string& what, gpu_report& report);

/// Measures calls that take a tensor of the device to the other node and back, beside the same calls with tensors of the CPU.
void measure_echoes(const gpu_device& where, bool quick, two_nodes& nodes, const std::string& what, gpu_report& report);

}  // namespace troupe::bench
