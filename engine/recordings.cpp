// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/recordings.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

namespace troupe::engine {

namespace {

bool begins_with(const program_place& place, const program_place& prefix) {
  return prefix.size() < place.size() && std::equal(prefix.begin(), prefix.end(), place.begin());
}

}  // namespace

recording_order::recording_order(std::vector<recording> of) : recordings_(std::move(of)) {
  std::sort(recordings_.begin(), recordings_.end(), [](const recording& a, const recording& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.from != b.from ? a.from < b.from : a.to > b.to;
  });
  give_ranks();
}

// Gives each part of each strand its rank. Visits the places in lexicographic order, so the place of a caller comes before the
// places of its calls.
void recording_order::give_ranks() {
  std::vector<std::uint32_t> order(recordings_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return recordings_[a].place < recordings_[b].place; });
  strand_.resize(recordings_.size());
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> open;  // recordings whose places are prefixes of each other, the shortest first
  const auto close = [&] {
    const program_place& inner = recordings_[open.back()].place;
    open.pop_back();
    if (!open.empty()) {
      strand& outer = strands_[strand_[open.back()]];
      outer.cuts.push_back(inner[recordings_[open.back()].place.size()]);
      outer.ranks.push_back(++rank);
    }
  };
  const recording* before = nullptr;
  for (const std::uint32_t at : order) {
    const recording& here = recordings_[at];
    if (before == nullptr || before->place != here.place) {
      while (!open.empty() && !begins_with(here.place, recordings_[open.back()].place)) close();
      open.push_back(at);
      strands_.push_back({{0}, {++rank}});
    }
    strand_[at] = static_cast<std::uint32_t>(strands_.size() - 1);
    before = &here;
  }
  while (!open.empty()) close();
}

const recording* recording_order::find(const torch::autograd::Node& function) const {
  const std::uint64_t thread = function.thread_id();
  const std::uint64_t sequence = function.sequence_nr();
  auto after = std::upper_bound(
    recordings_.begin(), recordings_.end(), sequence,
    [thread](std::uint64_t x, const recording& r) { return thread != r.thread ? thread < r.thread : x < r.from; });
  while (after != recordings_.begin() && (--after)->thread == thread)
    if (sequence < after->to) return &*after;
  return nullptr;
}

std::uint32_t recording_order::rank(const torch::autograd::Node& function) const {
  if (function.sequence_nr() == last) return highest;
  const recording* found = find(function);
  if (found == nullptr) return 0;
  const strand& of = strands_[strand_[static_cast<std::size_t>(found - recordings_.data())]];
  const auto after = std::upper_bound(of.cuts.begin(), of.cuts.end(), function.sequence_nr());
  return of.ranks[static_cast<std::size_t>(after - of.cuts.begin()) - 1];
}

program_place recording_order::key(const torch::autograd::Node& function) const {
  const recording* found = find(function);
  program_place result = found == nullptr ? program_place{0} : found->place;
  result.push_back(function.sequence_nr());
  result.push_back(last);
  return result;
}

program_place pass_recorder::place_of(const program_place& key) const {
  program_place result = pass;
  for (const std::uint64_t x : key) result.push_back(~x);
  return result;
}

void pass_recorder::note(std::uint64_t from, program_place place) {
  const std::uint64_t to = at::sequence_number::peek();
  const std::uint64_t thread = at::RecordFunction::currentThreadId();
  // If the running function has recorded nothing but a sum, the sum was noted before, at a place of its own.
  const bool known = !made.empty() && made.back().thread == thread && made.back().from == from && made.back().to == to;
  if (to > from && !known) made.push_back({thread, from, to, std::move(place), {}});
}

recording recording_from_now(program_place place) {
  return {at::RecordFunction::currentThreadId(), at::sequence_number::peek(), recording_order::last, std::move(place), {}};
}

}  // namespace troupe::engine
