// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/serial_order.hpp>

#include <utility>

#include <ATen/SequenceNumber.h>

#include <troupe/engine/input_buffer.hpp>
#include <troupe/engine/ready_queue.hpp>

namespace troupe::engine {

namespace {

// Returns the number of gradients that each vertex gets. The counts in the plan itself fall while the pass runs.
std::vector<std::uint32_t> gradients_to_come(const plan& graph) {
  std::vector<std::uint32_t> missing(graph.vertices.size(), 0);
  const auto count = [&](const plan::edge& to) {
    if (to.vertex != plan::none) ++missing[to.vertex];
  };
  for (const plan::edge& to : graph.roots) count(to);
  for (const plan::edge& to : graph.edges) count(to);
  return missing;
}

}  // namespace

std::vector<std::uint32_t> serial_order(const plan& graph) {
  std::vector<std::uint32_t> missing = gradients_to_come(graph);
  ready_queue ready;
  const auto push = [&](std::uint32_t index) {
    ready.push({graph.vertices[index].sequence, graph.vertices[index].rank, index});
  };
  const auto visit = [&](const plan::edge& to) {
    if (to.vertex != plan::none && --missing[to.vertex] == 0) {
      push(to.vertex);
    }
  };
  for (const plan::edge& root : graph.roots) visit(root);
  for (const std::uint32_t send : graph.sends) push(send);
  std::vector<std::uint32_t> order;
  order.reserve(graph.vertices.size());
  while (!ready.empty()) {
    order.push_back(ready.pop());
    const plan::vertex& vertex = graph.vertices[order.back()];
    if ((vertex.marks & (plan::needed | plan::source)) == 0)
      continue;  // captured only: the functions after this one do not execute
    for (std::uint32_t i = 0; i < vertex.edge_count; ++i) visit(graph.edges[vertex.first_edge + i]);
  }
  return order;
}

serial_sums::serial_sums(const plan& graph, std::size_t done)
    : position_(graph.edges.size(), 0), next_(graph.slot_count, 0), end_(graph.slot_count, 0) {
  // position_ is computed in two steps: first the position of an edge among the edges of its slot is found, then the first
  // position of the slot is added.
  std::vector<std::uint32_t> order = serial_order(graph);
  order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(done));
  const auto for_each_edge = [&](auto&& visit) {
    for (const std::uint32_t at : order) {
      const plan::vertex& vertex = graph.vertices[at];
      for (std::uint32_t i = vertex.first_edge; i < vertex.first_edge + vertex.edge_count; ++i) {
        const plan::edge& to = graph.edges[i];
        if (to.vertex != plan::none) visit(i, graph.vertices[to.vertex].first_slot + to.input);
      }
    }
  };
  for_each_edge([&](std::uint32_t edge, std::uint32_t slot) { position_[edge] = end_[slot]++; });
  std::uint32_t positions = 0;
  for (std::size_t slot = 0; slot < next_.size(); ++slot) {
    next_[slot] = positions;
    positions += end_[slot];
    end_[slot] = positions;
  }
  for_each_edge([&](std::uint32_t edge, std::uint32_t slot) { position_[edge] += next_[slot]; });
  state_.resize(positions, missing);
  held_.resize(positions);
}

void serial_sums::add(std::uint32_t edge, std::uint32_t slot, at::Tensor& buffer, at::Tensor&& value) {
  const std::uint32_t position = position_[edge];
  state_[position] = held;
  held_[position] = std::move(value);
  if (after_sum_) edge_[position] = edge;
  settle(slot, buffer);
}

void serial_sums::on_sum(std::function<void(std::uint32_t, std::uint64_t)> after) {
  after_sum_ = std::move(after);
  edge_.resize(held_.size());
}

void serial_sums::settle(std::uint32_t slot, at::Tensor& buffer) {
  for (std::uint32_t& next = next_[slot]; next < end_[slot] && state_[next] != missing; ++next) {
    const std::uint64_t from = after_sum_ ? at::sequence_number::peek() : 0;
    accumulate(buffer, std::move(held_[next]));
    held_[next].reset();
    if (after_sum_ && state_[next] == held) after_sum_(edge_[next], from);
  }
}

}  // namespace troupe::engine
