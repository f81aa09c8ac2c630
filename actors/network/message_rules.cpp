// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_rules.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <caf/atom.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/message_id.hpp>

#include <troupe/actors/network/front_reader.hpp>
#include <troupe/actors/network/message_outline.hpp>
#include <troupe/actors/network/message_values.hpp>
#include <troupe/actors/support/atoms.hpp>

namespace troupe::network {

namespace {

using caf::io::basp::message_type;

/// How CAF begins the list of the types in a message, if the first type is one of troupe's.
constexpr std::string_view begin_of_troupes_types = "@<>+troupe.";
constexpr std::string_view types_of_link = "@<>+@atom+@strong_actor_ptr";
constexpr std::string_view types_of_greeting = "@<>+troupe.hello+@strong_actor_ptr";
constexpr std::array<std::string_view, 3> types_of_status = {"@<>+@atom", "@<>+@atom+@atom", "@<>+@atom+@u64+@i64"};
constexpr std::string_view types_of_search = "@<>+@atom+@str";
/// What no type without messages in it has in its name.
constexpr std::array<std::string_view, 6> in_names_of_nests = {"message", "error", "exit", "down", "stream", "@<"};
/// In so many bytes nothing can nest too deeply.
constexpr std::size_t never_deep = std::size_t{4} << 10;

/// CAF asks the other end for this service as soon as two nodes have met. It makes actors of types that the program has registered
/// with CAF by name; troupe registers none. CAF's other service changes the configuration.
const auto known_service = static_cast<std::uint64_t>(caf::atom("SpawnServ"));
constexpr std::uint32_t most_of_service = 4096;
constexpr std::string_view types_of_question_for_service = "@<>+@atom+@atom+@str";
/// The other end answers once, by a message to an actor of CAF, which has no number of its own here.
constexpr std::string_view types_of_service = "@<>+@atom+@str+@strong_actor_ptr+@str";

bool may_nest(const std::optional<message_outline>& outline) {
  if (!outline) return true;
  const auto types = outline->types.substr(message_outline::begin_of_types.size());
  return std::any_of(in_names_of_nests.begin(), in_names_of_nests.end(),
                     [&](auto each) { return types.find(each) != std::string_view::npos; });
}

/// What CAF reads without a look of a message that says that it flows down a stream. make_message_id(), by which CAF reads the number
/// of a message, makes one that flows up a stream flow down.
constexpr std::string_view types_of_stream = "@<>+@downstream_msg";

bool is_one_of_troupe(const message_outline& of) {
  return of.types.starts_with(begin_of_troupes_types) &&
         of.types.find('+', begin_of_troupes_types.size()) == std::string_view::npos;
}

/// An actor of the other end says in the name of the actor that it links to, or lets go of, that it does.
bool is_link(const std::optional<message_outline>& of) {
  return of && of->types == types_of_link &&
         (of->first == caf::link_atom::uint_value() || of->first == caf::unlink_atom::uint_value());
}

/// What other nodes may tell a gateway, beside answers. Types that no node sends could name any number of actors, of which CAF would take
/// note while it reads.
bool is_for_gateway(const message_outline& of) {
  if (!of.begins_with_atom()) return of.types == types_of_greeting || is_one_of_troupe(of);
  if (of.first == support::find_atom::uint_value()) return of.types == types_of_search;
  return of.first == support::status_atom::uint_value() &&
         std::find(types_of_status.begin(), types_of_status.end(), of.types) != types_of_status.end();
}

}  // namespace

void message_rules::leaves(const message_head& next) {
  const auto id = caf::make_message_id(next.message);
  if (own_id_ && id.is_request()) own_id_->add(next.source, id.request_id().integer_value());
  if ((next.flags & caf::io::basp::header::named_receiver_flag) != 0) asker_ = next.source;
}

std::string message_rules::why_not(const message_head& next) {
  look_at_policy();
  const auto kind = static_cast<message_type>(next.operation);
  const auto expected = which_ == gate::end::calling ? message_type::server_handshake : message_type::client_handshake;
  const bool is_handshake = kind == message_type::server_handshake || kind == message_type::client_handshake;
  if (ids_ && !place_) return "one more connection of a certificate that has " + std::to_string(node_ids::most_connections);
  if (!has_shaken_hands_ && kind != expected) return "a message before its handshake";
  // A caller that has two connections says once more by a handshake which one counts.
  const bool chooses = kind == message_type::client_handshake && expected == kind && !has_chosen_ &&
                       (next.flags & caf::io::basp::header::select_connection_flag) != 0;
  if (has_shaken_hands_ && is_handshake && !chooses) return "a second handshake";
  kind_ = kind;
  owed_ = 0;
  is_walked_ = false;
  const auto id = caf::make_message_id(next.message);
  const bool is_answer = id.is_response();
  is_answer_ = is_answer;
  is_request_ = id.is_request();
  is_for_service_ = (next.flags & caf::io::basp::header::named_receiver_flag) != 0;
  is_of_stream_ = id.is_stream_message();
  const auto target = own_ ? own_->find(next.target) : std::nullopt;
  to_ = is_answer ? std::nullopt : target;
  answers_own_ = is_answer && target;
  is_to_asker_ = asker_ != 0 && next.target == asker_ && !is_request_;
  is_to_itself_ = next.source == next.target;
  has_chosen_ = has_chosen_ || (has_shaken_hands_ && chooses);
  has_shaken_hands_ = true;
  switch (kind) {
    case message_type::server_handshake:
    case message_type::client_handshake:
    case message_type::monitor_message:
    case message_type::down_message:
      if (next.payload == 0 || next.payload > most_small)
        return "a message of CAF of " + std::to_string(next.payload) + " bytes";
      return {};
    case message_type::direct_message:
    case message_type::routed_message:
      if ((next.flags & caf::io::basp::header::named_receiver_flag) != 0 &&
          (next.target != known_service || next.payload > most_of_service))
        return "a message to a service of CAF";
      if (is_for_service_ && ++for_service_ > most_for_service) return "one more message to a service of CAF";
      if (next.payload == 0) return "an empty message";
      if (is_answer && own_id_ && !own_id_->take(next.target, id.request_id().integer_value()))
        return "an answer to a question that was not asked there, or that has been answered";
      if (id.is_stream_message() && (is_answer || to_)) return "a message of a stream to an actor that takes none";
      is_for_program_ = !is_answer && !to_ && (next.flags & caf::io::basp::header::named_receiver_flag) == 0;
      return is_for_program_ && !may_use_actors_ && next.payload > most_of_service ? not_for_program() : std::string();
    case message_type::heartbeat:
      return next.payload == 0 ? std::string() : "a heartbeat of CAF with a payload";
    default:
      return "a message of kind " + std::to_string(next.operation) + ", which there is not";
  }
}

void message_rules::meet(std::shared_ptr<node_ids> all, certificates::identity who, const rights::policy_file* policy) {
  ids_ = std::move(all);
  who_ = std::move(who);
  place_ = ids_->add_connection(who_.node);
  unfinished_ = std::make_shared<node_ids::unfinished_message>(ids_, who_.node);
  policy_ = policy;
}

/// Looks the role up only if another policy counts than at the last look.
void message_rules::look_at_policy() {
  if (policy_ == nullptr) return;
  const auto& now = policy_->now();
  if (std::exchange(looked_at_, &now) != &now) may_use_actors_ = now.of(who_.role).actors;
}

std::string message_rules::why_not(std::span<const char> payload) {
  look_at_policy();
  const std::string_view bytes(payload.data(), payload.size());
  const auto node = std::string(bytes.substr(0, message_outline::node_bytes));
  switch (kind_) {
    case message_type::server_handshake:
    case message_type::client_handshake:
      if (bytes.size() < message_outline::node_bytes) return "a handshake of " + std::to_string(bytes.size()) + " bytes";
      if (ids_ && !is_actor_system(node)) return "a handshake of no node";
      if (!handshake_.empty() && bytes != handshake_) return "a second handshake, of another node";
      if (handshake_.empty() && ids_ && !(own_id_ = ids_->take(node, who_)))
        return "a handshake of a node that has another certificate";
      handshake_ = bytes;
      return {};
    case message_type::routed_message:
    case message_type::monitor_message:
    case message_type::down_message: {  // these begin with the node that they are from, and the node that they are for
      if (!ids_) break;
      if (bytes.size() < 2 * message_outline::node_bytes) return "a message of CAF that is too short";
      const auto own = ids_->own();
      if (bytes.substr(message_outline::node_bytes, message_outline::node_bytes) != own)
        return "a message that is for another node";
      const bool may_be_link = node == own && kind_ == message_type::routed_message;
      if (!handshake_.starts_with(node) && !(may_be_link && is_link(outline_of(bytes, true))))
        return "a message of another node";
      if (kind_ == message_type::down_message) {
        const auto reason = message_values::of_error(bytes.substr(2 * message_outline::node_bytes));
        if (const auto why = why_not_hold(reason); !why.empty()) return "the end of an actor, and in the reason " + why;
      }
      break;
    }
    default:
      break;
  }
  if (kind_ == message_type::monitor_message) owed_ = owed_for_monitor;
  const bool is_routed = kind_ == message_type::routed_message;
  const auto outline = outline_of(bytes, is_routed);
  if (is_routed || kind_ == message_type::direct_message)
    if (auto why = why_not_for_actor(bytes, outline); !why.empty()) return why;
  if (is_walked_ || bytes.size() <= never_deep || !may_nest(outline)) return {};
  std::size_t found = 0;
  for (auto at = bytes.find(message_outline::begin_of_types); at != std::string_view::npos;
       at = bytes.find(message_outline::begin_of_types, at + 1))
    if (++found > most_nested) return "a message with more than " + std::to_string(most_nested) + " messages in it";
  return {};
}

/// Why the values may not come; empty if they may. Pre: the connection has certificates.
std::string message_rules::why_not_hold(const message_values& values) {
  if (values.is_wrong) return "values that no node sends";
  is_walked_ = !values.has_own_types;
  if (may_use_actors_) return {};
  const auto refused = [this](const char* what) {
    return what + (", which the policy allows no node of the role '" + who_.role) + "'";
  };
  if (values.has_own_types) return refused("a value of a type of a program");
  if (values.pointers > 1) return refused("more than one actor");
  if (values.pointers == 1 && !handshake_.starts_with(values.node) && values.node != ids_->own())
    return refused("an actor of a third node");
  return {};
}

std::string message_rules::not_for_program() const {
  return "a message to an actor of a program, which the policy allows no node of the role '" + who_.role + "'";
}

/// Why CAF can't read a message to an actor; empty if it can. Pre: the connection has certificates.
std::string message_rules::why_not_read(std::string_view bytes, const std::optional<message_outline>& outline) {
  if (!outline) {
    // This is what CAF writes of a message with a type that the sender's program has not registered. CAF reads an empty message from it.
    const std::size_t begin = kind_ == message_type::routed_message ? 2 * message_outline::node_bytes : 0;
    return bytes.size() == begin + 1 && !to_ && !answers_own_ ? "" : "a message that is not as CAF writes it";
  }
  if (answers_own_ && outline->types != types_of_error && !is_answer_of_node(outline->types))
    return "an answer of a type that no node answers";
  const auto why = why_not_hold(message_values::of(outline->types, outline->values));
  return why.empty() ? why : "a message with " + why;
}

/// Whether the message is the one by which an actor of the other end links to an actor here, or lets go of it. CAF takes the first actor for
/// a proxy without a look, and locks it beside the second one. Pre: the connection has certificates, and is_link().
bool message_rules::may_link(std::string_view bytes, const message_outline& outline) const {
  front_reader values(outline.values);
  const auto atom = values.take_number();
  const auto actor = values.take_number();
  return kind_ == message_type::routed_message && bytes.starts_with(ids_->own()) && is_to_itself_ && !is_answer_ &&
         !is_request_ && !to_ && atom && actor && *actor != 0 && values.left().size() == message_outline::node_bytes &&
         handshake_.starts_with(values.left());
}

/// As why_not(), for the payload of a message to an actor. Looks last at what takes time: who may not send the message does not get so far.
std::string message_rules::why_not_for_actor(std::string_view bytes, const std::optional<message_outline>& outline) {
  if (ids_) {
    const auto begin = kind_ == message_type::routed_message ? 2 * message_outline::node_bytes : 0;
    if (bytes.size() <= begin || bytes[begin] != 0) return "a message for further actors";
    if (is_link(outline) && !may_link(bytes, *outline)) return "a link that CAF does not send";
    if (is_answer_ && !may_use_actors_ && bytes.size() > most_answer && !(outline && is_one_of_troupe(*outline)))
      return "an answer of " + std::to_string(bytes.size()) + " bytes, which is none of troupe's";
    if (is_request_) owed_ = owed_for_request;
  }
  if (is_for_service_ &&
      (!outline || outline->types != types_of_question_for_service || outline->first != caf::sys_atom::uint_value()))
    return "a message to a service of CAF that is not CAF's question";
  if (to_) {
    if (*to_ == own_actors::kind::inner || !outline || !is_for_gateway(*outline))
      return "a message that other nodes may not send to an actor of this node";
    if (outline->begins_with_atom() || outline->types == types_of_greeting) owed_ = owed_for_status;
  }
  if (is_of_stream_ && (!outline || outline->types != types_of_stream))
    return "a message that says that it belongs to a stream, and is none of a stream";
  if (is_for_program_ && !may_use_actors_) {
    const bool tells_of_service = is_to_asker_ && !has_told_of_service_ && outline && bytes.size() <= most_of_service &&
                                  outline->types == types_of_service && outline->first == caf::ok_atom::uint_value();
    if (!tells_of_service) return not_for_program();
    has_told_of_service_ = true;
  }
  return ids_ ? why_not_read(bytes, outline) : std::string();
}

}  // namespace troupe::network
