// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "soak.hpp"

/// What soak checks when a pass or a process ends, when news come, and after a calm time.
namespace troupe::simulation {

using membership::member_table;
using membership::peer_change;

bool soak::was_in_trouble(const running_pass& which, std::int64_t since_ns) const {
  for (const auto a : which.at)
    for (const auto b : which.at)
      if (a != b && faults_.last_trouble(a, b) >= since_ns) return true;
  return false;
}

void soak::pass_ended(running_pass& which) {
  const auto& how = which.model->result();
  expect(!which.is_over, "SK-2, IN-1: a pass ends twice");
  which.is_over = true;
  report_.succeeded += how.succeeded;
  report_.by_trouble += !how.succeeded && !which.may_fail;
  report_.by_deadline += how.code == errc::deadline_passed;
  const auto what = "pass " + std::to_string(which.model->number_of_context()) + " on n" + std::to_string(which.at.front());
  note(what + (how.succeeded ? " succeeds" : " fails: " + how.error));
  expect(how.succeeded || which.may_fail || was_in_trouble(which, which.begun_ns - 10 * second),
         "SK-2: a pass fails, and none of its nodes was in trouble: " + how.error);
  expect(
    how.succeeded || how.time_ns <= which.deadline_ns + 2 * second || faults_.last_trouble(which.at.front()) >= which.begun_ns,
    "SK-2: a pass ends long after its deadline");
  for (pass_shape::number n = 0; !how.succeeded && n < which.ids.size(); ++n)
    expect(!which.model->runs_on(n) || was_in_trouble(which, which.begun_ns - 10 * second),
           "SK-2, IN-2: a pass has failed, and goes on on n" + std::to_string(which.at[n]));
  expect(how.code != errc::deadline_passed || faults_.was_frozen(which.at.front(), which.begun_ns),
         "SK-2: a pass is ended by its deadline, and no message was lost unnoticed");
  if (auto wrong = which.model->wrong(); !wrong.empty()) expect(false, wrong);
  all_.network().after(which.at.front(), static_cast<std::int64_t>(below(1000)) * ms,
                       [model = which.model] { model->release(); });
}

/// After its deadline a pass has a second for the answers to aborts. A node that was frozen does this when it is awake.
void soak::check_deadline(const std::weak_ptr<running_pass>& which) {
  const auto pass = which.lock();
  if (pass == nullptr || pass->is_over || pass->is_orphan) return;
  const auto node = pass->at.front();
  if (all_.network().is_frozen(node)) awake_since_[node] = all_.now_ns();
  const auto since = std::max(pass->begun_ns + pass->deadline_ns, awake_since_[node]);
  expect(all_.now_ns() < since + 2 * second, "SK-2: a pass does not end by its deadline");
  all_.clock().in(second / 2, [this, which] { check_deadline(which); });
}

void soak::process_ended(std::size_t node, bool says_farewell) {
  const auto id = all_.self(node).id;
  for (const auto& each : passes_)
    for (std::size_t i = 0; i < each->ids.size(); ++i) {
      if (each->ids[i] != id) continue;
      each->model->process_ended(static_cast<pass_shape::number>(i));
      each->is_orphan = each->is_orphan || i == 0;
      each->is_over = each->is_over || i == 0;
    }
  if (!says_farewell) expect_known(node, second / 5);
  expect_known(node, 15 * all_.interval_ns());
}

/// After that time the process that ends now is up for no node whose connection to it ends now, and which was not frozen since.
void soak::expect_known(std::size_t node, std::int64_t after_ns) {
  auto& network = all_.network();
  const auto hears = [&](std::size_t at) {
    const bool is_cut = network.is_cut(node, at) || network.is_cut(at, node) || faults_.is_slow(at, node);
    return at != node && network.connection(at, node) != 0 && network.is_running(at) && !is_cut;
  };
  for (std::size_t at = 0; at < all_.size(); ++at) {
    if (!hears(at)) continue;
    all_.network().after(at, after_ns, [=, this, id = all_.self(node).id, since = all_.now_ns()] {
      expect(faults_.was_frozen(at, since) || !all_.table(at).is_up(id),
             "SK-3: n" + std::to_string(at) + " still holds the ended process of n" + std::to_string(node) + " for up");
    });
  }
}

std::size_t soak::number_of(node_id id) const {
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_.self(i).id == id) return i;
  return all_.size();
}

