// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <stdexcept>

#include "scale_figures.hpp"

/// The rows of scale_model.
namespace troupe::bench {

namespace {

constexpr std::size_t few = 100;

std::size_t many(const scale_figures& from) { return from.how().quick ? 400 : 10'000; }

row busiest(scale_figures& from) {
  const auto small = static_cast<double>(from.pass("tree", few).busiest_messages);
  const auto& large = from.pass("tree", many(from));
  const auto messages = static_cast<double>(large.busiest_messages);
  return {
    "scale_busiest", "messages", {small, messages, 0}, messages / small, 3, true, "node " + std::to_string(large.busiest)};
}

row purse_bytes(scale_figures& from) {
  const pass_figures* worst = nullptr;
  double small = 0;
  for (const auto& shape : from.how().shapes) {
    small = std::max(small, static_cast<double>(from.pass(shape, few).largest_purse));
    if (!scale_figures::too_large(shape, many(from)).empty()) continue;
    const auto& each = from.pass(shape, many(from));
    if (worst == nullptr || each.largest_purse > worst->largest_purse) worst = &each;
  }
  if (worst == nullptr)
    throw std::runtime_error("scale_purse: expected a shape of " + std::to_string(many(from)) + " nodes in --shape, got none");
  const auto bytes = static_cast<double>(worst->largest_purse);
  return {"scale_purse", "B", {small, bytes, 0}, bytes, 512, true, worst->shape};
}

row membership(scale_figures& from) {
  const auto small = from.membership(few).messages;
  const auto large = from.membership(many(from)).messages;
  return {"scale_membership", "1/s", {small, large, 0}, large / small, 1.2, true, {}};
}

row error_of_model(scale_figures& from) {
  const auto& all = from.compared();
  const auto worst =
    *std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.error() < b.error(); });
  return {"scale_error",
          "ms",
          {worst.real_ms, worst.simulated_ms, 0},
          worst.error(),
          1.2,
          true,
          "peer: a real pass over " + worst.shape + " of " + std::to_string(worst.nodes) + " processes, the worst of " +
            std::to_string(all.size())};
}

row soak_hours(scale_figures& from) {
  const auto& all = from.soaked();
  if (!all.wrong.empty())
    throw std::runtime_error("a promise is broken: " + all.text() + "\n  again: scale_model --seed " +
                             std::to_string(all.seed) + " --until " + std::to_string(all.events));
  return {"soak_hours",
          "h",
          {0, all.hours, 0},
          all.hours,
          1'000,
          false,
          std::to_string(all.faults) + " faults, " + std::to_string(all.passes) + " passes"};
}

}  // namespace

const std::vector<std::string>& scale_row_names() {
  static const std::vector<std::string> names{"scale_error", "scale_busiest", "scale_purse", "scale_membership", "soak_hours"};
  return names;
}

row scale_row(const std::string& name, scale_figures& from) {
  if (name == "scale_error") return error_of_model(from);
  if (name == "scale_busiest") return busiest(from);
  if (name == "scale_purse") return purse_bytes(from);
  if (name == "scale_membership") return membership(from);
  if (name == "soak_hours") return soak_hours(from);
  throw std::logic_error("there is no row '" + name + "'");
}

}  // namespace troupe::bench
