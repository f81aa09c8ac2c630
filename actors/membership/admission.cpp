// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/admission.hpp>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/atom.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/membership/member_desk.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/registration.hpp>

namespace troupe::membership {

admission::admission(support::desk_actor self, const membership_options& options, member_desk& members)
    : self_(self), options_(options), members_(members), greetings_(members.table(), options) {}

void admission::take(greeting_event event) {
  for (auto& each : greetings_.on(std::move(event), members_.now()))
    std::visit([this](auto& effect) { carry_out(effect); }, each);
}

std::uint64_t admission::join(join_progress how, const std::string& host, std::uint16_t port, listener told) {
  const auto number = greetings_.new_number();
  joins_.emplace(number, std::move(told));
  take(join_begun{number, std::move(how), host, port});
  return number;
}

void admission::answer(const hello& from, const caf::strong_actor_ptr& gateway, caf::typed_response_promise<welcome> promise) {
  if (members_.is_leaving()) {
    promise.deliver(stopping_error(members_.table().self(), from));
    return;
  }
  const auto number = greetings_.new_number();
  auto by = gateway == nullptr ? std::nullopt : options_.route_to(gateway->node());
  callers_.emplace(number, caller{std::move(promise), by});
  if (gateway == nullptr && from.protocol == protocol_version) {
    const auto who = describe({from.name, from.id, from.host, from.port});
    const auto why = "the greeting of " + who + " came without a gateway";
    refuse_hello refusal{number, make_error(errc::refused, why), "refused node " + who + ": " + why};
    return carry_out(refusal);
  }
  take(hello_came{number, from, gateway, by});
}

void admission::hear(const gossip& from) {
  const auto* peer = members_.table().find(from.from);
  if (peer == nullptr || members_.is_leaving()) return;
  const auto by = options_.route_to(peer->gateway->node());
  if (from.introduces) return take(news_introduced{from.from, from.news, by});
  members_.act(members_.table().hear(from.from, greetings_.believed(from.from, from.news, by), members_.now()));
}

void admission::lost(const caf::actor_addr& gateway) {
  std::vector<std::uint64_t> unanswered;
  for (const auto& [wait, at] : asked_)
    if (at == gateway) unanswered.push_back(wait);
  for (const auto wait : unanswered) {
    asked_.erase(wait);
    take(try_failed{wait, caf::sec::request_timeout});
  }
}

void admission::carry_out(const member_steps& what) { members_.act(what); }

void admission::carry_out(const dial_address& what) {
  const auto fail = [this, wait = what.wait](const caf::error& problem) { take(try_failed{wait, problem}); };
  self_
    ->request(options_.connector, what.patience, caf::connect_atom::value, what.host, what.port,
              std::int64_t{what.patience.count()})
    .then(
      [=, this, wait = what.wait](const caf::node_id&, const caf::strong_actor_ptr& gateway, const std::set<std::string>&) {
        if (gateway == nullptr) return fail(caf::sec::unexpected_message);
        take(address_connected{wait, gateway, gateway == options_.gateway});
      },
      fail);
}

void admission::carry_out(say_hello& what) {
  const auto wait = what.wait;
  const auto gateway = what.gateway;
  what.greeting.host = host_to_tell(what.greeting.host, options_.route_to(gateway->node()));
  members_.watch(gateway);
  asked_[wait] = gateway->address();
  self_->request(caf::actor_cast<caf::actor>(gateway), what.patience, std::move(what.greeting), options_.gateway)
    .then(
      [=, this](const welcome& answer) {
        asked_.erase(wait);
        take(hello_welcomed{wait, answer, gateway, options_.route_to(gateway->node())});
      },
      [=, this](const caf::error& problem) {
        asked_.erase(wait);
        take(try_failed{wait, problem});
      });
}

void admission::carry_out(const ask_rival& what) {
  const auto& table = members_.table();
  const auto* rival = table.find(what.whom);
  TROUPE_EXPECT(rival != nullptr);
  const auto gateway = caf::actor_cast<caf::actor>(rival->gateway);
  self_->request(gateway, what.patience, heartbeat{table.self().id, members_.now(), rival->between})
    .then([this, wait = what.wait](const heartbeat_seen&) { take(holder_answered{wait}); },
          [this, wait = what.wait](const caf::error&) { take(holder_silent{wait}); });
}

void admission::carry_out(const ask_holder& what) {
  const auto self = self_->handle<contracts::membership_host>();
  self_->request(self, 2 * what.patience, support::find_atom::value, what.whom, std::int64_t{what.patience.count()})
    .then([this, wait = what.wait](const contracts::peer_up&) { take(holder_answered{wait}); },
          [this, wait = what.wait](const caf::error&) { take(holder_silent{wait}); });
}

void admission::carry_out(const begin_pause& what) {
  members_.after(what.time, [this, wait = what.wait] { take(pause_over{wait}); });
}

void admission::carry_out(accept_hello& what) {
  auto known = callers_.extract(what.caller);
  TROUPE_EXPECT(!known.empty());
  auto& caller = known.mapped();
  what.answer.self.host = host_to_tell(what.answer.self.host, caller.by);
  what.answer.news = members_.news_for(std::move(what.answer.news), caller.by);
  members_.watch(what.gateway);  // so the end of the gateway is noticed even before the peer is up again
  caller.promise.deliver(std::move(what.answer));
}

void admission::carry_out(refuse_hello& what) {
  if (!what.warning.empty()) options_.log.warn("membership", [&] { return what.warning; });
  auto caller = callers_.extract(what.caller);
  TROUPE_EXPECT(!caller.empty());
  caller.mapped().promise.deliver(std::move(what.why));
}

void admission::carry_out(const say_farewell& what) {
  caf::anon_send(caf::actor_cast<caf::actor>(what.gateway), farewell{members_.table().self().id, what.reason});
}

void admission::carry_out(introduce& what) { members_.pass_on(what.to, std::move(what.news), true); }

void admission::carry_out(const join_changed& what) {
  const auto told = joins_.find(what.join);
  const auto* join = greetings_.find_join(what.join);
  if (told != joins_.end() && told->second.changed && join != nullptr) told->second.changed(*join);
}

void admission::carry_out(const join_ended& what) {
  if (const auto told = joins_.extract(what.join)) told.mapped().ended(what.how);
}

}  // namespace troupe::membership
