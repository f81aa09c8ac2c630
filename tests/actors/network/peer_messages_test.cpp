// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/peer_messages.hpp>

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <caf/io/basp/message_type.hpp>
#include <caf/message_id.hpp>
#include <caf/node_id.hpp>

#include "actors/network/basp_messages.hpp"
#include "support/contains.hpp"
#include "support/stderr_of_process.hpp"

BOOST_AUTO_TEST_SUITE(peer_messages_of_a_caller)

namespace {

using caf::io::basp::message_type;
using troupe::gate::known_peers;
using troupe::network::message_head;
using troupe::network::message_outline;
using troupe::network::message_rules;
using troupe::network::peer_messages;
using outcome = peer_messages::outcome;

std::vector<char> head_of(std::uint8_t operation, std::uint32_t payload, std::uint64_t message = 0, std::uint64_t source = 7) {
  std::vector<char> result(message_head::bytes);
  message_head{operation, 0, payload, message, source, 9}.write(result.data());
  return result;
}

std::vector<char> head_of(message_type kind, std::uint32_t payload, std::uint64_t message = 0) {
  return head_of(static_cast<std::uint8_t>(kind), payload, message);
}

/// The id of a node as CAF writes it.
std::vector<char> node_bytes(char which) {
  const auto kind = static_cast<std::uint64_t>(caf::node_id::default_data::class_id);
  std::vector<char> result(message_outline::node_bytes, which);
  for (int i = 0; i < 8; ++i) result[static_cast<std::size_t>(i)] = static_cast<char>(kind >> (56 - 8 * i));
  return result;
}

/// The messages of a caller.
struct from_a_caller {
  known_peers known;
  peer_messages messages{known};

  from_a_caller() { known.ids->set_own(std::string(message_outline::node_bytes, 'm')); }

