// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/purse.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

namespace troupe::protocol {

namespace {

// Most messages bring so few parts that a search is faster than what a long list takes.
constexpr std::size_t few = 8;

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

// As add_part for each of `more`, which ascends, in linear time: adds the parts from the smallest on, as one adds the digits
// of numbers.
void add_parts(std::vector<std::uint32_t>& weight, const std::vector<std::uint32_t>& more) {
  std::vector<std::uint32_t> all;
  all.reserve(weight.size() + more.size());
  std::merge(weight.begin(), weight.end(), more.begin(), more.end(), std::back_inserter(all));
  weight.clear();
  std::uint32_t exponent = 0;
  std::size_t carried = 0;  // parts of `exponent` that were made of smaller ones
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

purse whole_purse() { return {.weight = {0}}; }

bool is_whole(const purse& from) noexcept { return from.weight.size() == 1 && from.weight.front() == 0; }

// By value: a caller gives the purse away when it merges it, so the weight of the purse never counts twice.
void merge(purse& into, purse other) {  // NOLINT(performance-unnecessary-value-param)
  if (other.weight.size() > few)
    add_parts(into.weight, other.weight);
  else
    for (auto exponent : other.weight) add_part(into.weight, exponent);
  into.begun += other.begun;
  into.settled += other.settled;
}

purse splitter::split(purse& from) {
  if (given_++ == 0) lowest_ = from.weight.front();
  const auto exponent = lowest_ + 2 * static_cast<std::uint32_t>(std::bit_width(given_)) - 1;
  // The smallest part that is large enough: 2^-e is 2^-(e+1) + ... + 2^-x, and 2^-x once more.
  auto at = std::upper_bound(from.weight.begin(), from.weight.end(), exponent) - 1;
  const auto first = *at + 1;
  at = from.weight.erase(at);
  std::vector<std::uint32_t> rest(exponent + 1 - first);
  std::iota(rest.begin(), rest.end(), first);
  from.weight.insert(at, rest.begin(), rest.end());
  return {.weight = {exponent}};
}

purse take(purse& from) { return std::exchange(from, {}); }

}  // namespace troupe::protocol
