// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/purse.hpp>

#include <algorithm>
#include <utility>

namespace troupe::protocol {

namespace {

void add_names(std::vector<node_id>& into, const std::vector<node_id>& names) {
  for (auto name : names)
    if (std::find(into.begin(), into.end(), name) == into.end()) into.push_back(name);
}

// Keeps the exponents ascending and without repetition: two equal parts become one part of twice the weight.
void add_part(std::vector<std::uint32_t>& weight, std::uint32_t exponent) {
  for (;;) {
    auto at = std::lower_bound(weight.begin(), weight.end(), exponent);
    if (at == weight.end() || *at != exponent || exponent == 0) {
      weight.insert(at, exponent);
      return;
    }
    weight.erase(at);
    --exponent;
  }
}

}  // namespace

purse whole_purse() { return {.weight = {0}, .begun = {}, .settled = {}}; }

bool is_whole(const purse& from) noexcept { return from.weight.size() == 1 && from.weight.front() == 0; }

bool all_settled(const purse& from) {
  return std::all_of(from.begun.begin(), from.begun.end(), [&](node_id who) {
    return std::find(from.settled.begin(), from.settled.end(), who) != from.settled.end();
  });
}

void merge(purse& into, purse other) {
  for (auto exponent : other.weight) add_part(into.weight, exponent);
  add_names(into.begun, other.begun);
  add_names(into.settled, other.settled);
}

purse split(purse& from) {
  auto smallest = from.weight.back();
  if (from.weight.size() > 1) {
    from.weight.pop_back();
    return {.weight = {smallest}, .begun = {}, .settled = {}};
  }
  from.weight.back() = smallest + 1;
  return {.weight = {smallest + 1}, .begun = {}, .settled = {}};
}

purse take(purse& from) { return std::exchange(from, {}); }

}  // namespace troupe::protocol
