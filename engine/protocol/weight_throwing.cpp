// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/weight_throwing.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

namespace troupe::protocol {

namespace {

// Up to this number of powers, a search for each power is faster than add_powers(). Most messages bring fewer.
constexpr std::size_t few = 8;

// Adds 2^-exponent. The exponents stay ascending and without repetition, because two equal powers become one power of twice
// the weight.
void add_power(std::vector<std::uint32_t>& weight, std::uint32_t exponent) {
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

// Adds each exponent in `more`, which ascends, as add_power() does, but in linear time. Starts at the smallest power and
// carries, as in a sum of binary numbers.
void add_powers(std::vector<std::uint32_t>& weight, const std::vector<std::uint32_t>& more) {
  std::vector<std::uint32_t> all;
  all.reserve(weight.size() + more.size());
  std::merge(weight.begin(), weight.end(), more.begin(), more.end(), std::back_inserter(all));
  weight.clear();
  std::uint32_t exponent = 0;
  std::size_t carried = 0;  // powers of `exponent` that were made of smaller ones
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

weight_share whole_weight() { return {.weight = {0}}; }

bool is_whole(const weight_share& from) noexcept { return from.weight.size() == 1 && from.weight.front() == 0; }

// Takes `other` by value: the caller gives that share away, so its weight never counts twice.
void merge(weight_share& into, weight_share other) {  // NOLINT(performance-unnecessary-value-param)
  if (other.weight.size() > few)
    add_powers(into.weight, other.weight);
  else
    for (auto exponent : other.weight) add_power(into.weight, exponent);
  into.begun += other.begun;
  into.settled += other.settled;
}

weight_share splitter::split(weight_share& from) {
  if (given_++ == 0) lowest_ = from.weight.front();
  const auto exponent = lowest_ + 2 * static_cast<std::uint32_t>(std::bit_width(given_)) - 1;
  // Takes the smallest power that is large enough, 2^-e. Splits it into 2^-(e+1), ..., 2^-x and a second 2^-x, which is given
  // away.
  auto at = std::upper_bound(from.weight.begin(), from.weight.end(), exponent) - 1;
  const auto first = *at + 1;
  at = from.weight.erase(at);
  std::vector<std::uint32_t> rest(exponent + 1 - first);
  std::iota(rest.begin(), rest.end(), first);
  from.weight.insert(at, rest.begin(), rest.end());
  return {.weight = {exponent}};
}

weight_share take(weight_share& from) { return std::exchange(from, {}); }

}  // namespace troupe::protocol
