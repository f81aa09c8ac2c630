// SPDX-License-Identifier: BSD-3-Clause
#include "pass_model.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::simulation {

using number = pass_shape::number;

number pass_shape::function(number node) {
  nodes = std::max(nodes, node + 1);
  home.push_back(node);
  next.emplace_back();
  return static_cast<number>(home.size() - 1);
}

void pass_shape::connect(number from, number to) {
  auto crosses = none;
  if (home[from] != home[to]) {
    crosses = static_cast<number>(sends.size());
    sends.push_back({home[to], to});
  }
  next[from].push_back({to, crosses});
}

void pass_shape::unused(number target) { sends.push_back({home[target], target}); }

std::vector<bool> pass_shape::reached() const {
  std::vector<bool> result(home.size());
  for (const auto root : roots) result[root] = true;
  for (number f = 0; f < home.size(); ++f)
    for (const auto& each : next[f])
      if (result[f]) result[each.to] = true;
  return result;
}

/// A node plans the functions that its roots and its sends lead to.
std::vector<number> pass_shape::owed() const {
  std::vector<number> result(home.size());
  std::vector<bool> planned(home.size());
  for (const auto root : roots) {
    ++result[root];
    planned[root] = true;
  }
  for (const auto& each : sends) {
    ++result[each.target];
    planned[each.target] = true;
  }
  for (number f = 0; f < home.size(); ++f)
    for (const auto& each : next[f])
      if (planned[f] && each.send == none) {
        ++result[each.to];
        planned[each.to] = true;
      }
  return result;
}

std::vector<std::vector<number>> pass_shape::sends_of_nodes() const {
  std::vector<std::vector<number>> result(nodes);
  for (number i = 0; i < sends.size(); ++i) result[sends[i].node].push_back(i);
  return result;
}

bool pass_shape::has_unused() const {
  const auto from = reached();
  std::vector<bool> given(sends.size());
  for (number f = 0; f < home.size(); ++f)
    for (const auto& each : next[f])
      if (from[f] && each.send != none) given[each.send] = true;
  return std::find(given.begin(), given.end(), false) != given.end();
}

pass_shape pipeline_shape(number nodes) {
  pass_shape result;
  result.name = "pipeline";
  std::vector<number> answers;
  for (number node = 0; node < nodes; ++node) {
    answers.push_back(result.function(node));
    result.callers.push_back(node > 0 ? node - 1 : pass_shape::none);
    if (node > 0) result.connect(answers[node - 1], answers[node]);
  }
  auto last = answers.back();
  for (number node = nodes - 1; node-- > 0;) {
    const auto activations = result.function(node);
    result.connect(last, activations);
    last = activations;
  }
  result.roots = {0};
  return result;
}

pass_shape tree_shape(number nodes, number fan) {
  pass_shape result;
  result.name = "tree";
  const auto parent = [&](number node) { return (node - 1) / fan; };
  const auto has_children = [&](number node) { return std::uint64_t{node} * fan + 1 < nodes; };
  for (number node = 0; node < nodes; ++node) {  // the sum of the results, which the node returns
    result.function(node);
    result.callers.push_back(node > 0 ? parent(node) : pass_shape::none);
    if (node > 0) result.connect(parent(node), node);
  }
  std::vector<number> arguments(nodes, pass_shape::none);  // what the node computed before it called others
  for (number node = nodes; node-- > 0;)
    if (has_children(node)) arguments[node] = result.function(node);
  for (number node = nodes; node-- > 1;) result.connect(has_children(node) ? arguments[node] : node, arguments[parent(node)]);
  result.roots = {0};
  return result;
}

pass_shape parameter_server_shape(number nodes) {
  auto result = tree_shape(nodes, nodes);
  result.name = "parameter_server";
  return result;
}

pass_shape all_to_all_shape(number nodes) {
  pass_shape result;
  result.name = "all_to_all";
  const auto loss = result.function(0);
  std::vector<number> combine;
  std::vector<number> experts;
  std::vector<number> parts;
  for (number node = 1; node < nodes; ++node) combine.push_back(result.function(node));
  for (number node = 1; node < nodes; ++node) experts.push_back(result.function(node));
  for (number node = 1; node < nodes; ++node) parts.push_back(result.function(node));
  const auto input = result.function(0);
  for (const auto each : combine) result.connect(loss, each);
  for (const auto* from : {&combine, &experts})
    for (const auto one : *from)
      for (const auto other : from == &combine ? experts : parts) result.connect(one, other);
  for (const auto each : parts) result.connect(each, input);
  result.roots = {loss};
  return result;
}

pass_shape ring_shape(number nodes) {
  pass_shape result;
  result.name = "ring";
  for (number node = 0; node < nodes; ++node) {
    result.function(node);
    result.callers.push_back(node == 0 ? pass_shape::none : (node + 1) % nodes);  // gradients go back to the callers
    if (node > 0) result.connect(node - 1, node);
  }
  result.connect(nodes - 1, result.function(0));
  result.roots = {0};
  return result;
}

const std::vector<std::string>& shape_names() {
  static const std::vector<std::string> names{"pipeline", "tree", "parameter_server", "all_to_all", "ring"};
  return names;
}

pass_shape shape_of(const std::string& name, number nodes) {
  if (nodes < 2) throw std::invalid_argument("a shape needs 2 nodes at least, got " + std::to_string(nodes));
  if (name == "pipeline") return pipeline_shape(nodes);
  if (name == "tree") return tree_shape(nodes);
  if (name == "parameter_server") return parameter_server_shape(nodes);
  if (name == "all_to_all") return all_to_all_shape(nodes);
  if (name == "ring") return ring_shape(nodes);
  std::string known;
  for (const auto& each : shape_names()) known += " " + each;
  throw std::invalid_argument("there is no shape '" + name + "'; there are" + known);
}

pass_shape draw_shape(std::mt19937_64& random, number nodes, number functions, std::uint64_t unused_in) {
  const auto below = [&](std::uint64_t n) { return static_cast<number>(random() % n); };
  pass_shape result;
  result.name = "drawn";
  result.nodes = nodes;
  for (number f = 0; f < functions; ++f) result.function(f == 0 ? 0 : below(nodes));
  for (number f = 1; f < functions; ++f)  // one edge at least leads to each function
    for (auto edges = 1 + below(3); edges > 0; --edges) result.connect(f - 1 - below(std::min<number>(f, 5)), f);
  result.roots = {0};
  for (number f = 0; f < functions; ++f)
    if (unused_in != 0 && below(unused_in) == 0) result.unused(f);
  result.callers.push_back(pass_shape::none);
  for (number node = 1; node < nodes; ++node) result.callers.push_back(below(4) == 0 ? pass_shape::none : below(node));
  return result;
}

}  // namespace troupe::simulation
