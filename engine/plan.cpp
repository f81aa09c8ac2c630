// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/plan.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <c10/util/Exception.h>

#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/engine/recordings.hpp>

namespace troupe::engine {

namespace {

// The approximate offset of the input metadata in a function object, for prefetching.
constexpr std::size_t offset_of_inputs = 256;

// Returns the lowest topological number of the inputs' functions; 0 without inputs. The topological number of a function is
// higher than that of each function it leads to. So a function with a number below the result leads to no input.
std::uint64_t lowest_topological_number(const torch::autograd::edge_list& inputs) {
  std::uint64_t lowest = inputs.empty() ? 0 : std::numeric_limits<std::uint64_t>::max();
  for (const auto& input : inputs) lowest = std::min(lowest, input.function->topological_nr());
  return lowest;
}

}  // namespace

std::uint32_t plan::find(const torch::autograd::Node& function) const {
  if (!finds_all_.load(std::memory_order_acquire)) number_all();
  return numbers_.find(&function, none);
}

void plan::number_all() const {
  const std::lock_guard lock(numbering_);
  if (finds_all_.load(std::memory_order_relaxed)) return;
  for (std::uint32_t i = 0; i < vertices.size(); ++i) numbers_.insert(vertices[i].function).index = i;
  finds_all_.store(true, std::memory_order_release);
}

inline std::uint32_t plan::append(torch::autograd::Node* function, std::uint32_t rank) {
  TORCH_CHECK(vertices.size() < none, "troupe: a graph of more than ", none, " functions");
  vertices.push_back({function, 0, 0, 0, 0, 0, 0, rank, needed, false, none});
  return static_cast<std::uint32_t>(vertices.size() - 1);
}

inline std::uint32_t plan::add(const node_pointer& function, std::uint32_t rank) {
  // Each edge and root that leads to the function holds a pointer, so no other edge or root leads to this function.
  if (function.use_count() == 1 && !numbers_all_) return append(function.get(), rank);
  const auto [index, fresh] = numbers_.insert(function.get());
  if (fresh) index = append(function.get(), rank);
  return index;
}

void plan::build(const torch::autograd::edge_list& root_edges, const std::vector<send_source>& send_sources,
                 const torch::autograd::edge_list& inputs, bool capturing, const recording_order* order) {
  vertices.clear();
  edges.clear();
  roots.clear();
  sends.clear();
  captures.clear();
  numbers_.clear();
  slot_count = 0;
  leaves_out_outputs = false;
  numbers_all_ = !inputs.empty();
  walked_ = 0;
  const std::uint64_t lowest = lowest_topological_number(inputs);
  roots.reserve(root_edges.size());
  for (const auto& root : root_edges) {
    TORCH_CHECK(root.function != nullptr, "troupe: a root of a backward pass has no autograd function");
    const std::uint32_t index = add(root.function, 0);
    ++vertices[index].missing;
    roots.push_back({index, root.input_nr});
  }
  walk(0, lowest);
  if (!send_sources.empty()) add_sends(send_sources, lowest);
  if (order != nullptr)
    for (vertex& each : vertices) each.rank = order->rank(*each.function);
  if (!inputs.empty()) prune(inputs, capturing);
  finds_all_.store(numbers_all_, std::memory_order_relaxed);
}

void plan::add_sends(const std::vector<send_source>& sources, std::uint64_t lowest) {
  std::vector<std::uint32_t> ascending(sources.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  std::stable_sort(ascending.begin(), ascending.end(), [&](auto a, auto b) { return sources[a].rank < sources[b].rank; });
  sends.resize(sources.size(), none);
  std::uint32_t rank = 0;
  std::uint64_t current = 0;
  for (const std::uint32_t send : ascending) {
    if (sources[send].rank != current) {
      current = sources[send].rank;
      ++rank;
    }
    const std::size_t before = vertices.size();
    sends[send] = add(sources[send].function, rank);
    TORCH_CHECK(sends[send] == before, "troupe: a send is given twice to one graph task, or is reachable from another source");
    vertices[sends[send]].marks |= source;
    vertices[sends[send]].send = send;
    walk(rank, lowest);
  }
}

std::size_t plan::memory() const noexcept {
  return vertices.capacity() * sizeof(vertex) + edges.capacity() * sizeof(edge) + numbers_.memory();
}

// Prefetches the next functions. Functions are scattered in memory, so the walk would otherwise mostly wait for memory.
inline void plan::load_ahead(std::size_t at) const {
  constexpr std::size_t near = 2;
  constexpr std::size_t far = 5;
  if (at + far < vertices.size()) {
    const char* function = reinterpret_cast<const char*>(vertices[at + far].function);
    __builtin_prefetch(function);
    __builtin_prefetch(function + 64);
    __builtin_prefetch(function + offset_of_inputs);
  }
  if (at + near < vertices.size()) __builtin_prefetch(vertices[at + near].function->next_edges().data());
}

void plan::walk(std::uint32_t rank, std::uint64_t lowest) {
  for (; walked_ < vertices.size(); ++walked_) {
    load_ahead(walked_);
    vertex& here = vertices[walked_];
    const torch::autograd::Node& function = *here.function;
    if (lowest > 0 && function.topological_nr() < lowest && (here.marks & source) == 0) continue;
    const auto& next = function.next_edges();
    here.sequence = function.sequence_nr();
    here.first_edge = static_cast<std::uint32_t>(edges.size());
    here.edge_count = static_cast<std::uint32_t>(next.size());
    here.first_slot = slot_count;
    here.slot_count = function.num_inputs();
    slot_count += here.slot_count;
    for (const auto& to : next) {  // add() may move the vertices, so `here` is invalid after the first add()
      if (to.function == nullptr) {
        edges.push_back({none, 0});
        continue;
      }
      const std::uint32_t index = add(to.function, rank);
      ++vertices[index].missing;
      edges.push_back({index, to.input_nr});
    }
  }
}

void plan::prune(const torch::autograd::edge_list& inputs, bool capturing) {
  for (vertex& each : vertices) each.marks = static_cast<std::uint16_t>(each.marks & ~needed);
  std::vector<std::uint32_t> marked;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    const std::uint32_t index = numbers_.find(inputs[i].function.get(), none);
    if (index == none) continue;
    if (!vertices[index].executes()) marked.push_back(index);
    vertices[index].marks |= capturing ? captured : needed;
    if (capturing) captures.push_back({index, inputs[i].input_nr, i});
  }
  std::stable_sort(captures.begin(), captures.end(), [](auto& a, auto& b) { return a.vertex < b.vertex; });

  mark_ancestors(std::move(marked));
  const auto is_open = [this](const edge& to) { return to.vertex == none || vertices[to.vertex].executes(); };
  leaves_out_outputs = std::any_of(vertices.begin(), vertices.end(), [&](const vertex& each) {
    const auto first = edges.begin() + each.first_edge;
    return (each.marks & needed) != 0 && !std::all_of(first, first + each.edge_count, is_open);
  });
  const auto close = [&](edge& to) {
    if (!is_open(to)) {
      to.vertex = none;
    }
  };
  std::for_each(edges.begin(), edges.end(), close);
  std::for_each(roots.begin(), roots.end(), close);
}

void plan::mark_ancestors(std::vector<std::uint32_t> marked) {
  // The predecessors of all vertices, in one flat array.
  std::vector<std::uint32_t> begin(vertices.size() + 1, 0);
  for (const edge& to : edges)
    if (to.vertex != none) ++begin[to.vertex + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> predecessors(begin.back());
  std::vector<std::uint32_t> fill(begin.begin(), begin.end() - 1);
  for (std::uint32_t from = 0; from < vertices.size(); ++from) {
    for (std::uint32_t i = 0; i < vertices[from].edge_count; ++i) {
      const std::uint32_t to = edges[vertices[from].first_edge + i].vertex;
      if (to != none) predecessors[fill[to]++] = from;
    }
  }
  while (!marked.empty()) {
    const std::uint32_t at = marked.back();
    marked.pop_back();
    for (std::uint32_t i = begin[at]; i < begin[at + 1]; ++i) {
      vertex& before = vertices[predecessors[i]];
      if (!before.executes()) marked.push_back(predecessors[i]);
      before.marks |= needed;
    }
  }
}

}  // namespace troupe::engine