  void begin() { messages.begin(message_rules(troupe::gate::end::called, known.own)); }
  outcome sorts(std::vector<char> chunk) { return messages.sort(chunk); }
  void greet() {
    BOOST_TEST((sorts(head_of(message_type::client_handshake, message_outline::node_bytes)) == outcome::for_broker));
    BOOST_TEST((sorts(node_bytes('a')) == outcome::for_broker));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(messages_of_peers, from_a_caller)

BOOST_AUTO_TEST_CASE(bytes_of_another_protocol_have_no_rules) {
  BOOST_TEST((sorts({'x'}) == outcome::for_broker));
  BOOST_TEST((messages.now() == peer_messages::state::unknown));
}

BOOST_AUTO_TEST_CASE(a_header_that_breaks_the_rules_is_wrong) {  // PM-1
  begin();
  BOOST_TEST((sorts(head_of(message_type::heartbeat, 0)) == outcome::wrong));
  BOOST_TEST(messages.problem() == "a message before its handshake");
}

BOOST_AUTO_TEST_CASE(a_payload_that_breaks_the_rules_is_wrong) {  // PM-1
  begin();
  BOOST_TEST((sorts(head_of(message_type::client_handshake, 3)) == outcome::for_broker));
  BOOST_TEST((sorts({'a', 'b', 'c'}) == outcome::wrong));
  BOOST_TEST(messages.problem() == "a handshake of 3 bytes");
}

BOOST_AUTO_TEST_CASE(a_wrong_fragment_is_wrong_and_says_why) {  // PM-1
  begin();
  greet();
  BOOST_TEST((sorts(head_of(message_head::fragment, 1U << 20)) == outcome::wrong));
  BOOST_TEST(messages.problem() == "a fragment of 1048576 bytes");
}

BOOST_AUTO_TEST_CASE(no_fragment_comes_before_the_handshake) {  // PM-2, BR-1
  begin();
  BOOST_TEST((sorts(head_of(message_head::fragment, 10)) == outcome::wrong));
  BOOST_TEST(messages.problem() == "a fragment before its handshake");
  from_a_caller later;
  later.begin();
  later.greet();
  BOOST_TEST((later.sorts(head_of(message_head::fragment, 10)) == outcome::kept));
}

/// Gives memory for the elements that trail a message with the values "piece", and refuses elements that trail "other".
struct memory_for_elements final : troupe::trailing_receiver {
  mutable std::string memory = std::string(3, '-');

  std::optional<troupe::trailing_place> place_of_trailing(std::string_view values) const noexcept override {
    if (values == "piece") return troupe::trailing_place{3, memory, {}, 7, nullptr};
    if (values == "other") return troupe::trailing_place{3, {}, {}, 0, "refused"};
    return std::nullopt;
  }
};

// PM-3
BOOST_AUTO_TEST_CASE(elements_trail_a_piece_alone_and_refused_elements_are_dropped) {
  memory_for_elements elements;
  const std::string of_piece = "@<>+troupe.piece";
  const auto place = [&](const std::string& types, const std::string& values, const troupe::trailing_receiver* to) {
    from_a_caller of;
    of.begin();
    of.greet();
    const auto payload = std::string(3, '\0') + static_cast<char>(types.size()) + types + values;
    auto head = head_of(message_type::direct_message, static_cast<std::uint32_t>(payload.size()));
    message_head::set_note(head.data(), message_head::has_trailing);
    BOOST_TEST((of.messages.sort(head) == outcome::for_broker));
    std::vector<char> chunk(payload.begin(), payload.end());
    BOOST_TEST((of.messages.sort(chunk) == outcome::kept));
    const auto result = of.messages.place_trailing(chunk, to);
    BOOST_TEST((result.data() == elements.memory.data()) == (types == of_piece && values == "piece" && to != nullptr));
    if (result.empty()) BOOST_TEST(of.messages.problem() == "elements that trail no piece of a tensor");
    BOOST_TEST((of.messages.sort(chunk) == outcome::for_broker));
    const auto size = result.size();
    const auto taken = of.messages.take_trailing();
    BOOST_TEST(taken.has_value() == (size > 0));
    if (values == "other") BOOST_TEST(taken->owner.use_count() == 1);
    BOOST_TEST(!of.messages.take_trailing().has_value());
    return size;
  };
  BOOST_TEST(place(of_piece, "piece", &elements) == 3U);
  BOOST_TEST(place(of_piece, "other", &elements) == 3U);
  BOOST_TEST(elements.memory == "---");
  BOOST_TEST(place(of_piece, "wrong", &elements) == 0U);
  BOOST_TEST(place(of_piece, "piece", nullptr) == 0U);
  BOOST_TEST(place("@<>+troupe.offer", "piece", &elements) == 0U);
  BOOST_TEST(place("@<>+troupe.piece+@i32", "piece", &elements) == 0U);
}

// What the certificate says counts, whether it is known before the broker or after it.
BOOST_AUTO_TEST_CASE(a_certificate_brings_its_rules_and_its_sender) {
  for (const bool meets_first : {true, false}) {
    from_a_caller of;
    if (meets_first) of.messages.meet({"mine", "a", "member"});
    of.begin();
    if (!meets_first) of.messages.meet({"mine", "a", "member"});
    BOOST_TEST((of.messages.now() == peer_messages::state::proven));
    of.greet();
    BOOST_TEST((of.sorts(head_of(message_type::routed_message, 80)) == outcome::for_broker));
    const auto now = of.messages.reading();
    BOOST_REQUIRE(troupe::reading_from::current() != nullptr);
    BOOST_TEST(troupe::reading_from::current()->who() == "node 'a' (role member)");
    BOOST_TEST(troupe::reading_from::message().source == 7u);
    std::vector<char> of_another = node_bytes('b');
    of_another.insert(of_another.end(), 48, 'm');
    BOOST_TEST((of.messages.sort(of_another) == outcome::wrong));
    BOOST_TEST(of.messages.problem() == "a message of another node");
  }
}

BOOST_AUTO_TEST_CASE(only_what_was_asked_is_answered) {  // BR-9
  messages.meet({"mine", "a", "member"});
  begin();
  greet();
  const auto question = caf::make_message_id(5);
  BOOST_REQUIRE(question.is_request());
  const auto answer = question.response_id().integer_value();
  message_head leaving;
  leaving.source = 9;
  leaving.message = question.integer_value();
  messages.leaves(leaving);
  BOOST_TEST((sorts(head_of(message_type::direct_message, 10, answer)) == outcome::for_broker));
  from_a_caller other;
  other.messages.meet({"mine", "b", "member"});
  other.begin();
  other.greet();
  BOOST_TEST((other.sorts(head_of(message_type::direct_message, 10, answer)) == outcome::wrong));
}

BOOST_AUTO_TEST_CASE(bytes_of_fragments_count_as_bytes_that_are_here) {  // NI-3
  constexpr auto most = troupe::gate::node_ids::most_unfinished;
  messages.meet({"mine", "a", "member"});
  begin();
  greet();
  BOOST_TEST(messages.may_hold(most));
  BOOST_TEST(!messages.may_hold(most + 1));
  constexpr std::size_t bytes = 100;
  BOOST_TEST((sorts(head_of(message_head::fragment, bytes)) == outcome::kept));
  BOOST_TEST((sorts(std::vector<char>(bytes, 'x')) == outcome::kept));
  BOOST_TEST(messages.frames().kept() == bytes);
  BOOST_TEST(!messages.may_hold(most));
  BOOST_TEST(messages.may_hold(most - bytes));
}

BOOST_AUTO_TEST_CASE(who_asks_what_was_wrong_before_anything_was_ends_the_process) {
  const known_peers known;
  const auto [text, signal] = troupe::test::stderr_of_process([&] { peer_messages(known).problem(); });
  BOOST_TEST(signal == SIGABRT);
  BOOST_TEST(troupe::test::contains(text, "expected !problem_.empty()"), text);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE_END()
