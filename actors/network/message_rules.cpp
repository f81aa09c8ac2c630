// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_rules.hpp>

#include <algorithm>
#include <array>

#include <caf/atom.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/message_id.hpp>

#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

namespace {

using caf::io::basp::message_type;

/// How CAF begins the list of the types in a message, if the first type is one of troupe's.
constexpr std::string_view begin_of_troupes_types = "@<>+troupe.";
constexpr std::string_view types_of_link = "@<>+@atom+@strong_actor_ptr";
constexpr std::string_view types_of_greeting = "@<>+troupe.hello+@strong_actor_ptr";
constexpr std::array<std::string_view, 3> types_of_status = {"@<>+@atom", "@<>+@atom+@atom", "@<>+@atom+@u64+@i64"};
constexpr std::string_view types_of_search = "@<>+@atom+@str";
/// If values of a type may hold messages, the name of the type contains one of these texts.
constexpr std::array<std::string_view, 6> in_names_of_nests = {"message", "error", "exit", "down", "stream", "@<"};
/// Messages within messages can't nest too deeply in a payload of at most this many bytes.
constexpr std::size_t never_deep = std::size_t{4} << 10;

/// The only service of CAF to which messages may come. CAF asks the other end for it as soon as two nodes have met. The service
/// makes actors of types that a program has registered with CAF by name; troupe registers no such type. CAF's other service
/// changes the configuration, so messages to it are refused.
const auto known_service = static_cast<std::uint64_t>(caf::atom("SpawnServ"));
constexpr std::uint32_t most_of_service = 4096;
constexpr std::string_view types_of_question_for_service = "@<>+@atom+@atom+@str";
/// The types of the answer to the question for the service. The other end sends the answer once, to the actor of CAF that has
/// asked.
constexpr std::string_view types_of_service = "@<>+@atom+@str+@strong_actor_ptr+@str";

message_type kind_of(const message_head& of) { return static_cast<message_type>(of.operation); }

caf::message_id id_of(const message_head& of) { return caf::make_message_id(of.message); }

bool is_answer(const message_head& of) { return id_of(of).is_response(); }

bool is_for_service(const message_head& of) { return (of.flags & caf::io::basp::header::named_receiver_flag) != 0; }

bool may_nest(const std::optional<message_outline>& outline) {
  if (!outline) return true;
  const auto types = outline->types.substr(message_outline::begin_of_types.size());
  return std::any_of(in_names_of_nests.begin(), in_names_of_nests.end(),
                     [&](auto each) { return types.find(each) != std::string_view::npos; });
}

/// The types of a message that belongs to a stream of CAF. The number of such a message says that the message flows down or up
/// a stream. CAF takes the values of a message that flows down for these types, without a check. A message that flows up can't
/// come, because CAF reads numbers by make_message_id(), which turns up into down.
constexpr std::string_view types_of_caf_stream = "@<>+@downstream_msg";

bool is_one_of_troupe(const message_outline& of) {
  return of.types.starts_with(begin_of_troupes_types) &&
         of.types.find('+', begin_of_troupes_types.size()) == std::string_view::npos;
}

/// Whether the message links two actors or unlinks them. CAF at the other end sends such a message when one of its actors links
/// to an actor of this node, or unlinks from it. The message names the actor of this node as its sender.
bool is_link(const std::optional<message_outline>& of) {
  return of && of->types == types_of_link &&
         (of->first == caf::link_atom::uint_value() || of->first == caf::unlink_atom::uint_value());
}

/// Whether other nodes may send this message to a gateway, if the message is no answer. All other messages are refused: they
/// could name any number of actors, and CAF would make a proxy for each of them.
bool is_for_gateway(const message_outline& of) {
  if (!of.begins_with_atom()) return of.types == types_of_greeting || is_one_of_troupe(of);
  if (of.first == support::find_atom::uint_value()) return of.types == types_of_search;
  return of.first == support::status_atom::uint_value() &&
         std::find(types_of_status.begin(), types_of_status.end(), of.types) != types_of_status.end();
}

}  // namespace

void message_rules::leaves(const message_head& next) {
  if (proof_ && proof_->own_id && id_of(next).is_request())
    proof_->own_id->add(next.source, id_of(next).request_id().integer_value());
  if (!is_for_service(next)) return;
  asker_ = next.source;
  if (asked_ != question::answered) asked_ = question::open;
}

message_rules::receiver message_rules::receiver_of(const message_head& next) const {
  if (is_for_service(next)) return receiver::service;
  if (const auto found = own_ ? own_->find(next.target) : std::nullopt)
    return *found == gate::own_actors::kind::gateway ? receiver::gateway : receiver::inner;
  const bool may_answer = asked_ == question::open && asker_ != 0 && next.target == asker_ && !id_of(next).is_request();
  return may_answer ? receiver::asker : receiver::program;
}

/// Whether the last message is no answer, and is for an actor of the user's program, or for the actor of CAF that asks.
bool message_rules::is_for_program() const noexcept {
  return !is_answer(last_) && (to_ == receiver::program || to_ == receiver::asker);
}

