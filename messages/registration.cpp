// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/registration.hpp>

#include <google/protobuf/stubs/logging.h>
#include <caf/actor_system_config.hpp>
#include <caf/message.hpp>

namespace troupe {

namespace {

std::string render(std::uint8_t code, caf::atom_value, const caf::message& context) {
  std::string text = to_text(static_cast<errc>(code));
  if (context.size() == 1 && context.match_element<std::string>(0)) text += ": " + context.get_as<std::string>(0);
  return text;
}

}  // namespace

void add_message_types(caf::actor_system_config& config) {
  google::protobuf::SetLogHandler(nullptr);
  // Each name also registers "std::vector<name>".
  config.add_message_type<autograd_message>("troupe.autograd")
    .add_message_type<hello>("troupe.hello")
    .add_message_type<member>("troupe.member")
    .add_message_type<welcome>("troupe.welcome")
    .add_message_type<heartbeat>("troupe.beat")
    .add_message_type<heartbeat_seen>("troupe.seen")
    .add_message_type<farewell>("troupe.bye")
    .add_message_type<gossip>("troupe.gossip")
    .add_message_type<call_request>("troupe.call")
    .add_message_type<call_result>("troupe.result")
    .add_message_type<propagate_gradients>("troupe.grads")
    .add_message_type<participant_quiet>("troupe.quiet")
    .add_message_type<participant_failed>("troupe.failed")
    .add_message_type<discover>("troupe.disc")
    .add_message_type<discovered>("troupe.discd")
    .add_message_type<prune>("troupe.prune")
    .add_message_type<abort_pass>("troupe.abort")
    .add_message_type<pass_aborted>("troupe.abortd")
    .add_message_type<context_joined>("troupe.joined")
    .add_message_type<held_objects>("troupe.held")
    .add_message_type<release_context>("troupe.rel")
    .add_message_type<context_released>("troupe.reld")
    .add_message_type<node_status>("troupe.status")
    .add_message_type<tensor_piece>("troupe.piece")
    .add_message_type<request_mark>("troupe.askmark")
    .add_message_type<memory_mark>("troupe.mark")
    .add_message_type<tensor_offer>("troupe.offer");
  config.add_error_category(caf::detail::error_factory<errc>::category, render);
}

}  // namespace troupe
