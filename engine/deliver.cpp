// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/graph_task_test.cpp
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include <troupe/engine/describe.hpp>
#include <troupe/engine/evaluate.hpp>
#include <troupe/engine/graph_task_implementation.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::engine {

using torch::autograd::variable_list;

namespace {

std::string shapes_of(const variable_list& gradients) {
  classic_ostringstream text;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    text << (i > 0 ? ", " : "") << i << ": ";
    gradients[i].defined() ? text << gradients[i].sizes() << ' ' << gradients[i].scalar_type() : text << "undefined";
  }
  return text.str();
}

}  // namespace

void graph_task::deliver(std::size_t index, std::vector<at::Tensor> gradients, const std::vector<bool>& unreached) {
  auto& self = *implementation_;
  if (self.abandoned) return;
  const send_backward& send = *self.settings.sends.at(index).function;
  TORCH_CHECK(self.deliveries[index] == implementation::delivery::waiting, "troupe::send_backward of message ",
              describe(send.message), ": its gradients were delivered or dropped before");
  validate(send.next_edges(), gradients, [&](const std::string& reason) {
    return c10::str("troupe::send_backward of message ", describe(send.message), " was sent an ", reason,
                    ". The gradients that came: ", shapes_of(gradients));
  });
  std::vector<std::uint32_t> unused;
  for (std::uint32_t i = 0; i < unreached.size(); ++i) {
    if (!unreached[i]) continue;
    TORCH_CHECK(i < gradients.size() && !gradients[i].defined(), "troupe::send_backward of message ", describe(send.message),
                " was sent a gradient for tensor ", i, ", which is said to get none");
    unused.push_back(self.graph.vertices[self.graph.sends[index]].first_edge + i);
  }
  if (!unused.empty() && unused.size() == gradients.size()) return drop(index);
  self.deliveries[index] = implementation::delivery::delivered;
  --self.waiting;
  self.delivered[index] = std::move(gradients);
  self.push(self.graph.sends[index]);
  self.skip(std::move(unused));
}

program_place graph_task::place_of_delivery(std::size_t index) const {
  const auto& self = *implementation_;
  return self.producers.empty() ? program_place{} : self.place_while_running(self.graph.sends.at(index));
}

void graph_task::drop(std::size_t index) {
  auto& self = *implementation_;
  if (self.abandoned) return;
  TORCH_CHECK(self.deliveries.at(index) == implementation::delivery::waiting, "troupe::send_backward of message ",
              describe(self.settings.sends[index].function->message), ": its gradients were delivered or dropped before");
  self.deliveries[index] = implementation::delivery::dropped;
  --self.waiting;
  const plan::vertex& source = self.graph.vertices[self.graph.sends[index]];
  std::vector<std::uint32_t> unused(source.edge_count);
  std::iota(unused.begin(), unused.end(), source.first_edge);
  self.skip(std::move(unused));
}

// No gradient comes along the edges in `unused`, so each function that such an edge leads to waits for one gradient less. A
// function to which only unused edges lead never runs, so its own edges are unused too.
void graph_task::implementation::skip(std::vector<std::uint32_t> unused) {
  while (!unused.empty()) {
    const std::uint32_t edge = unused.back();
    unused.pop_back();
    const std::uint32_t to = graph.edges[edge].vertex;
    if (to == plan::none) continue;
    sums->skip(edge);
    plan::vertex& next = graph.vertices[to];
    if (--next.missing > 0) continue;
    if (next.reached || tells_of_no_gradient(to))
      push(to);
    else
      for (std::uint32_t i = 0; i < next.edge_count; ++i) unused.push_back(next.first_edge + i);
  }
}

const recv_backward* graph_task::implementation::as_recv(const plan::vertex& vertex) const {
  if (vertex.edge_count > 0 || settings.emit_to == nullptr) return nullptr;
  return engine::as_recv(*vertex.function, evaluate.of_guest);
}

// Whether a vertex runs although it gets no gradient. A recv does: it tells the node that sent the tensors to wait no longer. A
// recv that the discovery has not reached does not run, because its send is pruned.
bool graph_task::implementation::tells_of_no_gradient(std::uint32_t index) const {
  return as_recv(graph.vertices[index]) != nullptr && !reach.has_passed_by(index);
}

// Runs a recv that has an input to which no function of the pass leads. Returns false, and runs nothing, for every other
// vertex.
bool graph_task::implementation::run_unreached(const plan::vertex& vertex) {
  const recv_backward* const recv = as_recv(vertex);
  if (recv == nullptr) return false;
  std::vector<bool> unreached(inputs.size());
  for (std::uint32_t i = 0; i < inputs.size(); ++i) unreached[i] = !inputs[i].defined() && !is_reached(vertex.first_slot + i);
  const auto count = std::count(unreached.begin(), unreached.end(), true);
  if (count == 0) return false;
  if (count < static_cast<std::ptrdiff_t>(inputs.size())) {
    notes.unreached = std::move(unreached);
    evaluate(*vertex.function, inputs, nullptr, &notes.unreached);
    notes.unreached.clear();
  } else {
    settings.emit_to->emit(*recv, std::exchange(inputs, {}), std::move(unreached), running_pass::leaves_by().more);
  }
  return true;
}

// Whether a function or a root of the pass leads to the input. In a pass with sends, edges of the plan may be skipped, so
// `sums` answers. In all other passes every edge of the plan counts.
bool graph_task::implementation::is_reached(std::uint32_t slot) {
  if (!settings.sends.empty()) return sums->is_reached(slot);
  if (with_edges.empty()) {
    with_edges.resize(graph.slot_count);
    for (const auto* edges : {&graph.edges, &graph.roots})
      for (const plan::edge& to : *edges)
        if (to.vertex != plan::none) with_edges[graph.vertices[to.vertex].first_slot + to.input] = true;
  }
  return with_edges[slot];
}

std::vector<message_id> graph_task::reach_from_roots() {
  std::vector<std::uint32_t> start;
  for (const plan::edge& root : implementation_->graph.roots) start.push_back(root.vertex);
  return implementation_->reach(implementation_->graph, std::move(start));
}

std::vector<message_id> graph_task::reach_from_sends(const std::vector<std::size_t>& sends) {
  std::vector<std::uint32_t> start;
  for (const std::size_t send : sends) start.push_back(implementation_->graph.sends.at(send));
  return implementation_->reach(implementation_->graph, std::move(start));
}

}  // namespace troupe::engine
