// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/status_test.cpp
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/result.hpp>
#include <caf/sec.hpp>

#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/actors/nodes/gateway_shell.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/exception_text.hpp>
#include <troupe/actors/support/process_memory.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/version.hpp>

namespace troupe::nodes {

/// The handlers of the `gateway` actor that say what the node does.
///   SH-1  the outline of a peer is answered by its deadline: by the peer, or with an error that names the peer and says why.
///   SH-2  an outline lists no member that the node was never connected to, but for 64 that it can't connect to. So the outlines of all
///         members of a large cluster take no more room than their connections do; `members_up` counts all members.
template <class Self>
struct status_shell : gateway_shell<Self> {
  using base = gateway_shell<Self>;
  using base::base, base::here, base::parts, base::self, base::state;

  static constexpr std::chrono::milliseconds longest_relay{60'000};

  caf::result<node_status> own() const {
    if (auto refused = why_not()) return refused;
    return with(here.directory().traffic(here.id()));
  }
  caf::result<node_status> outline() const {
    if (auto refused = why_not()) return refused;
    return with(here.directory().traffic(here.id(), membership::peer_directory::which::connected));
  }

  /// Asks a peer for its outline.
  caf::result<node_status> of_peer(node_id who, std::int64_t left_ns) {
    if (who == here.id()) return outline();
    if (auto refused = why_not()) return refused;
    const auto name = here.directory().name(who);
    const std::chrono::milliseconds asked_for(left_ns / 1'000'000);
    const auto limit = std::clamp(asked_for, std::chrono::milliseconds(1), longest_relay);
    const auto until_ns = support::steady_ns() + std::chrono::nanoseconds(limit).count();
    auto promise = self->template make_response_promise<node_status>();
    if (here.directory().gateway(who)) {
      ask(who, limit, promise);
    } else if (here.directory().is_member(who)) {
      base::meet(
        who, limit,
        [=, s = self] {
          const std::chrono::milliseconds left((until_ns - support::steady_ns()) / 1'000'000);
          status_shell(s).ask(who, std::max(left, std::chrono::milliseconds(1)), promise);
        },
        [=](caf::error& why) mutable { promise.deliver(std::move(why)); });
    } else {
      promise.deliver(make_error(errc::peer_down, "node '" + name + "' is not up for node '" + here.name() + "'"));
    }
    return promise;
  }

 private:
  caf::error why_not() const {
    return base::why_not_asked(&rights::role_rights::status, "ask for the status of this node or of others");
  }

  node_status with(std::vector<peer_status> peers) const {
    node_status result;
    result.self = here.self();
    result.uptime_ns = here.uptime_ns();
    result.version = version;
    result.resident_bytes = support::resident_bytes();
    here.counts().fill(result);
    result.calls_queued = state.waiting.size();
    result.objects = parts.objects.size();
    result.members_up = here.directory().others_listed();
    result.maps = here.maps().status();
    result.peers = std::move(peers);
    std::unordered_map<node_id, std::uint64_t> opened;
    for (const auto& context : parts.contexts.all()) ++opened[context.record->id().node];
    for (auto& each : result.peers) {
      each.contexts = opened[each.who.id];
      const auto gateway = here.directory().gateway(each.who.id);
      if (gateway) each.transport = membership::transport_to(here.system(), gateway.node());
    }
    return result;
  }

  void ask(node_id who, std::chrono::milliseconds limit, caf::typed_response_promise<node_status> promise) {
    const auto name = here.directory().name(who);
    const auto gateway = here.directory().gateway(who);
    if (!gateway) {
      promise.deliver(make_error(errc::peer_down, "node '" + name + "' went down"));
      return;
    }
    auto alarm = std::make_shared<support::deadline_clock::alarm>();
    auto question =
      services::timed_request(self, here, gateway, limit, *alarm, support::status_atom::value, support::outline_atom::value);
    const auto number = question.id();
    state.asked.add(who, number);
    const auto over = [s = self, who, number, alarm] {
      const gateway_shell sh(s);
      sh.state.asked.answered(who, number);
      sh.here.deadlines().call_off(*alarm);
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
};

template <class Self>
status_shell(Self) -> status_shell<Self>;

}  // namespace troupe::nodes
