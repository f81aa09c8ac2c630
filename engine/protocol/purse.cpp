// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/purse.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

namespace troupe::protocol {

namespace {

// Most messages bring so few names and parts that a search is faster than what a long list takes.
constexpr std::size_t few = 8;

void add_names(std::vector<node_id>& into, const std::vector<node_id>& names) {
  if (names.size() <= few) {
    for (auto name : names)
      if (std::find(into.begin(), into.end(), name) == into.end()) into.push_back(name);
    return;
  }
  std::set<node_id> known(into.begin(), into.end());  // not by a hash: a node could send names that collide
  for (auto name : names)
    if (known.insert(name).second) into.push_back(name);
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

// As add_part for each of `more`, which ascends, in linear time: adds the parts up from the smallest on, as the digits of a number.
void add_parts(std::vector<std::uint32_t>& weight, const std::vector<std::uint32_t>& more) {
  std::vector<std::uint32_t> all;
  all.reserve(weight.size() + more.size());
  std::merge(weight.begin(), weight.end(), more.begin(), more.end(), std::back_inserter(all));
  weight.clear();
  std::uint32_t exponent = 0;
  std::size_t carried = 0;  // parts of `exponent` that came of smaller ones
  for (auto at = all.rbegin(); at != all.rend() || carried > 0;) {
    if (carried == 0) exponent = *at;
    auto count = carried;
    for (; at != all.rend() && *at == exponent; ++at) ++count;
    const auto kept = exponent == 0 ? count : count % 2;
    weight.insert(weight.end(), kept, exponent);
    carried = (count - kept) / 2;
    if (carried > 0) --exponent;
  }
  std::reverse(weight.begin(), weight.end());
}

}  // namespace

purse whole_purse() { return {.weight = {0}, .begun = {}, .settled = {}}; }

bool is_whole(const purse& from) noexcept { return from.weight.size() == 1 && from.weight.front() == 0; }

bool all_settled(const purse& from) {
  auto settled = from.settled;
  std::sort(settled.begin(), settled.end());
  return std::all_of(from.begun.begin(), from.begun.end(),
                     [&](node_id who) { return std::binary_search(settled.begin(), settled.end(), who); });
}

// By value: a caller gives the purse away when it merges it, so the weight of the purse never counts twice.
void merge(purse& into, purse other) {  // NOLINT(performance-unnecessary-value-param)
  if (other.weight.size() > few)
    add_parts(into.weight, other.weight);
  else
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
