// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/reach_walk.hpp>

#include <troupe/engine/recv_backward.hpp>

namespace troupe::engine {

std::vector<message_id> reach_walk::operator()(const plan& graph, std::vector<std::uint32_t> from) {
  visited_.resize(graph.vertices.size(), false);
  std::vector<message_id> recvs;
  while (!from.empty()) {
    const std::uint32_t at = from.back();
    from.pop_back();
    if (at == plan::none || visited_[at]) continue;
    visited_[at] = true;
    const plan::vertex& vertex = graph.vertices[at];
    if (vertex.edge_count == 0) {
      if (const auto* recv = dynamic_cast<const recv_backward*>(vertex.function)) recvs.push_back(recv->message);
    }
    for (std::uint32_t i = 0; i < vertex.edge_count; ++i) from.push_back(graph.edges[vertex.first_edge + i].vertex);
  }
  return recvs;
}

}  // namespace troupe::engine
