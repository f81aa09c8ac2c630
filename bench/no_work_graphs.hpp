// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::bench {

/// Where gradients end. While `listening`, keeps a copy of what came last.
struct listener {
  bool listening = false;
  std::vector<at::Tensor> heard;
};

/// A graph of functions that pass on what they get, so that a pass over it is the engine's work alone.
struct no_work_graph {
  at::Tensor root;      // of shape {1}
  at::Tensor gradient;  // of the root
  std::size_t functions = 0;
  std::function<void()> bare_loop;  // the same functions and sums, called in an order known beforehand
  std::shared_ptr<listener> end;
};

/// `length` functions, one behind the other.
no_work_graph make_chain(std::size_t length);
/// One function with `pairs` outputs; each leads to two functions, one behind the other.
no_work_graph make_wide(std::size_t pairs);
/// One function with `width` outputs; each leads to a function, and all of these into one input.
no_work_graph make_fan_in(std::size_t width);
/// One function with `width` outputs; each leads to one that computes for about so many microseconds, and from there to an end.
no_work_graph make_wide_at_work(std::size_t width, double microseconds);
/// `layers` of `width` functions; each gets the sum of two of the layer before.
no_work_graph make_lattice(std::size_t layers, std::size_t width);

}  // namespace troupe::bench
