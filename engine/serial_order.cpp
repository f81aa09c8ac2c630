// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/serial_order.hpp>

#include <troupe/engine/ready_queue.hpp>

namespace troupe::engine {

namespace {

// The number of gradients that each vertex gets. The counts in the plan itself fall while the pass runs.
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

}  // namespace troupe::engine