std::string message_rules::why_not(const message_head& next) {
  look_at_policy();
  const auto kind = kind_of(next);
  const auto expected = which_ == gate::end::calling ? message_type::server_handshake : message_type::client_handshake;
  const bool is_handshake = kind == message_type::server_handshake || kind == message_type::client_handshake;
  if (proof_ && !proof_->count)
    return "one more connection of a certificate that has " + std::to_string(gate::node_ids::most_connections);
  if (state_ == state::waiting && kind != expected) return "a message before its handshake";
  // A caller with two connections repeats its handshake on the connection that it chooses.
  const bool chooses = state_ == state::met && kind == message_type::client_handshake && expected == kind &&
                       (next.flags & caf::io::basp::header::select_connection_flag) != 0;
  if (state_ != state::waiting && is_handshake && !chooses) return "a second handshake";
  state_ = chooses ? state::chosen : state_ == state::waiting ? state::met : state_;
  last_ = next;
  to_ = receiver_of(next);
  owed_ = 0;
  is_walked_ = false;
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
      if (to_ == receiver::service && (next.target != known_service || next.payload > most_of_service))
        return "a message to a service of CAF";
      if (to_ == receiver::service && ++for_service_ > most_for_service) return "one more message to a service of CAF";
      if (next.payload == 0) return "an empty message";
      if (is_answer(next) && proof_ && proof_->own_id &&
          !proof_->own_id->take(next.target, id_of(next).request_id().integer_value()))
        return "an answer to a question that was not asked there, or that has been answered";
      if (id_of(next).is_stream_message() && (is_answer(next) || is_for_node()))
        return "a message of a stream to an actor that takes none";
      return is_for_program() && !may_use_actors() && next.payload > most_of_service ? not_for_program() : std::string();
    case message_type::heartbeat:
      return next.payload == 0 ? std::string() : "a heartbeat of CAF with a payload";
    default:
      return "a message of kind " + std::to_string(next.operation) + ", which there is not";
  }
}

void message_rules::meet(std::shared_ptr<gate::node_ids> all, certificates::identity who, const rights::policy_file* policy) {
  TROUPE_EXPECT(!proof_ && state_ == state::waiting);
  auto count = all->add_connection(who.node);
  auto unfinished = std::make_shared<gate::node_ids::unfinished_message>(all, who.node);
  proof_ = proof{std::move(all), std::move(who), policy, std::move(count), std::move(unfinished)};
}

/// Looks up the rights of the role, if the policy has changed since the last look-up.
void message_rules::look_at_policy() {
  if (!proof_ || proof_->policy == nullptr) return;
  const auto& now = proof_->policy->now();
  if (std::exchange(proof_->looked_at, &now) != &now) proof_->may_use_actors = now.of(proof_->who.role).actors;
}

std::string message_rules::why_not(std::span<const char> payload) {
  look_at_policy();
  const std::string_view bytes(payload.data(), payload.size());
  const auto node = bytes.substr(0, message_outline::node_bytes);
  const auto kind = kind_of(last_);
  switch (kind) {
    case message_type::server_handshake:
    case message_type::client_handshake:
      if (bytes.size() < message_outline::node_bytes) return "a handshake of " + std::to_string(bytes.size()) + " bytes";
      if (proof_ && !is_actor_system(node)) return "a handshake of no node";
      if (!handshake_.empty() && bytes != handshake_) return "a second handshake, of another node";
      if (handshake_.empty() && proof_ && !(proof_->own_id = proof_->ids->take(std::string(node), proof_->who)))
        return "a handshake of a node that has another certificate";
      handshake_ = bytes;
      return {};
    case message_type::routed_message:
    case message_type::monitor_message:
    case message_type::down_message: {  // the payload begins with the sending node and the receiving node
      if (!proof_) break;
      if (bytes.size() < 2 * message_outline::node_bytes) return "a message of CAF that is too short";
      const auto own = proof_->ids->own();
      if (bytes.substr(message_outline::node_bytes, message_outline::node_bytes) != own)
        return "a message that is for another node";
      const bool may_be_link = node == own && kind == message_type::routed_message;
      if (!handshake_.starts_with(node) && !(may_be_link && is_link(outline_of(bytes, true))))
        return "a message of another node";
      if (kind == message_type::down_message) {
        const auto reason = message_values::of_error(bytes.substr(2 * message_outline::node_bytes));
        if (const auto why = why_not_hold(reason); !why.empty()) return "the end of an actor, and in the reason " + why;
      }
      break;
    }
    default:
      break;
  }
  if (kind == message_type::monitor_message) owed_ = owed_for_monitor;
  const bool is_routed = kind == message_type::routed_message;
  const auto outline = outline_of(bytes, is_routed);
  if (is_routed || kind == message_type::direct_message)
    if (auto why = why_not_for_actor(bytes, outline); !why.empty()) return why;
  if (is_walked_ || bytes.size() <= never_deep || !may_nest(outline)) return {};
  std::size_t found = 0;
  for (auto at = bytes.find(message_outline::begin_of_types); at != std::string_view::npos;
       at = bytes.find(message_outline::begin_of_types, at + 1))
    if (++found > most_nested) return "a message with more than " + std::to_string(most_nested) + " messages in it";
  return {};
}

