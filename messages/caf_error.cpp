// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/caf_error.hpp>

#include <caf/exit_reason.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

namespace troupe {

namespace {

// Returns troupe's code for a CAF error.
errc meaning_of(caf::sec code) {
  switch (code) {
    case caf::sec::request_timeout:
      return errc::deadline_passed;
    case caf::sec::request_receiver_down:
    case caf::sec::remote_linking_failed:
    case caf::sec::no_route_to_receiving_node:
    case caf::sec::cannot_forward_to_invalid_actor:
    case caf::sec::disconnect_during_handshake:
    case caf::sec::cannot_connect_to_node:
    case caf::sec::connection_timeout:
    case caf::sec::socket_disconnected:
    case caf::sec::socket_operation_failed:
    case caf::sec::network_syscall_failed:
      return errc::peer_down;
    case caf::sec::no_actor_published_at_port:
    case caf::sec::remote_lookup_failed:
      return errc::unknown_peer;
    case caf::sec::incompatible_versions:
    case caf::sec::incompatible_application_ids:
    case caf::sec::unexpected_actor_messaging_interface:
      return errc::refused;
    case caf::sec::unexpected_message:
    case caf::sec::unexpected_response:
    case caf::sec::end_of_stream:
    case caf::sec::unknown_type:
    case caf::sec::malformed_basp_message:
    case caf::sec::serializing_basp_payload_failed:
      return errc::malformed_message;
    case caf::sec::cannot_open_port:
    case caf::sec::invalid_argument:
      return errc::misuse;
    default:
      return errc::function_failed;
  }
}

std::string text_of(const caf::error& from) {
  const caf::message& context = from.context();
  if (context.size() == 1 && context.match_element<std::string>(0)) return context.get_as<std::string>(0);
  return {};
}

std::string placed(std::string_view where, std::string text) { return where.empty() ? text : std::string(where) + ": " + text; }

}  // namespace

caf::error make_error(errc code, std::string text) {
  // CAF takes the code 0 for "no error" and would lose the text.
  return caf::error{code == errc::none ? errc::function_failed : code, std::move(text)};
}

caf::error make_error(const std::exception& caught, std::string_view where) {
  const auto* ours = dynamic_cast<const error*>(&caught);
  return make_error(ours ? ours->code() : errc::function_failed, placed(where, caught.what()));
}

error to_exception(const caf::error& from, std::string_view where) {
  if (!from) return {errc::none, placed(where, to_text(errc::none))};
  std::string text = text_of(from);
  if (from.category() == caf::detail::error_factory<errc>::category) {
    auto code = static_cast<errc>(from.code());
    return {code, placed(where, text.empty() ? to_text(code) : std::move(text))};
  }
  errc code = errc::function_failed;
  std::string reason;
  if (from.category() == caf::atom("system")) {
    auto system_code = static_cast<caf::sec>(from.code());
    code = meaning_of(system_code);
    reason = std::string(to_text(code)) + " (" + to_string(system_code) + ")";
    if (system_code == caf::sec::unexpected_message) {
      reason +=
        ": its receiver has no handler for it, or its sender could not write it, perhaps because its payloads have more than "
        "4 GiB together (the sender's stderr says so)";
    }
  } else if (from.category() == caf::atom("exit")) {
    code = errc::peer_down;
    reason = "the actor that got the request has ended (" + to_string(static_cast<caf::exit_reason>(from.code())) + ")";
  } else {
    reason = to_string(from);
  }
  return {code, placed(where, text.empty() ? reason : reason + ": " + text)};
}

}  // namespace troupe
