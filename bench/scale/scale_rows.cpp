// SPDX-License-Identifier: BSD-3-Clause
// The rows and plots of scale_model.

#include "scale_figures.hpp"

namespace troupe::bench {

namespace {

constexpr std::size_t few = 100;

std::size_t many(const scale_figures& from) { return from.how().quick ? 400 : 10'000; }

row busiest(scale_figures& from) {
  const auto small = static_cast<double>(from.pass("tree", few).busiest_messages);
  const auto& large = from.pass("tree", many(from));
  const auto messages = static_cast<double>(large.busiest_messages);
  return {{small, messages, 0}, messages / small, "node " + std::to_string(large.busiest)};
}

row weight_bytes(scale_figures& from) {
  const pass_figures* worst = nullptr;
  double small = 0;
  for (const auto& shape : from.how().shapes) {
    small = std::max(small, static_cast<double>(from.pass(shape, few).largest_weight));
    if (!scale_figures::too_large(shape, many(from)).empty()) continue;
    const auto& each = from.pass(shape, many(from));
    if (worst == nullptr || each.largest_weight > worst->largest_weight) worst = &each;
  }
  if (worst == nullptr)
    throw std::runtime_error("scale_weight: expected a shape of " + std::to_string(many(from)) + " nodes in --shape, got none");
  const auto bytes = static_cast<double>(worst->largest_weight);
  return {{small, bytes, 0}, bytes, worst->shape};
}

row membership(scale_figures& from) {
  const auto small = from.membership(few).messages;
  const auto large = from.membership(many(from)).messages;
  return {{small, large, 0}, large / small};
}

row error_of_model(scale_figures& from) {
  const auto& all = from.compared();
  const auto worst =
    *std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.error() < b.error(); });
  return {{worst.real_ms, worst.simulated_ms, 0},
          worst.error(),
          "peer: a real pass over " + worst.shape + " of " + std::to_string(worst.nodes) + " processes, the worst of " +
            std::to_string(all.size())};
}

row soak_hours(scale_figures& from) {
  const auto& all = from.soaked();
  if (!all.wrong.empty())
    throw std::runtime_error("a promise is broken: " + all.text() + "\n  again: scale_model --seed " +
                             std::to_string(all.seed) + " --until " + std::to_string(all.events));
  return {{0, all.hours, 0}, all.hours, std::to_string(all.faults) + " faults, " + std::to_string(all.passes) + " passes"};
}

}  // namespace

std::vector<scale_row> scale_rows() {
  return {
    {"scale_error", "ms", at_most(1.2), "The simulation by real runs at 2 to 16 processes, the worst of all shapes.",
     error_of_model},
    {"scale_busiest", "messages", at_most(3),
     "Messages at the busiest node of a simulated tree of 10,000 nodes, by those at 100.", busiest},
    {"scale_weight", "B", at_most(512), "Bytes of the weight in a message among 10,000 participants.", weight_bytes},
    {"scale_membership", "1/s", at_most(1.2), "Messages of membership a second and node, 10,000 nodes by 100.", membership},
    {"soak_hours", "h", at_least(1'000), "Hours of simulated clusters under faults, with no promise broken.", soak_hours},
  };
}

namespace {

plot plot_by_nodes(std::string name, std::string title, std::string how_to_read, plot_axis y) {
  plot made{std::move(title), std::move(how_to_read), {"nodes", "", true}, std::move(y)};
  made.group = "scale";
  made.name = std::move(name);
  return made;
}

template <class Value>
void add_shapes(plot& to, const scale_figures& from, Value value) {
  for (const auto& shape : from.how().shapes) {
    curve made{words_of(shape), shape == "tree" ? role::troupe : role::variant};
    for (const auto& [key, each] : from.passes())
      if (key.first == shape) made.points.push_back({static_cast<double>(each.nodes), static_cast<double>(value(each))});
    if (!made.points.empty()) to.curves.push_back(std::move(made));
  }
}

template <class Value>
curve of_membership(const scale_figures& from, const char* name, role as, Value value) {
  curve made{name, as};
  for (const auto& [nodes, each] : from.memberships()) made.points.push_back({static_cast<double>(nodes), value(each)});
  return made;
}

}  // namespace

std::vector<plot> plots_of(const scale_figures& from) {
  std::vector<plot> all;
  if (!from.passes().empty()) {
    all.push_back(plot_by_nodes("pass_by_nodes", "Simulated: time of a pass by nodes",
                                "Lower is better. A pipeline and a ring have as many steps as nodes; a tree has few.",
                                {"time of a pass", "ms", true}));
    add_shapes(all.back(), from, [](const pass_figures& each) { return each.time_ms; });
    all.push_back(plot_by_nodes("busiest_by_nodes", "Simulated: messages at the busiest node",
                                "Lower is better. A flat line means that no node gets more work in a larger cluster.",
                                {"messages of a pass", "", true}));
    add_shapes(all.back(), from, [](const pass_figures& each) { return each.busiest_messages; });
    all.push_back(plot_by_nodes("weight_by_nodes", "Simulated: largest weight in a message",
                                "Lower is better. The weight of a message says when a pass is complete.",
                                {"bytes of the weight", "bytes", true}));
    add_shapes(all.back(), from, [](const pass_figures& each) { return each.largest_weight; });
  }
  if (!from.memberships().empty()) {
    all.push_back(plot_by_nodes("membership_by_nodes", "Simulated: messages of membership",
                                "Lower is better. A flat line means that a node sends no more in a larger cluster.",
                                {"messages of a node", "1/s", false}));
    all.back().curves = {
      of_membership(from, "mean of all nodes", role::troupe, [](const auto& each) { return each.messages; }),
      of_membership(from, "node that sends the most", role::variant, [](const auto& each) { return each.busiest_messages; })};
    all.push_back(plot_by_nodes("news_by_nodes", "Simulated: time until all nodes know",
                                "Lower is better. News travel with heartbeats from node to node.",
                                {"time until all nodes know", "s", false}));
    all.back().curves = {
      of_membership(from, "a node has joined", role::troupe, [](const auto& each) { return each.join_s; }),
      of_membership(from, "a process has ended", role::variant, [](const auto& each) { return each.crash_s; }),
      of_membership(from, "a node is frozen", role::variant, [](const auto& each) { return each.freeze_s; })};
  }
  return all;
}

}  // namespace troupe::bench
