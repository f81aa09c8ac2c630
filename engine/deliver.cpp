// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/graph_task_test.cpp
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include <troupe/engine/describe.hpp>
#include <troupe/engine/evaluate.hpp>
#include <troupe/engine/graph_task_implementation.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::engine {

using torch::autograd::variable_list;

namespace {

std::string shapes_of(const variable_list& gradients) {
  plain_stream text;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    text << (i > 0 ? ", " : "") << i << ": ";
    gradients[i].defined() ? text << gradients[i].sizes() << ' ' << gradients[i].scalar_type() : text << "undefined";
  }
  return text.str();
}

}  // namespace

void graph_task::deliver(std::size_t index, std::vector<at::Tensor> gradients) {
  auto& self = *implementation_;
  if (self.abandoned) return;
  const send_backward& send = *self.settings.sends.at(index).function;
  TORCH_CHECK(self.deliveries[index] == implementation::delivery::waiting, "troupe::send_backward of message ",
              describe(send.message), ": its gradients were delivered or dropped before");
  validate(send.next_edges(), gradients, [&](const std::string& reason) {
    return c10::str("troupe::send_backward of message ", describe(send.message), " was sent an ", reason,
                    ". The gradients that came: ", shapes_of(gradients));
  });
  self.deliveries[index] = implementation::delivery::delivered;
  --self.waiting;
  self.delivered[index] = std::move(gradients);
  self.push(self.graph.sends[index]);
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
  self.skip_outputs(self.graph.sends[index]);
}

// The source never runs, so the functions that the source leads to wait for fewer gradients. A function that only such sources
// reach never runs either, and is handled in the same way.
void graph_task::implementation::skip_outputs(std::uint32_t source) {
  std::vector<std::uint32_t> never{source};
  while (!never.empty()) {
    const plan::vertex& from = graph.vertices[never.back()];
    never.pop_back();
    for (std::uint32_t i = from.first_edge; i < from.first_edge + from.edge_count; ++i) {
      const std::uint32_t to = graph.edges[i].vertex;
      if (to == plan::none) continue;
      sums->skip(i);
      plan::vertex& next = graph.vertices[to];
      if (--next.missing == 0) next.reached ? push(to) : never.push_back(to);
    }
  }
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
