// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/seeds.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include <troupe/actors/settings.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::membership {

namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds longest_wait_of_a_seed{5'000'000'000};   // of a node that is a seed itself, for the others
constexpr nanoseconds longest_wait_for_others{1'000'000'000};  // for the members that a seed has named
constexpr nanoseconds longest_pause{30'000'000'000};           // between two tries once the node has started
constexpr nanoseconds first_report{2'000'000'000};
constexpr nanoseconds longest_between_reports{60'000'000'000};
constexpr std::int64_t now_or_later = std::numeric_limits<std::int64_t>::max();

}  // namespace

void seeds::join(const std::vector<std::string>& addresses, nanoseconds wait, caf::typed_response_promise<member> promise) {
  const auto& own = members_.table().self();
  if (members_.is_leaving() || !all_.empty()) {
    promise.deliver(members_.is_leaving() ? stopping_error(own) : make_error(errc::misuse, "this node has its seeds already"));
    return;
  }
  TROUPE_EXPECT(options_.gateway != nullptr);  // the node listens
  for (const auto& address : addresses) {
    const auto [host, port] = parse_address(address);
    auto& added = all_.emplace_back(seed{host, port});
    added.is_itself = host == own.host && port == own.port;
  }
  starting_ = std::move(promise);
  begun_ns_ = members_.now();
  until_ns_ = begun_ns_ + (wait.count() == 0 ? longest_ns : wait.count());
  dial();
  look_at_start();
  if (wait.count() > 0) members_.after(wait, [this] { look_at_start(); });
  members_.after(longest_wait_of_a_seed, [this] { look_at_start(); });
  members_.after(first_report, [this] { report(2 * first_report); });
}

void seeds::dial() {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto& each = all_[i];
    const bool is_met = each.met.id != node_id{} && members_.table().find(each.met.id) != nullptr;
    const bool is_refused = each.has_refused && (starting_.pending() || members_.now() < each.dial_ns);
    if (!each.is_itself && each.join == 0 && !is_met && !is_refused) dial(i);
  }
}

void seeds::dial(std::size_t which) {
  auto& to = all_[which];
  join_progress how{.deadline_ns = members_.now() + longest_ns, .is_patient = true};
  if (!starting_.pending()) how.longest_pause = longest_pause;
  const auto changed = [this, which](const join_progress& join) {
    all_[which].seen = join.seen;
    if (join.first.id != node_id{}) members_.after(longest_wait_for_others, [this] { look_at_start(); });
    look_at_start();
  };
  const auto ended = [this, which](const join_progress& join) { dial_ended(all_[which], join); };
  to.join = admission_.join(std::move(how), to.host, to.port, {ended, changed});
}

void seeds::dial_ended(seed& of, const join_progress& how) {
  if (members_.is_leaving()) return;
  of.join = 0;
  of.is_itself = how.is_itself;
  const bool failed = how.failure && !of.is_itself;
  of.has_refused = failed && how.failure != errc::peer_down;  // peer_down: accepted once an earlier node of this name is gone
  if (failed) {
    const auto before = std::exchange(of.seen, how.failure);
    of.dial_ns = members_.now() + longest_pause.count();
    if (!starting_.pending() && before != of.seen)
      options_.log.warn("membership", [&] { return "can't join a seed; " + seen_at({of}); });
  } else {
    of.seen = {};
    of.met = how.first;
  }
  look_at_start();
}

void seeds::leave() {
  if (starting_.pending()) starting_.deliver(stopping_error(members_.table().self()));
}

/// The node that this node has met at the seed. Nothing if no node was met, or if the node was met after `by_ns` and not all
/// members that it told of have answered.
std::optional<member> seeds::met_at(const seed& at, std::int64_t by_ns) const {
  if (at.met.id != node_id{}) return at.met;
  const auto* join = admission_.find_join(at.join);
  if (join != nullptr && join->first.id != node_id{} && !join->failure && join->met_ns <= by_ns) return join->first;
  return std::nullopt;
}

/// An error text: what was seen at each seed where no node was met, except this node itself. For example "h1:4001: no node
/// listens ...; h2:4001: ...".
std::string seeds::seen_at(const std::vector<seed>& seeds) const {
  std::string result;
  for (const auto& each : seeds)
    if (!each.is_itself && !met_at(each, now_or_later))
      result += (result.empty() ? "" : "; ") + address_text(each.host, each.port) + ": " +
                (each.seen ? to_exception(each.seen).what() : "no answer");
  return result;
}

/// Ends the start with this result. From now on the seeds that have not answered are dialled less often.
template <class Result>
void seeds::end_start(Result how) {
  for (const auto& each : all_)
    if (auto* join = admission_.find_join(each.join)) join->longest_pause = longest_pause;
  starting_.deliver(std::move(how));
}

void seeds::fail_start() {
  if (all_.size() == 1 && all_.front().seen) return end_start(all_.front().seen);
  const bool is_refused = std::any_of(all_.begin(), all_.end(), [](const seed& each) { return each.has_refused; });
  const bool is_known = std::all_of(all_.begin(), all_.end(), [](const seed& each) { return each.is_tried(); });
  end_start(make_error(is_refused ? errc::refused
                       : is_known ? errc::unknown_peer
                                  : errc::deadline_passed,
                       "met none of the seeds within " + milliseconds_text(members_.now() - begun_ns_) + "; " + seen_at(all_)));
}

/// Ends the start if its result is decided (ME-6).
void seeds::look_at_start() {
  if (!starting_.pending()) return;
  const auto now = members_.now();
  const bool is_over = now >= until_ns_;
  for (const auto& each : all_)
    if (auto met = met_at(each, is_over ? now_or_later : now - longest_wait_for_others.count()))
      return end_start(std::move(*met));
  const bool is_own = std::any_of(all_.begin(), all_.end(), [](const seed& each) { return each.is_itself; });
  const bool is_refused = std::any_of(all_.begin(), all_.end(), [](const seed& each) { return each.has_refused; });
  const bool all_refuse =
    std::all_of(all_.begin(), all_.end(), [](const seed& each) { return each.is_itself || each.has_refused; });
  const bool all_tried = std::all_of(all_.begin(), all_.end(), [](const seed& each) { return each.is_tried(); });
  if (is_refused && (all_refuse || (is_own && all_tried))) return fail_start();
  if (is_own && (all_tried || is_over || now >= begun_ns_ + longest_wait_of_a_seed.count())) {
    if (all_.size() > 1)
      options_.log.info("membership", [&] { return "is one of its seeds, and begins without the others: " + seen_at(all_); });
    return end_start(members_.table().self());
  }
  if (is_over) fail_start();
}

void seeds::report(nanoseconds next) {
  if (!starting_.pending()) return;
  if (const auto seen = seen_at(all_); !seen.empty())
    options_.log.warn("membership", [&] { return "waits for a node to join; " + seen; });
  members_.after(next, [=, this] { report(std::min(2 * next, longest_between_reports)); });
}

}  // namespace troupe::membership
