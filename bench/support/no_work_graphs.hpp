// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace troupe::bench {

/// The end of a graph. While `listening`, keeps copies of the gradients that reach the end.
struct listener {
  bool listening = false;
  std::vector<at::Tensor> heard;
};

/// A graph of functions that pass on their inputs, so that a pass over it measures the engine's own work.
struct no_work_graph {
  at::Tensor root;      // of shape {1}
  at::Tensor gradient;  // of the root
  std::size_t functions = 0;
  std::function<void()> bare_loop;  // the same functions and sums, called in an order that is known beforehand
  std::shared_ptr<listener> end;
};

/// A chain of `length` functions.
no_work_graph make_chain(std::size_t length);
/// One function with `pairs` outputs. Each output leads to a chain of two functions.
no_work_graph make_wide(std::size_t pairs);
/// One function with `width` outputs. Each output leads to a function, and all of these functions lead to one input.
no_work_graph make_fan_in(std::size_t width);
/// One function with `width` outputs. Each output leads to a function that computes for about `microseconds`. That function
/// leads to an end.
no_work_graph make_wide_at_work(std::size_t width, double microseconds);
/// `width` functions for each device and as many for the CPU, all independent. Each takes about `microseconds`: those of the CPU
/// compute, and those of devices wait, as a function that reads a result of its device. A function of a device takes a gradient on the
/// CPU from a function that brings it to the device.
no_work_graph make_wide_over_devices(std::size_t width, double microseconds, const std::vector<c10::Device>& devices);
/// A chain of `pairs` times a function of the CPU and one of the device.
no_work_graph make_chain_over_devices(std::size_t pairs, c10::Device device);
/// `layers` layers of `width` functions. Each function gets the sum of two outputs of the layer before.
no_work_graph make_lattice(std::size_t layers, std::size_t width);

}  // namespace troupe::bench
