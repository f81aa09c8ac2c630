// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/seeds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <troupe/actors/membership/admission.hpp>
#include <troupe/actors/membership/membership_core.hpp>
#include <troupe/actors/settings.hpp>

namespace troupe::membership {

namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds for_ever{1'000'000'000'000'000'000};     // 31 years: no sum of times overflows
constexpr nanoseconds longest_wait_of_a_seed{5'000'000'000};   // for the other seeds
constexpr nanoseconds longest_wait_for_others{1'000'000'000};  // for the members that a seed has told of, which may be silent
constexpr nanoseconds longest_pause{30'000'000'000};           // between two tries once the node has started
constexpr nanoseconds first_report{2'000'000'000};
constexpr nanoseconds longest_between_reports{60'000'000'000};

/// The node that this node has met at the seed: all members that it tells of have answered, or it was met at `by_ns` or before.
std::optional<member> met_at(const seed& at, std::int64_t by_ns) {
  if (at.met.id != node_id{}) return at.met;
  const bool has_answered = at.task && at.task->first.id != node_id{} && !at.task->failure;
  if (has_answered && at.task->met_ns <= by_ns) return at.task->first;
  return std::nullopt;
}

constexpr std::int64_t now_or_later = std::numeric_limits<std::int64_t>::max();

/// What was seen at each of the other seeds: "h1:4001: no node listens ...; h2:4001: ...".
std::string seen_at(const std::vector<seed>& seeds) {
  std::string result;
  for (const auto& each : seeds)
    if (!each.is_itself && !met_at(each, now_or_later))
      result += (result.empty() ? "" : "; ") + address_text(each.host, each.port) + ": " +
                (each.seen ? to_exception(each.seen).what() : "no answer");
  return result;
}

/// The start is over. From now on the seeds that are not there are dialled less often.
template <class Self, class Result>
void end_start(Self self, Result how) {
  auto& st = self->state;
  for (auto& each : st.seeds)
    if (each.task) each.task->longest_pause = longest_pause;
  st.starting.promise.deliver(std::move(how));
}

template <class Self>
void fail_start(Self self) {
  auto& st = self->state;
  const auto& all = st.seeds;
  if (all.size() == 1 && all.front().seen) return end_start(self, all.front().seen);
  const bool is_refused = std::any_of(all.begin(), all.end(), [](const seed& each) { return each.has_refused; });
  const bool is_known = std::all_of(all.begin(), all.end(), [](const seed& each) { return each.is_tried(); });
  end_start(self, make_error(is_refused ? errc::refused
                             : is_known ? errc::unknown_peer
                                        : errc::deadline_passed,
                             "met none of the seeds within " + milliseconds_text(st.options.clock() - st.starting.begun_ns) +
                               "; " + seen_at(all)));
}

/// Answers the request for a seed, if it is decided (ME-6).
template <class Self>
void look_at_start(Self self) {
  auto& st = self->state;
  if (!st.starting.promise.pending()) return;
  const auto& all = st.seeds;
  const auto now = st.options.clock();
  const bool is_over = now >= st.starting.until_ns;
  for (const auto& each : all)
    if (auto met = met_at(each, is_over ? now_or_later : now - longest_wait_for_others.count()))
      return end_start(self, std::move(*met));
  const bool is_own = std::any_of(all.begin(), all.end(), [](const seed& each) { return each.is_itself; });
  const bool is_refused = std::any_of(all.begin(), all.end(), [](const seed& each) { return each.has_refused; });
  const bool all_refuse =
    std::all_of(all.begin(), all.end(), [](const seed& each) { return each.is_itself || each.has_refused; });
  const bool all_tried = std::all_of(all.begin(), all.end(), [](const seed& each) { return each.is_tried(); });
  if (is_refused && (all_refuse || (is_own && all_tried))) return fail_start(self);
  if (is_own && (all_tried || is_over || now >= st.starting.begun_ns + longest_wait_of_a_seed.count())) {
    if (all.size() > 1)
      st.options.log.info("membership", [&] { return "is one of its seeds, and begins without the others: " + seen_at(all); });
    return end_start(self, st.table.self());
  }
  if (is_over) fail_start(self);
}

template <class Self>
void report_seeds(Self self, nanoseconds next) {
  const auto& st = self->state;
  if (!st.starting.promise.pending() || st.leaving) return;
  if (const auto seen = seen_at(st.seeds); !seen.empty())
    st.options.log.warn("membership", [&] { return "waits for a node to join; " + seen; });
  after(self, next, [=] { report_seeds(self, std::min(2 * next, longest_between_reports)); });
}

template <class Self>
void end_dial_of(Self self, std::size_t which) {
  auto& st = self->state;
  auto& of = st.seeds[which];
  const auto task = std::exchange(of.task, nullptr);
  of.is_itself = task->is_itself;
  const bool failed = task->failure && !of.is_itself;
  of.has_refused = failed && task->failure != errc::peer_down;  // a member waits until an earlier node of this name is gone
  if (failed) {
    const auto before = std::exchange(of.seen, task->failure);
    of.dial_ns = st.options.clock() + longest_pause.count();
    if (!st.starting.promise.pending() && before != of.seen)
      st.options.log.warn("membership", [&] { return "can't join a seed; " + seen_at({of}); });
  } else {
    of.seen = {};
    of.met = task->first;
  }
  look_at_start(self);
}

template <class Self>
void dial_seed(Self self, std::size_t which) {
  auto& st = self->state;
  auto& to = st.seeds[which];
  auto task = std::make_shared<join_task>();
  task->deadline_ns = st.options.clock() + for_ever.count();
  task->is_patient = true;
  if (!st.starting.promise.pending()) task->longest_pause = longest_pause;
  task->tells = [=] {
    auto& of = self->state.seeds[which];
    of.seen = of.task->seen;
    if (of.task->first.id != node_id{}) after(self, longest_wait_for_others, [=] { look_at_start(self); });
    look_at_start(self);
  };
  task->ends = [=] { end_dial_of(self, which); };
  to.task = task;
  st.joins.insert(task);
  join(self, task, to.host, to.port);
}

}  // namespace

template <class Self>
void join_seeds(Self self, const std::vector<std::string>& addresses, nanoseconds wait,
                caf::typed_response_promise<member> promise) {
  auto& st = self->state;
  if (st.leaving || !st.seeds.empty()) {
    promise.deliver(st.leaving ? stopping_error(st) : make_error(errc::misuse, "this node has its seeds already"));
    return;
  }
  const auto now = st.options.clock();
  const auto& own = st.table.self();
  for (const auto& address : addresses) {
    const auto [host, port] = parse_address(address);
    auto& added = st.seeds.emplace_back(seed{host, port});
    added.is_itself = host == own.host && port == own.port;
  }
  st.starting = {std::move(promise), now, now + (wait.count() == 0 ? for_ever : wait).count()};
  dial_seeds(self);
  look_at_start(self);
  if (wait.count() > 0) after(self, wait, [=] { look_at_start(self); });
  after(self, longest_wait_of_a_seed, [=] { look_at_start(self); });
  after(self, first_report, [=] { report_seeds(self, 2 * first_report); });
}

template <class Self>
void dial_seeds(Self self) {
  auto& st = self->state;
  const auto now = st.options.clock();
  for (std::size_t i = 0; i < st.seeds.size(); ++i) {
    const auto& each = st.seeds[i];
    const bool is_met = each.met.id != node_id{} && st.table.find(each.met.id) != nullptr;
    const bool is_refused = each.has_refused && (st.starting.promise.pending() || now < each.dial_ns);
    if (!each.is_itself && each.task == nullptr && !is_met && !is_refused) dial_seed(self, i);
  }
}

using on_scheduler = contracts::membership_host::stateful_pointer<membership_state>;
using in_network_thread = contracts::membership_host::stateful_broker_pointer<membership_state>;
template void join_seeds(on_scheduler, const std::vector<std::string>&, nanoseconds, caf::typed_response_promise<member>);
template void join_seeds(in_network_thread, const std::vector<std::string>&, nanoseconds, caf::typed_response_promise<member>);
template void dial_seeds(on_scheduler);
template void dial_seeds(in_network_thread);

}  // namespace troupe::membership
