// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_rules.hpp>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <caf/atom.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/message_id.hpp>
#include <caf/node_id.hpp>

#include <troupe/actors/support/atoms.hpp>

#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"

namespace {

using caf::io::basp::message_type;
using troupe::gate::end;
using troupe::network::message_head;
using troupe::network::message_rules;
using troupe::test::contains;

message_head head_of(message_type kind, std::uint32_t payload, std::uint8_t flags = 0) {
  message_head result;
  result.operation = static_cast<std::uint8_t>(kind);
  result.payload = payload;
  result.flags = flags;
  result.target = 9;
  return result;
}

std::string number_text(std::uint64_t number) {
  std::string result;
  for (int shift = 56; shift >= 0; shift -= 8) result += static_cast<char>(number >> shift);
  return result;
}

/// The id of a node as CAF writes it.
std::string node_text(char which) {
  return number_text(static_cast<std::uint64_t>(caf::node_id::default_data::class_id)) + std::string(24, which);
}

std::vector<char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// The same, and perhaps what follows it.
std::vector<char> node_of(char which, std::size_t more = 0) { return bytes_of(node_text(which) + std::string(more, which)); }

/// A message as CAF writes it.
std::string message_text(const std::string& types, const std::string& values = {}) {
  return std::string(2, '\0') + static_cast<char>(types.size()) + types + values;
}

/// A payload that begins with the types and with an atom as the first value. The other values are zeros.
std::vector<char> payload_of(const std::string& types, bool is_routed, std::uint64_t first) {
  const auto nodes = is_routed ? node_text('b') + node_text('b') : std::string();
  return bytes_of(nodes + '\0' + message_text(types, number_text(first) + std::string(64, '\0')));
}

std::string pointer_text(std::uint64_t actor, char node) { return number_text(actor) + node_text(node); }

/// An error as CAF writes it.
std::string error_text(const std::string& context = message_text("@<>")) { return '\5' + number_text(1) + context; }

/// The id of a node that is a URI, at which CAF's reader throws.
std::string uri_text() {
  return number_text(static_cast<std::uint64_t>(caf::node_id::uri_data::class_id)) + std::string(2, '\0') +
         std::string(40, '\377');
}

/// The message by which an actor of the node links to another one.
std::string link_text(std::uint64_t actor, const std::string& node, std::uint64_t atom = caf::link_atom::uint_value()) {
  return message_text("@<>+@atom+@strong_actor_ptr", number_text(atom) + number_text(actor) + node);
}

/// The rules of a connection whose handshake has come.
message_rules after_the_handshake() {
  message_rules result(end::called);
  BOOST_TEST(result.why_not(head_of(message_type::client_handshake, 32)) == "");
  BOOST_TEST(result.why_not(node_of('a')) == "");
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rules_for_messages)

BOOST_AUTO_TEST_CASE(each_end_waits_for_the_handshake_of_the_other) {  // BR-1
  for (const auto which : {end::calling, end::called}) {
    const auto right = which == end::calling ? message_type::server_handshake : message_type::client_handshake;
    const auto wrong = which == end::calling ? message_type::client_handshake : message_type::server_handshake;
    for (const auto early : {wrong, message_type::direct_message, message_type::heartbeat, message_type::monitor_message})
      BOOST_TEST(contains(message_rules(which).why_not(head_of(early, 100)), "before its handshake"));
    message_rules rules(which);
    BOOST_TEST(rules.why_not(head_of(right, 100)) == "");
    for (const auto late : {right, wrong}) BOOST_TEST(contains(rules.why_not(head_of(late, 100)), "second handshake"));
  }
}

BOOST_AUTO_TEST_CASE(an_answer_comes_once_from_the_node_that_was_asked) {  // BR-9, OQ-1
  const auto ids = std::make_shared<troupe::gate::node_ids>();
  const auto meets = [&](char node, const std::string& name) {
    message_rules rules(end::called);
    rules.meet(ids, {"mine", name, "member"});
    BOOST_TEST(rules.why_not(head_of(message_type::client_handshake, 32)) == "");
    BOOST_TEST(rules.why_not(node_of(node)) == "");
    return rules;
  };
  auto asked = meets('a', "a");
  auto again = meets('a', "a");  // a second connection with the same node
  auto other = meets('b', "b");
  const auto question_of = [](std::uint64_t actor, std::uint64_t number) {
    auto head = head_of(message_type::direct_message, 10);
    head.source = actor;
    head.message = number;
    return head;
  };
  const auto answer_to = [](std::uint64_t actor, std::uint64_t number) {
    auto head = head_of(message_type::direct_message, 10);
    head.target = actor;
    head.message = caf::make_message_id(number).response_id().integer_value();
    return head;
  };
  for (const std::uint64_t number : {1U, 2U, 3U}) asked.leaves(question_of(7, number));
  asked.leaves(question_of(8, 0));  // no question
  BOOST_TEST(contains(other.why_not(answer_to(7, 1)), "an answer to a question that was not asked there"));
  BOOST_TEST(asked.why_not(answer_to(7, 1)) == "");
  BOOST_TEST(contains(asked.why_not(answer_to(7, 1)), "has been answered"));
  BOOST_TEST(again.why_not(answer_to(7, 2)) == "");
  BOOST_TEST(contains(asked.why_not(answer_to(9, 3)), "not asked there"));
  BOOST_TEST(asked.why_not(answer_to(7, 3)) == "");
}

BOOST_AUTO_TEST_CASE(a_node_that_is_connected_again_may_answer) {  // NI-2
  const auto ids = std::make_shared<troupe::gate::node_ids>();
  for (const auto* later : {"a", "b"}) {  // the node itself, or another one that has its id of CAF now
    ids->take("id", {"mine", "a", "member"})->add(7, 1);
    const auto again = ids->take("id", {"mine", later, "member"});
    BOOST_TEST(again->take(7, 1) == (std::string(later) == "a"));
  }
}

BOOST_AUTO_TEST_CASE(the_ids_of_one_certificate_push_out_those_of_no_other_one) {  // NI-2
  using troupe::gate::node_ids;
  const auto ids = std::make_shared<node_ids>();
  const auto asks = [&](const std::string& id, const std::string& who) { ids->take(id, {"mine", who, "member"})->add(7, 1); };
  const auto may_answer = [&](const std::string& id, const std::string& who) {
    return ids->take(id, {"mine", who, "member"})->take(7, 1);
  };
  asks("quiet", "b");
  for (std::size_t i = 0; i <= node_ids::most_parted; ++i) asks(std::to_string(i), "a");
  BOOST_TEST(!may_answer("0", "a"));  // the oldest of the many
  BOOST_TEST(may_answer("1", "a"));
  BOOST_TEST(may_answer("quiet", "b"));
}

BOOST_AUTO_TEST_CASE(a_certificate_has_a_share_of_the_connections_and_of_the_memory) {  // NI-3
  using troupe::gate::node_ids;
  const auto ids = std::make_shared<node_ids>();
  ids->set_own(node_text('o'));
  const auto begins = [&](const std::string& name, const std::string& expected = "") {
    auto rules = std::make_unique<message_rules>(end::called);
    rules->meet(ids, {"mine", name, "member"});
    BOOST_TEST(rules->why_not(head_of(message_type::client_handshake, 32)) == expected);
    return rules;
  };
  const auto meets = [&](const std::string& name, char node) {
    auto rules = begins(name);
    BOOST_TEST(rules->why_not(node_of(node)) == "");
    return rules;
  };
  std::vector<std::unique_ptr<message_rules>> all;
  for (std::size_t i = 0; i < node_ids::most_connections / 2; ++i) all.push_back(meets("a", static_cast<char>('a' + i % 8)));
  // Before, connections that stop behind the header of their handshake did not count.
  while (all.size() < node_ids::most_connections) all.push_back(begins("a"));
  begins("a", "one more connection of a certificate that has 32");
  const auto other = meets("b", 'z');
  all.pop_back();
  all.push_back(meets("a", 'a'));
  begins("a", "one more connection of a certificate that has 32");
  constexpr auto half = node_ids::most_unfinished / 2;
  BOOST_TEST(all[0]->may_hold(half));
  BOOST_TEST(all[1]->may_hold(half));
  BOOST_TEST(!all[2]->may_hold(1));
  BOOST_TEST(other->may_hold(2 * half));
  BOOST_TEST(all[0]->may_hold(half - 1));
  BOOST_TEST(!all[2]->may_hold(2));
  all.erase(all.begin() + 1);  // the connection is over
  BOOST_TEST(all[1]->may_hold(half));
}

BOOST_AUTO_TEST_CASE(of_too_many_questions_the_oldest_are_forgotten) {  // OQ-2
  using troupe::gate::open_questions;
  open_questions all;
  for (std::uint64_t number = 1; number <= 2 * open_questions::most + 1; ++number) all.add(1, number);
  BOOST_TEST(!all.take(1, 1));
  BOOST_TEST(all.take(1, open_questions::most + 1));
  BOOST_TEST(all.take(1, 2 * open_questions::most + 1));
}

BOOST_AUTO_TEST_CASE(a_caller_chooses_a_connection_once_and_stays_the_node_that_it_is) {  // BR-1
  const auto chooses = head_of(message_type::client_handshake, 32, caf::io::basp::header::select_connection_flag);
  const auto rules_after_first = [&] {
    message_rules rules(end::called);
    BOOST_TEST(rules.why_not(head_of(message_type::client_handshake, 32)) == "");
    BOOST_TEST(rules.why_not(node_of('a')) == "");
    BOOST_TEST(rules.why_not(chooses) == "");
    return rules;
  };
  auto same = rules_after_first();
  BOOST_TEST(same.why_not(node_of('a')) == "");
  BOOST_TEST(contains(same.why_not(chooses), "second handshake"));
  auto other = rules_after_first();
  BOOST_TEST(contains(other.why_not(node_of('b')), "of another node"));
  message_rules calling(end::calling);
  BOOST_TEST(calling.why_not(head_of(message_type::server_handshake, 4)) == "");
  BOOST_TEST(contains(calling.why_not(chooses), "second handshake"));
}

BOOST_AUTO_TEST_CASE(nothing_comes_in_the_name_of_another_node_or_for_another_one) {  // BR-5, NI-1
  const auto ids = std::make_shared<troupe::gate::node_ids>();
  const auto connected = [&](char node, const std::string& name, const std::string& expected = "") {
    auto result = std::make_unique<message_rules>(end::called);
    result->meet(ids, {"own", name, "node"});
    BOOST_TEST(result->why_not(head_of(message_type::client_handshake, 32)) == "");
    const auto why = result->why_not(node_of(node));
    BOOST_TEST(contains(why, expected), why);
    BOOST_TEST(why.empty() == expected.empty(), why);
    return result;
  };
  ids->set_own(node_text('o'));
  auto a = connected('a', "alice");
  auto b = connected('b', "bob");
  connected('a', "mallory", "another certificate");
  connected('a', "alice");  // a second connection of the same node
  for (const auto kind : {message_type::monitor_message, message_type::down_message, message_type::routed_message}) {
    const auto why = [&](char from, char to) {
      BOOST_TEST(b->why_not(head_of(kind, 64)) == "");
      const auto rest = kind == message_type::down_message ? error_text() : '\0' + message_text("@<>");
      return b->why_not(bytes_of(node_text(from) + node_text(to) + rest));
    };
    BOOST_TEST(why('b', 'o') == "");
    for (const char other : {'a', 'c'}) {  // a is connected here, and c is not
      BOOST_TEST(why(other, 'o') == "a message of another node");
      BOOST_TEST(why('b', other) == "a message that is for another node");
    }
    for (const std::size_t more : {0, 8}) {
      BOOST_TEST(b->why_not(head_of(kind, 40)) == "");
      BOOST_TEST(b->why_not(node_of('b', more)) == "a message of CAF that is too short");
    }
    BOOST_TEST(why('o', 'o') == "a message of another node");
  }
  a.reset();
  BOOST_TEST(!ids->find(node_text('a')));
  connected('a', "mallory");
}

// Before, one such message stopped the network thread for ever, or ended the membership of the node.
BOOST_AUTO_TEST_CASE(actors_link_as_caf_does_and_never_to_those_of_a_node) {  // BR-12, BR-5
  const auto own = std::make_shared<troupe::gate::own_actors>();
  const auto gateway = own->add(5, troupe::gate::own_actors::kind::gateway);
  const auto inner = own->add(6, troupe::gate::own_actors::kind::inner);
  const auto ids = std::make_shared<troupe::gate::node_ids>();
  ids->set_own(node_text('o'));
  message_rules rules(end::called, own);
  rules.meet(ids, {"mine", "bob", "member"});
  BOOST_TEST(rules.why_not(head_of(message_type::client_handshake, 32)) == "");
  BOOST_TEST(rules.why_not(node_of('b')) == "");
  auto head = head_of(message_type::routed_message, 100);
  head.source = 9;
  const auto why = [&](const std::string& link, const std::string& from = node_text('o')) {
    BOOST_TEST(rules.why_not(head) == "");
    const auto nodes = head.operation == static_cast<std::uint8_t>(message_type::routed_message) ? from + node_text('o') : "";
    return rules.why_not(bytes_of(nodes + '\0' + link));
  };
  const auto wrong = "a link that CAF does not send";
  for (const auto atom : {caf::link_atom::uint_value(), caf::unlink_atom::uint_value()}) {
    BOOST_TEST(why(link_text(3, node_text('b'), atom)) == "");
    for (const auto& pointer : {link_text(0, node_text('b'), atom), link_text(5, node_text('o'), atom),
                                link_text(3, node_text('c'), atom), link_text(3, node_text('b') + "more", atom)})
      BOOST_TEST(why(pointer) == wrong);
    BOOST_TEST(why(link_text(3, node_text('b'), atom), node_text('b')) == wrong);
  }
  const auto link = link_text(3, node_text('b'));
  // CAF reads a link from it.
  const auto spelled =
    message_text("@<>+@atom+@strong_actor_ptr+", number_text(caf::link_atom::uint_value()) + pointer_text(5, 'o'));
  BOOST_TEST(why(spelled) == "a message of another node");
  BOOST_TEST(why(spelled, node_text('b')) == "a message that is not as CAF writes it");
  BOOST_TEST(why(link_text(3, node_text('b'), caf::ok_atom::uint_value())) == "a message of another node");
  BOOST_TEST(why(message_text("@<>+@atom+@str", number_text(caf::link_atom::uint_value()))) == "a message of another node");
  head.source = 8;
  BOOST_TEST(why(link) == wrong);
  head.source = 9;
  head.message = 1;  // a question: CAF would answer in the name of an actor that there is not
  BOOST_TEST(why(link) == wrong);
  head.message = 0;
  for (const std::uint64_t target : {5, 6}) {
    head.source = head.target = target;
    BOOST_TEST(why(link) == wrong);
  }
  head.source = head.target = 9;
  head.operation = static_cast<std::uint8_t>(message_type::direct_message);
  BOOST_TEST(why(link) == wrong);
  BOOST_TEST(why(spelled) == "a message that is not as CAF writes it");
  auto question = head_of(message_type::direct_message, 100);  // and as an answer to a question of the membership
  question.source = 6;
  question.message = 7;
  rules.leaves(question);
  head.target = 6;
  head.message = caf::make_message_id(7).response_id().integer_value();
  BOOST_TEST(why(link) == wrong);
}

// Before, such a message ended CAF's broker and with it all connections, or the process.
BOOST_AUTO_TEST_CASE(caf_can_read_all_that_comes) {  // BR-11
  const auto own = std::make_shared<troupe::gate::own_actors>();
  const auto inner = own->add(6, troupe::gate::own_actors::kind::inner);
  const auto ids = std::make_shared<troupe::gate::node_ids>();
  ids->set_own(node_text('o'));
  message_rules rules(end::called, own);
  rules.meet(ids, {"mine", "bob", "member"});
  auto handshake = head_of(message_type::client_handshake, 32);
  for (const auto& none :
       {std::string(32, '\0'), number_text(static_cast<std::uint64_t>(caf::node_id::uri_data::class_id)) + std::string(24, 'x'),
        node_text('b').substr(0, 8) + std::string(24, '\0')}) {
    message_rules other(end::called, own);
    other.meet(ids, {"mine", "bob", "member"});
    BOOST_TEST(other.why_not(handshake) == "");
    BOOST_TEST(other.why_not(bytes_of(none)) == "a handshake of no node");
  }
  BOOST_TEST(rules.why_not(handshake) == "");
  BOOST_TEST(rules.why_not(node_of('b')) == "");
  const std::string deep = message_text("@<>+@config_value", std::string(100, '\7'));
  // The end of an actor:
  const auto down = [&](const std::string& reason) {
    BOOST_TEST(rules.why_not(head_of(message_type::down_message, 100)) == "");
    return rules.why_not(bytes_of(node_text('b') + node_text('o') + reason));
  };
  BOOST_TEST(down(error_text()) == "");
  BOOST_TEST(down(error_text(message_text("@<>+@str+my.type", "\3abc"))) == "");
  BOOST_TEST(down(error_text("")) == "");  // a value whose type the other end has not registered
  BOOST_TEST(down(error_text(message_text("@<>+@error", error_text()))) == "");
  for (const auto& reason :
       {std::string(), std::string("\5"), error_text(deep), error_text(message_text("@<>+@str", "\5abc")),
        error_text(message_text("@<>+my.type+@group")), error_text(message_text("@<>+@error", error_text(deep))),
        error_text(message_text("@<>+@message+@node", message_text("@<>+@u8+", "x") + uri_text())),
        error_text(message_text("@<>+@message+@charbuf", message_text("@<>+@u8+", "x") + "\377\377\377\377\17")),
        error_text(message_text("@<>+my.type+@node", "\1x" + uri_text())),
        error_text(message_text("@<>+my.type+@charbuf", "\1x\377\377\377\377\17"))})
    BOOST_TEST(down(reason) == "the end of an actor, and in the reason values that no node sends");
  // Answers:
  std::uint64_t number = 0;
  const auto answer = [&](std::uint64_t target, const std::string& content) {
    auto question = head_of(message_type::direct_message, 100);
    question.source = target;
    question.message = ++number;
    rules.leaves(question);
    auto head = head_of(message_type::direct_message, 100);
    head.target = target;
    head.message = caf::make_message_id(number).response_id().integer_value();
    BOOST_TEST(rules.why_not(head) == "");
    return rules.why_not(bytes_of('\0' + content));
  };
  for (const std::uint64_t target : {6, 9}) {
    const std::string empty(12, '\0');  // a value of troupe's
    for (const auto& fine :
         {message_text("@<>"), message_text("@<>+@unit"), message_text("@<>+troupe.status", empty),
          message_text("@<>+@strong_actor_ptr", pointer_text(3, 'b')),
          message_text("@<>+@u64+troupe.hello", number_text(1) + empty), message_text("@<>+@error", error_text()),
          message_text("@<>+@error", error_text(message_text("@<>+@str", "\16+@config_value")))})
      BOOST_TEST(answer(target, fine) == "");
    BOOST_TEST(answer(target, message_text("@<>+@error", error_text(deep))) == "a message with values that no node sends");
    for (const auto* never :
         {"@<>+@config_value", "@<>+@unit+@group", "@<>+@group_down", "@<>+@open_stream_msg", "@<>+settings"})
      BOOST_TEST(answer(target, message_text(never)) != "", never);
    BOOST_TEST(answer(target, message_text("@<>+@message", deep)) != "");
  }
  for (const auto& own_type :
       {message_text("@<>+my.type"), message_text("@<>+@charbuf", "\1x"), message_text("@<>+@message", message_text("@<>")),
        message_text("@<>+@actorvec", "\1" + pointer_text(3, 'b'))}) {
    BOOST_TEST(answer(9, own_type) == "");
    BOOST_TEST(answer(6, own_type) == "an answer of a type that no node answers");
  }
  BOOST_TEST(answer(9, "") == "");  // a value whose type the other end has not registered
  BOOST_TEST(answer(6, "") == "a message that is not as CAF writes it");
  // Messages to actors of the program:
  const auto message = [&](const std::string& payload) {
    BOOST_TEST(rules.why_not(head_of(message_type::direct_message, 100)) == "");
    return rules.why_not(bytes_of(payload));
  };
  BOOST_TEST(message('\0' + message_text("@<>+@message", message_text("@<>+@str", "\3abc"))) == "");
  BOOST_TEST(message('\0' + message_text("@<>+@str", "\16+@config_value")) == "");
  // What CAF sends if it can't write a value.
  BOOST_TEST(message('\0' + message_text("@<>+@str+troupe.call", "\3abc")) == "");
  BOOST_TEST(answer(6, message_text("@<>+troupe.result")) == "");
  BOOST_TEST(message('\0' + message_text("@<>+@u8+", "x")) == "a message that is not as CAF writes it");
  BOOST_TEST(message('\0' + deep) == "a message with values that no node sends");
  BOOST_TEST(message('\0' + message_text("@<>+@message", deep)) == "a message with values that no node sends");
  BOOST_TEST(message('\0' + std::string("\1\1") + message_text("@<>")) == "a message that is not as CAF writes it");
  BOOST_TEST(message(std::string("\0\0\0\200\200\200\200\0", 8)) == "a message that is not as CAF writes it");
}

// CAF reads a null pointer if a message says that it belongs to a stream, and does not.
BOOST_AUTO_TEST_CASE(a_message_of_a_stream_of_CAF_is_one) {  // BR-8
  const auto own = std::make_shared<troupe::gate::own_actors>();
  const auto hold = own->add(5, troupe::gate::own_actors::kind::gateway);
  message_rules rules(end::called, own);
  BOOST_TEST(rules.why_not(head_of(message_type::client_handshake, 32)) == "");
  BOOST_TEST(rules.why_not(node_of('b')) == "");
  for (const auto kind : {message_type::direct_message, message_type::routed_message})
    for (const std::uint64_t category : {0, 1, 2, 3}) {
      auto head = head_of(kind, 100);
      head.message = category << 60;
      const auto why_not = [&](const std::string& types) {
        BOOST_TEST(rules.why_not(head) == "");
        return rules.why_not(payload_of(types, kind == message_type::routed_message, 0));
      };
      BOOST_TEST(why_not("@<>+@downstream_msg") == "");
      for (const auto* types : {"@<>+@upstream_msg", "@<>+@str", "@<>+@downstream_msg+@str"})
        BOOST_TEST((why_not(types) == "") == (category < 2), types);
      head.target = 5;
      BOOST_TEST((rules.why_not(head) == "") == (category < 2));
      head.target = 6;
      head.message |= std::uint64_t{1} << 63;
      BOOST_TEST((rules.why_not(head) == "") == (category < 2));
    }
}

BOOST_AUTO_TEST_CASE(an_actor_is_one_of_the_node_as_long_as_its_hold_lives) {  // OA-1
  using own_actors = troupe::gate::own_actors;
  const auto own = std::make_shared<own_actors>();
  auto first = own->add(5, own_actors::kind::inner);
  auto second = own->add(6, own_actors::kind::inner);
  BOOST_TEST((own->find(5) == own_actors::kind::inner && own->find(6) == own_actors::kind::inner));
  first = std::move(second);
  BOOST_TEST(!own->find(5));
  BOOST_TEST((own->find(6) == own_actors::kind::inner));
  first = {};
  BOOST_TEST(!own->find(6));
}

// Another node that sends to a gateway while the gateway ends has done nothing wrong.
BOOST_AUTO_TEST_CASE(a_gateway_stays_one_when_it_has_ended) {  // OA-1
  using own_actors = troupe::gate::own_actors;
  const auto own = std::make_shared<own_actors>();
  own->add_first(7);
  auto hold = own->add(5, own_actors::kind::gateway);
  hold = {};
  BOOST_TEST((own->find(5) == own_actors::kind::gateway));
}

BOOST_AUTO_TEST_CASE(a_policy_that_is_read_again_counts_on_an_open_connection) {  // BR-13
  const troupe::test::temporary_folder folder;
  const auto write = [&](const std::string& roles) {
    std::ofstream(folder / "policy.json") << R"({"roles": )" << roles << "}";
  };
  write(R"({"guest": {"actors": true}})");
  troupe::rights::policy_file policy(folder / "policy.json");
  const auto ids = std::make_shared<troupe::gate::node_ids>();
  ids->set_own(node_text('o'));
  message_rules rules(end::called);
  rules.meet(ids, {"mine", "bob", "guest"}, &policy);
  BOOST_TEST(rules.why_not(head_of(message_type::client_handshake, 32)) == "");
  BOOST_TEST(rules.why_not(node_of('b')) == "");
  const auto head = head_of(message_type::direct_message, 100);
  const auto large = head_of(message_type::direct_message, 4097);
  const auto payload = [&] { return rules.why_not(payload_of("@<>+@str", false, 0)); };
  const auto change = [&](const std::string& roles) {
    write(roles);
    policy.read_again();
  };
  const auto refused = [](const std::string& why) {
    return contains(why, "which the policy allows no node of the role 'guest'");
  };
  BOOST_TEST(rules.why_not(large) == "");
  BOOST_TEST(payload() == "");
  BOOST_TEST(rules.why_not(head) == "");
  change(R"({"guest": {}})");  // between a header and its payload
  BOOST_TEST(refused(payload()));
  BOOST_TEST(refused(rules.why_not(large)));
  change(R"({"guest": {"actors": true}})");
  BOOST_TEST(rules.why_not(large) == "");
  BOOST_TEST(payload() == "");
  change(R"({"other": {"actors": true}})");  // the role is named no more
  BOOST_TEST(refused(rules.why_not(large)));
}

BOOST_AUTO_TEST_CASE(a_role_without_a_right_to_actors_reaches_those_of_the_node_alone) {  // BR-7
  const troupe::test::temporary_folder folder;
  const auto own = std::make_shared<troupe::gate::own_actors>();
  const auto hold = own->add(5, troupe::gate::own_actors::kind::gateway);
  for (const bool may : {true, false}) {
    message_rules rules(end::called, own);
    const auto ids = std::make_shared<troupe::gate::node_ids>();
    ids->set_own(node_text('o'));
    std::ofstream(folder / "policy.json") << R"({"roles": {"guest": {"actors": )" << (may ? "true" : "false") << "}}}";
    const troupe::rights::policy_file policy(folder / "policy.json");
    rules.meet(ids, {"mine", "bob", "guest"}, &policy);
    BOOST_TEST(rules.why_not(head_of(message_type::client_handshake, 32)) == "");
    BOOST_TEST(rules.why_not(node_of('b')) == "");
    for (const auto kind : {message_type::direct_message, message_type::routed_message}) {
      auto head = head_of(kind, 100);
      const auto nodes = kind == message_type::routed_message ? node_text('b') + node_text('o') : std::string();
      head.target = 5;
      BOOST_TEST(rules.why_not(head) == "");
      const auto why_not = [&](const std::string& types) {
        BOOST_TEST(rules.why_not(head) == "");
        const auto payload = payload_of(types, false, caf::ok_atom::uint_value());
        return rules.why_not(bytes_of(nodes + std::string(payload.begin(), payload.end())));
      };
      head.target = 6;
      const auto expected = [&](const std::string& what) {
        return may ? "" : what + ", which the policy allows no node of the role 'guest'";
      };
      const auto to_program = expected("a message to an actor of a program");
      BOOST_TEST(why_not("@<>+@str") == to_program);
      // Nobody looks at values that may not come.
      if (!may) BOOST_TEST(why_not("@<>+@config_value") == to_program);
      auto large = head;
      large.payload = 4096;
      BOOST_TEST(rules.why_not(large) == "");
      large.payload = 4097;
      BOOST_TEST(rules.why_not(large) == to_program);
      // What CAF tells of its service, once, and only the actor that has asked.
      const auto tells_of_service = [&] {
        BOOST_TEST(rules.why_not(head) == "");
        const auto values = number_text(caf::ok_atom::uint_value()) + '\0' + pointer_text(3, 'b') + '\0';
        return rules.why_not(bytes_of(nodes + '\0' + message_text("@<>+@atom+@str+@strong_actor_ptr+@str", values)));
      };
      BOOST_TEST((tells_of_service() == "") == may);
      auto question_for_service = head_of(message_type::direct_message, 100, caf::io::basp::header::named_receiver_flag);
      question_for_service.source = head.target;
      rules.leaves(question_for_service);
      head.message = 1;  // a request
      BOOST_TEST((tells_of_service() == "") == may);
      head.message = 0;
      head.target = 8;
      BOOST_TEST((tells_of_service() == "") == may);
      head.target = 6;
      BOOST_TEST((tells_of_service() == "") == (may || kind == message_type::direct_message));
      BOOST_TEST((tells_of_service() == "") == may);
      auto question = head_of(message_type::direct_message, 100);
      question.source = head.target;
      question.message = 1;
      rules.leaves(question);
      head.message = caf::make_message_id(1).response_id().integer_value();
      BOOST_TEST(why_not("@<>+@str") == "");
      const auto answers = [&](const std::string& content) {
        rules.leaves(question);
        BOOST_TEST(rules.why_not(head) == "");
        return rules.why_not(bytes_of(nodes + '\0' + content));
      };
      BOOST_TEST(answers(message_text("@<>+@actor+@actor", pointer_text(3, 'b') + pointer_text(4, 'b'))) ==
                 expected("a message with more than one actor"));
      BOOST_TEST(answers(message_text("@<>+my.type", "x")) == expected("a message with a value of a type of a program"));
      const auto third = message_text("@<>+@actor", pointer_text(3, 'c'));
      BOOST_TEST(answers(third) == expected("a message with an actor of a third node"));
      for (const char known : {'b', 'o'}) BOOST_TEST(answers(message_text("@<>+@actor", pointer_text(3, known))) == "");
      const auto down = [&](const std::string& context) {
        BOOST_TEST(rules.why_not(head_of(message_type::down_message, 100)) == "");
        return rules.why_not(bytes_of(node_text('b') + node_text('o') + error_text(context)));
      };
      BOOST_TEST(down(third) == expected("the end of an actor, and in the reason an actor of a third node"));
      BOOST_TEST(down(message_text("@<>+my.type", "x")) ==
                 expected("the end of an actor, and in the reason a value of a type of a program"));
    }
    auto to_service = head_of(message_type::direct_message, 100, caf::io::basp::header::named_receiver_flag);
    to_service.target = static_cast<std::uint64_t>(caf::atom("SpawnServ"));
    const auto asks = [&](const std::string& types, std::uint64_t first) {
      BOOST_TEST(rules.why_not(to_service) == "");
      return rules.why_not(payload_of(types, false, first));
    };
    BOOST_TEST(asks("@<>+@atom+@atom+@str", caf::sys_atom::uint_value()) == "");
    BOOST_TEST(contains(asks("@<>+@u64", 0), "not CAF's question"));
    BOOST_TEST(contains(asks("@<>+@atom+@atom+@str", caf::ok_atom::uint_value()), "not CAF's question"));
    for (int i = 3; i < message_rules::most_for_service; ++i) BOOST_TEST(rules.why_not(to_service) == "");
    BOOST_TEST(contains(rules.why_not(to_service), "one more message to a service"));
    // BR-10
    auto message = head_of(message_type::direct_message, 100);
    message.target = 5;
    BOOST_TEST(rules.why_not(message) == "");
    auto passed_on = payload_of("@<>+troupe.call", false, 0);
    passed_on[0] = 1;
    BOOST_TEST(contains(rules.why_not(passed_on), "for further actors"));
    for (const std::string types : {"@<>+@str", "@<>+troupe.result"}) {
      auto question = head_of(message_type::direct_message, 100);
      question.source = 7;
      question.message = 77;
      rules.leaves(question);
      message.target = 7;
      message.message = caf::make_message_id(77).response_id().integer_value();
      BOOST_TEST(rules.why_not(message) == "");
      auto answer = payload_of(types, false, 0);
      answer.resize(message_rules::most_answer + 1);
      const bool is_fine = may || types == "@<>+troupe.result";
      BOOST_TEST(rules.why_not(answer) == (is_fine ? "" : "an answer of 65537 bytes, which is none of troupe's"), types);
    }
  }
}

BOOST_AUTO_TEST_CASE(only_messages_that_nodes_send_may_come) {  // BR-2
  auto rules = after_the_handshake();
  BOOST_TEST(rules.why_not(head_of(message_type::direct_message, 40'000'000)) == "");
  BOOST_TEST(rules.why_not(head_of(message_type::monitor_message, 100)) == "");
  BOOST_TEST(rules.why_not(head_of(message_type::down_message, 100)) == "");
  BOOST_TEST(rules.why_not(head_of(message_type::heartbeat, 0)) == "");
  BOOST_TEST(rules.why_not(head_of(message_type::routed_message, 100)) == "");
  const auto to_service = [&](const char* name, std::uint32_t payload) {
    auto head = head_of(message_type::direct_message, payload, caf::io::basp::header::named_receiver_flag);
    head.target = static_cast<std::uint64_t>(caf::atom_from_string(std::string(name)));
    return rules.why_not(head);
  };
  BOOST_TEST(to_service("SpawnServ", 100) == "");
  BOOST_TEST(contains(to_service("SpawnServ", 5'000), "service of CAF"));
  for (const auto* name : {"ConfigServ", "StreamServ", "other"})
    BOOST_TEST(contains(to_service(name, 100), "service of CAF"), name);
  for (const int kind : {7, 100, 255})
    BOOST_TEST(contains(rules.why_not(head_of(static_cast<message_type>(kind), 100)), "kind " + std::to_string(kind)));
}

BOOST_AUTO_TEST_CASE(a_payload_has_a_size_that_fits_its_kind) {  // BR-3
  for (const auto handshake : {0U, 65'537U, 0xFFFFFFFFU})
    BOOST_TEST(contains(message_rules(end::called).why_not(head_of(message_type::client_handshake, handshake)), "bytes"));
  auto rules = after_the_handshake();
  for (const auto kind : {message_type::monitor_message, message_type::down_message})
    for (const auto payload : {0U, 65'537U, 0xFFFFFFFFU})
      BOOST_TEST(rules.why_not(head_of(kind, payload)) == "a message of CAF of " + std::to_string(payload) + " bytes");
  for (const auto kind : {message_type::direct_message, message_type::routed_message})
    BOOST_TEST(rules.why_not(head_of(kind, 0)) == "an empty message");
  BOOST_TEST(contains(rules.why_not(head_of(message_type::heartbeat, 1)), "heartbeat"));
}

BOOST_AUTO_TEST_CASE(messages_in_messages_end_somewhere) {  // BR-4
  auto rules = after_the_handshake();
  BOOST_TEST(rules.why_not(head_of(message_type::direct_message, 100)) == "");
  const auto why = [&](const std::string& payload) { return rules.why_not(std::vector<char>(payload.begin(), payload.end())); };
  const auto of_types = [](const std::string& types) { return std::string(3, '\0') + static_cast<char>(types.size()) + types; };
  const std::string filler(5'000, '\0');
  std::string nested;
  for (std::size_t i = 0; i < message_rules::most_nested; ++i) nested += "@<>+@message";
  const auto message = of_types("@<>+@message");
  BOOST_TEST(why(message + nested.substr(std::string("@<>+@message").size()) + filler) == "");
  BOOST_TEST(contains(why(message + nested + filler), "64 messages in it"));
  BOOST_TEST(contains(why(filler + nested + "@<>"), "64 messages in it"));        // of which nobody can say how CAF reads it
  BOOST_TEST(why(of_types("@<>+troupe.call") + nested + nested + filler) == "");  // data of another kind
}

BOOST_AUTO_TEST_CASE(the_actors_of_a_node_get_what_they_expect) {  // BR-6, OA-1
  const auto own = std::make_shared<troupe::gate::own_actors>();
  auto gateway = own->add(7, troupe::gate::own_actors::kind::gateway);
  const auto inner = own->add(8, troupe::gate::own_actors::kind::inner);
  message_rules rules(end::called, own);
  BOOST_TEST(rules.why_not(head_of(message_type::client_handshake, 32)) == "");
  BOOST_TEST(rules.why_not(node_of('a')) == "");
  const auto why = [&](std::uint64_t target, const std::string& types, std::uint64_t first = 0, std::uint64_t number = 0) {
    std::string both;
    for (const bool is_routed : {false, true}) {
      auto head = head_of(is_routed ? message_type::routed_message : message_type::direct_message, 100);
      head.target = target;
      head.message = number;
      BOOST_TEST(rules.why_not(head) == "");
      const auto result = rules.why_not(payload_of(types, is_routed, first));
      if (is_routed) BOOST_TEST(result == both);
      both = result;
    }
    return both;
  };
  constexpr auto answer = std::uint64_t{1} << 63;
  const auto status = troupe::support::status_atom::uint_value();
  const auto blocked = troupe::support::blocked_atom::uint_value();
  for (const auto* sent : {"@<>+troupe.call", "@<>+troupe.hello+@strong_actor_ptr"}) {
    BOOST_TEST(why(7, sent) == "");
    BOOST_TEST(contains(why(8, sent), "may not send"));
  }
  // CAF takes note of each actor that it reads of.
  for (const auto* many : {"@<>+troupe.call+@strong_actor_ptr", "@<>+troupe.hello+@strong_actor_ptr+@strong_actor_ptr"})
    BOOST_TEST(contains(why(7, many), "may not send"), many);
  BOOST_TEST(rules.owed() == 0U);
  for (const auto* question : {"@<>+@atom", "@<>+@atom+@atom", "@<>+@atom+@u64+@i64"}) {
    BOOST_TEST(why(7, question, status) == "", question);
    BOOST_TEST(rules.owed() > 10'000U);
  }
  BOOST_TEST(contains(why(7, "@<>+@atom+@actor", status), "may not send"));
  BOOST_TEST(rules.why_not(head_of(message_type::monitor_message, 64)) == "");
  BOOST_TEST(rules.why_not(node_of('a', 32)) == "");
  const auto news = node_text('b') + node_text('a') + error_text();  // that the actor has ended, as CAF writes it
  BOOST_TEST(rules.owed() == message_head::bytes + news.size());
  BOOST_TEST(why(7, "@<>+@atom+@str", troupe::support::find_atom::uint_value()) == "");
  BOOST_TEST(contains(why(7, "@<>+@atom", blocked), "may not send"));
  for (const std::uint64_t target : {7, 8}) {
    for (const auto* other : {"@<>+@exit", "@<>+@down", "@<>", "@<>+@message+troupe.call", "@<>+@atoms"})
      BOOST_TEST(contains(why(target, other), "may not send"), other);
    BOOST_TEST(why(target, "@<>+@error", 0, answer | 5) == "");
  }
  BOOST_TEST(why(9, "@<>+@exit") == "");  // an actor of the program
  gateway = {};
  BOOST_TEST(why(7, "@<>+troupe.call") == "");
  BOOST_TEST(contains(why(7, "@<>+@exit"), "may not send"));
}

BOOST_AUTO_TEST_SUITE_END()