/// Why the values of a message may not come; empty if they may come. Pre: the connection has certificates.
std::string message_rules::why_not_hold(const message_values& values) {
  TROUPE_EXPECT(proof_);
  if (values.is_wrong) return "values that no node sends";
  is_walked_ = !values.has_unknown_layout;
  if (may_use_actors()) return {};
  const auto refused = [this](const char* what) {
    return what + (", which the policy allows no node of the role '" + proof_->who.role) + "'";
  };
  if (values.has_unknown_layout) return refused("a value of a type of a program");
  if (values.pointers > 1) return refused("more than one actor");
  if (values.pointers == 1 && !handshake_.starts_with(values.node) && values.node != proof_->ids->own())
    return refused("an actor of a third node");
  return {};
}

std::string message_rules::not_for_program() const {
  return "a message to an actor of a program, which the policy allows no node of the role '" + proof_->who.role + "'";
}

/// Why CAF must not read a message to an actor; empty if CAF may read it. Pre: the connection has certificates.
std::string message_rules::why_not_read(std::string_view bytes, const std::optional<message_outline>& outline) {
  if (!outline) {
    // If the sender's program has not registered a type of the message, CAF writes only one byte: the empty list of further
    // actors. CAF reads an empty message from this byte.
    const std::size_t begin = kind_of(last_) == message_type::routed_message ? 2 * message_outline::node_bytes : 0;
    return bytes.size() == begin + 1 && !is_for_node() ? "" : "a message that is not as CAF writes it";
  }
  if (is_answer(last_) && is_for_node() && outline->types != types_of_error && !is_answer_of_node(outline->types))
    return "an answer of a type that no node answers";
  const auto why = why_not_hold(message_values::of(outline->types, outline->values));
  return why.empty() ? why : "a message with " + why;
}

/// Whether CAF sends such a message when an actor of the other end links to an actor of this node, or unlinks from it. CAF
/// takes the actor that the message names for a proxy, without a check, and links this proxy and the receiver. Pre: the
/// connection has certificates, and is_link().
bool message_rules::may_link(std::string_view bytes, const message_outline& outline) const {
  TROUPE_EXPECT(proof_ && is_link(outline));
  front_reader values(outline.values);
  const auto atom = values.take_number();
  const auto actor = values.take_number();
  return kind_of(last_) == message_type::routed_message && bytes.starts_with(proof_->ids->own()) &&
         last_.source == last_.target && !is_answer(last_) && !id_of(last_).is_request() && !is_for_node() && atom && actor &&
         *actor != 0 && values.left().size() == message_outline::node_bytes && handshake_.starts_with(values.left());
}

/// As why_not(), for the payload of a message to an actor. The checks that take time come last, so a sender that may not send
/// the message does not reach these checks.
std::string message_rules::why_not_for_actor(std::string_view bytes, const std::optional<message_outline>& outline) {
  if (proof_) {
    const auto begin = kind_of(last_) == message_type::routed_message ? 2 * message_outline::node_bytes : 0;
    if (bytes.size() <= begin || bytes[begin] != 0) return "a message for further actors";
    if (is_link(outline) && !may_link(bytes, *outline)) return "a link that CAF does not send";
    if (is_answer(last_) && !may_use_actors() && bytes.size() > most_answer && !(outline && is_one_of_troupe(*outline)))
      return "an answer of " + std::to_string(bytes.size()) + " bytes, which is none of troupe's";
    if (id_of(last_).is_request()) owed_ = owed_for_request;
  }
  if (to_ == receiver::service &&
      (!outline || outline->types != types_of_question_for_service || outline->first != caf::sys_atom::uint_value()))
    return "a message to a service of CAF that is not CAF's question";
  if (is_for_node() && !is_answer(last_)) {
    if (to_ == receiver::inner || !outline || !is_for_gateway(*outline))
      return "a message that other nodes may not send to an actor of this node";
    if (outline->begins_with_atom() || outline->types == types_of_greeting) owed_ = owed_for_status;
  }
  if (id_of(last_).is_stream_message() && (!outline || outline->types != types_of_caf_stream))
    return "a message that says that it belongs to a stream, and is none of a stream";
  if (is_for_program() && !may_use_actors()) {
    const bool tells_of_service = to_ == receiver::asker && outline && bytes.size() <= most_of_service &&
                                  outline->types == types_of_service && outline->first == caf::ok_atom::uint_value();
    if (!tells_of_service) return not_for_program();
    asked_ = question::answered;
  }
  return proof_ ? why_not_read(bytes, outline) : std::string();
}

}  // namespace troupe::network
