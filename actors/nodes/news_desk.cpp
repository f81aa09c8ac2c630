// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/news_desk.hpp>

#include <string>

#include <caf/send.hpp>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/services/device_maps.hpp>
#include <troupe/actors/services/garbage.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/outbox.hpp>

namespace troupe::nodes {

caf::result<welcome> news_desk::greet(hello& greeting, caf::strong_actor_ptr& gateway) {
  // Without this check, the greeting node could name an actor of a third node as its gateway, and so end the connection of the
  // third node.
  if (const auto& sender = self_->current_sender();
      gateway != nullptr && (sender == nullptr || sender->node() != gateway->node())) {
    auto why = "the greeting of node '" + greeting.name + "' names as its gateway an actor of another node";
    services::note_refusal(here_, why, sender);
    return make_error(errc::refused, std::move(why));
  }
  return pass_on<welcome>(std::move(greeting), std::move(gateway));
}

void news_desk::is_up(contracts::peer_up& news) {
  const auto id = news.who.id;
  const bool was_known = !news.again && here_.directory.is_member(id);
  here_.directory.add(news.who, std::move(news.gateway), news.period);
  const auto gateway = here_.directory.gateway(id);
  if (!gateway) return;
  if (news.again) {
    contexts_.is_up_again(id);
    caf::anon_send(gateway, held_objects{here_.self.id(), here_.objects.tether()->held_of(id)});
  } else if (const auto problem = here_.maps.problem(news.who.name, id); !problem.empty()) {
    here_.log.warn("nodes", [&] { return problem + "; calls to it fail until the map is mended"; });
  }
  if (!was_known) here_.news.on_peer_up.tell(news.who.name, {});
}

void news_desk::went_down(const contracts::peer_down& news) {
  const auto id = news.who.id;
  const bool was_up = here_.directory.gateway(id) != nullptr;
  here_.directory.remove(id, news.period, news.reason, news.is_gone);
  on_down_(news);
  if (news.is_gone) here_.garbage.add(here_.objects.drop_owned_by(id));
  if (was_up) here_.news.on_peer_down.tell(news.who.name, news.reason);
  if (!news.is_gone) return;
  here_.outbox.residuals.forget(id);
  tell_gone(news.who, news.reason);
}

void news_desk::heard(const contracts::member_heard& news) {
  const auto& name = news.who.name;
  if (news.is_up) {
    if (here_.directory.know(news.who)) here_.news.on_peer_up.tell(name, {});
    return;
  }
  if (here_.directory.forget(news.who.id, news.reason, news.is_gone)) here_.news.on_peer_down.tell(name, news.reason);
  if (news.is_gone) tell_gone(news.who, news.reason);
}

void news_desk::settle(const held_objects& news) {
  here_.garbage.add(here_.objects.settle(news.from, news.numbers));
  contexts_.is_up_again(news.from);
}

void news_desk::tell_gone(const member& who, const std::string& reason) const {
  here_.news.on_peer_gone.tell(who.name, reason);
  here_.news.on_left.tell(who.name, reason);
}

}  // namespace troupe::nodes