void soak::changed(std::size_t at, const peer_change& news) {
  using kind = peer_change::kind;
  constexpr std::array names{"up", "up again", "unreachable", "gone", "known", "lost", "clash"};
  note("n" + std::to_string(at) + ": " + news.who.name + " is " + names.at(static_cast<std::size_t>(news.what)) +
       (news.reason.empty() ? "" : " (" + news.reason + ")"));
  expect(!is_calm_ || all_.now_ns() - calm_since_ns_ < quiet_after_ns, "SK-3: news about members after a long calm");
  if (const auto who = number_of(news.who.id); who < all_.size() && all_.network().is_running(who)) check_news(at, who, news);
  for (const auto& each : passes_) {
    const auto here = std::find(each->ids.begin(), each->ids.end(), all_.self(at).id);
    const auto other = std::find(each->ids.begin(), each->ids.end(), news.who.id);
    if (here == each->ids.end() || other == each->ids.end()) continue;
    const auto one = static_cast<pass_shape::number>(here - each->ids.begin());
    const auto two = static_cast<pass_shape::number>(other - each->ids.begin());
    if (news.what == kind::unreachable || news.what == kind::gone) each->model->peer_down(one, two);
    if (news.what == kind::up || news.what == kind::up_again) each->model->peer_up(one, two);
  }
}

/// News about a node whose process runs.
void soak::check_news(std::size_t at, std::size_t who, const peer_change& news) {
  using kind = peer_change::kind;
  const auto name = "n" + std::to_string(who);
  const auto forget_ns = how_.limits.forget_after.count();
  // The other node may find out late, and cut the connection while this one gets its answers again.
  const auto patience_ns = (member_table::allowed_misses + member_table::intervals_to_cut + 3) * all_.interval_ns();
  const auto now = all_.now_ns();
  if (news.what == kind::gone)
    expect(now - faults_.last_trouble(at, who) < forget_ns + patience_ns, "SK-3: " + name + " is gone without trouble");
  if (news.what == kind::unreachable)
    expect(now - faults_.last_trouble(at, who) < patience_ns, "SK-3: " + name + " is unreachable without trouble");
  if (news.what == kind::lost)
    expect(now - faults_.last_trouble(who) < forget_ns + patience_ns + member_table::intervals_of_patience * all_.interval_ns(),
           "SK-3: " + name + " is lost without trouble");
}

void soak::check_agreement() {
  for (std::size_t a = 0; a < all_.size(); ++a) {
    for (std::size_t b = 0; b < all_.size(); ++b) {
      if (a == b) continue;
      const auto pair = "n" + std::to_string(b) + " for n" + std::to_string(a);
      expect(all_.is_peer(a, b), "SK-4, ME-5: after a calm time not up: " + pair);
      expect(all_.between(a, b) == all_.between(b, a), "SK-4, MT-1: after a calm time two bonds: " + pair);
    }
    const auto members = all_.table(a).members().size();
    expect(members == all_.size() - 1, "SK-4: n" + std::to_string(a) + " knows " + std::to_string(members) +
                                         " members, expected " + std::to_string(all_.size() - 1));
  }
  for (const auto& each : passes_) {
    expect(each->is_over, "SK-2: a pass is not over after a calm time");
    for (pass_shape::number n = 0; n < each->ids.size(); ++n)
      expect(!each->model->holds_participant(n) || all_.self(each->at[n]).id != each->ids[n],
             "SK-4: n" + std::to_string(each->at[n]) + " still holds a part of pass " +
               std::to_string(each->model->number_of_context()));
  }
  passes_.clear();
}

}  // namespace troupe::simulation
