// SPDX-License-Identifier: BSD-3-Clause
#include "scale_plots.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::bench {

namespace {

plot plot_by_nodes(std::string name, std::string title, std::string how_to_read, plot_axis y) {
  return {.group = "scale",
          .name = std::move(name),
          .title = std::move(title),
          .how_to_read = std::move(how_to_read),
          .x = {"nodes", "", true},
          .y = std::move(y)};
}

/// "all_to_all" as people write it.
std::string words_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
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
curve of_membership(const scale_figures& from, const char* name, role part, Value value) {
  curve made{name, part};
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
    all.push_back(plot_by_nodes("purse_by_nodes", "Simulated: largest purse in a message",
                                "Lower is better. The purse is what a message carries of the count of a pass.",
                                {"bytes of the purse", "bytes", true}));
    add_shapes(all.back(), from, [](const pass_figures& each) { return each.largest_purse; });
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
