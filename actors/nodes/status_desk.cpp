// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/status_desk.hpp>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include <caf/sec.hpp>

#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/device_maps.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/note_refusal.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/version.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

namespace {

constexpr std::chrono::milliseconds longest_relay{60'000};

}  // namespace

caf::result<node_status> status_desk::own() const {
  if (auto refused = why_not()) return refused;
  return with(here_.directory.traffic.report(here_.self.id()));
}

caf::result<node_status> status_desk::outline() const {
  if (auto refused = why_not()) return refused;
  return with(here_.directory.traffic.report(here_.self.id(), membership::peer_traffic::which::connected));
}

caf::result<node_status> status_desk::of_peer(node_id who, std::int64_t left_ns) {
  if (who == here_.self.id()) return outline();
  if (auto refused = why_not()) return refused;
  const std::chrono::milliseconds asked_for(left_ns / 1'000'000);
  const auto limit = std::clamp(asked_for, std::chrono::milliseconds(1), longest_relay);
  const auto until_ns = support::steady_ns() + std::chrono::nanoseconds(limit).count();
  auto promise = self_->response_promise<node_status>();
  if (here_.directory.gateway(who)) {
    ask(who, limit, promise);
  } else if (here_.directory.is_member(who)) {
    const auto met = [this, who, until_ns, promise] {
      const std::chrono::milliseconds left((until_ns - support::steady_ns()) / 1'000'000);
      ask(who, std::max(left, std::chrono::milliseconds(1)), promise);
    };
    services::meet(self_, here_, membership_, who, limit, met,
                   [promise](caf::error& why) mutable { promise.deliver(std::move(why)); });
  } else {
    promise.deliver(
      make_error(errc::peer_down, "node '" + here_.directory.name(who) + "' is not up for node '" + here_.self.name() + "'"));
  }
  return promise;
}

caf::result<caf::strong_actor_ptr> status_desk::find_published(const std::string& name) const {
  if (auto refused = why_not(&rights::role_rights::actors, "look for published actors")) return refused;
  if (auto found = here_.published.find(name)) return found;
  return make_error(errc::unknown_function, "node '" + here_.self.name() + "' has published no actor '" + name + "'");
}

void status_desk::went_down(node_id who) { asked_.fail(self_->ctrl(), who, make_error(errc::peer_down, "it went down")); }

/// If the sender of the current message may not ask its question: counts, logs and returns the error. Otherwise returns no
/// error. `what`: for the text.
caf::error status_desk::why_not(bool rights::role_rights::*right, const char* what) const {
  const auto why = here_.rights.why_not(self_->current_sender(), right, what);
  if (why.empty()) return {};
  services::note_refusal(here_, why, self_->current_sender());
  return make_error(errc::refused, why);
}

node_status status_desk::with(std::vector<peer_status> peers) const {
  node_status result;
  result.self = here_.self.as_member();
  result.uptime_ns = here_.self.uptime_ns();
  result.version = version;
  result.resident_bytes = support::resident_bytes();
  here_.counts.fill(result);
  result.calls_queued = workers_.waiting();
  result.objects = here_.objects.size();
  result.members_up = here_.directory.others_listed();
  result.maps = here_.maps.status();
  result.peers = std::move(peers);
  std::unordered_map<node_id, std::uint64_t> opened;
  for (const auto& context : here_.contexts.all()) ++opened[context.record->id().node];
  for (auto& each : result.peers) {
    each.contexts = opened[each.who.id];
    const auto gateway = here_.directory.gateway(each.who.id);
    if (!gateway) continue;
    each.transport = membership::transport_to(*here_.actors.system, gateway.node());
    if (here_.directory.traffic.is_over_the_host(each.who.id)) each.transport += ", tensors of devices over the host";
  }
  return result;
}

void status_desk::ask(node_id who, std::chrono::milliseconds limit, caf::typed_response_promise<node_status> promise) {
  const auto name = here_.directory.name(who);
  const auto gateway = here_.directory.gateway(who);
  if (!gateway) {
    promise.deliver(make_error(errc::peer_down, "node '" + name + "' went down"));
    return;
  }
  auto alarm = std::make_shared<support::deadline_clock::alarm>();
  auto question =
    services::timed_request(self_, here_, gateway, limit, *alarm, support::status_atom::value, support::outline_atom::value);
  const auto number = question.id();
  asked_.add(who, number);
  const auto over = [this, who, number, alarm] {
    asked_.answered(who, number);
    here_.deadlines.call_off(*alarm);
  };
  question.then(
    [=](node_status& answer) mutable {
      over();
      promise.deliver(std::move(answer));
    },
    [=](caf::error& why) mutable {
      over();
      if (why == caf::sec::request_timeout)
        why = make_error(errc::deadline_passed, "node '" + name + "' did not answer within " + support::seconds_text(limit));
      promise.deliver(std::move(why));
    });
}

}  // namespace troupe::nodes
