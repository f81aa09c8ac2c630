// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/graph_task_implementation.hpp>

#include <new>
#include <utility>

#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/spare_of_thread.hpp>

namespace troupe::engine {

namespace {

constexpr std::size_t most_bytes_to_keep = std::size_t{8} << 20;

struct free_memory {
  void operator()(void* memory) const noexcept { ::operator delete(memory); }
};

using spare_workspace = spare_of_thread<workspace>;
using memory_of_task = spare_of_thread<void, free_memory>;

}  // namespace

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
      if (const auto* recv = as_recv(*vertex.function, guest_)) recvs.push_back(recv->message);
    }
    for (std::uint32_t i = 0; i < vertex.edge_count; ++i) from.push_back(graph.edges[vertex.first_edge + i].vertex);
  }
  return recvs;
}

std::unique_ptr<workspace> workspace::acquire() {
  if (auto* const kept = spare_workspace::take()) return std::unique_ptr<workspace>(kept);
  return std::make_unique<workspace>();
}

void workspace::give_back(std::unique_ptr<workspace> used) noexcept {
  used->slots.clear();
  used->inputs.clear();
  used->ready.clear();
  if (used->graph.memory() + used->slots.capacity() * sizeof(at::Tensor) <= most_bytes_to_keep)
    spare_workspace::keep(used.release());
}

void* graph_task::implementation::operator new(std::size_t size) {
  void* const kept = memory_of_task::take();
  return kept != nullptr ? kept : ::operator new(size);
}

void graph_task::implementation::operator delete(void* memory) noexcept { memory_of_task::keep(memory); }

}  // namespace troupe::engine
