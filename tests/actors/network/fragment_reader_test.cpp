// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/fragment_reader.hpp>

#include <string>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/network/write_scheduler.hpp>

#include "actors/network/basp_messages.hpp"

namespace {

using troupe::network::fragment_reader;
using troupe::network::message_head;
using troupe::network::write_scheduler;
using troupe::test::basp_message;
using troupe::test::broker_at_the_end;

std::string fragment(std::size_t announced, const std::string& bytes) {
  std::string head(message_head::bytes, '\0');
  message_head{message_head::fragment, 0, static_cast<std::uint32_t>(announced), 0}.write(head.data());
  return head + bytes;
}

std::string fragment(const std::string& bytes) { return fragment(bytes.size(), bytes); }

/// The message without the first `ahead` bytes of its payload, which came in fragments.
std::string rest_of(std::string message, std::size_t ahead) {
  message_head::set_note(message.data(), message_head::follows_fragments);
  return message.erase(message_head::bytes, ahead);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fragments)

// FR-1
BOOST_AUTO_TEST_CASE(a_payload_is_put_together_while_other_messages_come) {
  const auto message = basp_message(1, 10);
  const auto other = basp_message(2, 3);
  const auto empty = basp_message(4, 0);
  const auto payload = message.substr(message_head::bytes);
  const auto all =
    fragment(payload.substr(0, 4)) + other + fragment(payload.substr(4, 2)) + empty + rest_of(message, 6) + other;
  for (const std::size_t cut : {all.size(), std::size_t{1}, std::size_t{7}}) {
    broker_at_the_end end;
    for (std::size_t at = 0; at < all.size(); at += cut) BOOST_REQUIRE(end.feed(all.substr(at, cut)));
    BOOST_TEST((end.messages == std::vector{other, empty, message, other}));
  }
}

// FR-2: the reader holds only bytes that came. What a header announces takes no memory.
BOOST_AUTO_TEST_CASE(a_fragment_takes_memory_for_its_own_bytes_alone) {
  fragment_reader reader;
  reader.begin();
  const auto head = fragment(write_scheduler::fragment_bytes, "");
  std::vector<char> chunk(head.begin(), head.end());
  BOOST_TEST((reader.sort(chunk) == fragment_reader::outcome::kept));
  BOOST_TEST(reader.has_wish());
  BOOST_TEST(reader.prepare(chunk) == 0U);
  BOOST_TEST(chunk.size() == write_scheduler::fragment_bytes);
}

// FR-3
BOOST_AUTO_TEST_CASE(wrong_fragments_are_refused) {
  const auto message = basp_message(1, 10);
  const auto payload = message.substr(message_head::bytes);
  const auto refuses = [](const std::string& bytes) { return !broker_at_the_end().feed(bytes); };
  BOOST_TEST(refuses(fragment(0, "")));
  BOOST_TEST(refuses(fragment(write_scheduler::fragment_bytes + 1, "")));
  BOOST_TEST(refuses(rest_of(message, 0)));                                 // no fragment came
  BOOST_TEST(refuses(fragment(payload) + rest_of(message, 10)));            // nothing is left for the message
  BOOST_TEST(refuses(fragment(payload + payload) + rest_of(message, 10)));  // more than the message has
  BOOST_TEST(!refuses(fragment(payload.substr(0, 9)) + rest_of(message, 9)));
  std::string much(message_head::bytes, '\0');
  message_head{2, message_head::follows_fragments, 0xFFFFFFFF}.write(much.data());
  BOOST_TEST(refuses(fragment("a") + much));  // more than one fragment is left
}

// FR-4
BOOST_AUTO_TEST_CASE(the_broker_gets_a_payload_once_the_elements_that_trail_it_have_come) {
  const auto other = basp_message(2, 3);
  const auto plain = basp_message(1, 10);
  auto message = plain;
  message_head::set_note(message.data(), message_head::has_trailing);
  broker_at_the_end end;
  end.trailing = 6;
  BOOST_TEST(end.feed(message + "12345"));
  BOOST_TEST(end.messages.empty());
  BOOST_TEST((end.reader.now() == fragment_reader::state::trailing));
  BOOST_TEST(end.feed("6"));
  BOOST_TEST(end.feed(message + "123456"));
  BOOST_TEST(end.reader.trailed_in_row() == 2);
  BOOST_TEST(end.feed(other));
  BOOST_TEST(end.reader.trailed_in_row() == 0);
  BOOST_TEST((end.messages == std::vector{plain, plain, other}));
  BOOST_TEST((end.came == std::vector<std::string>{"123456", "123456"}));
}

// FR-4
BOOST_AUTO_TEST_CASE(elements_that_trail_no_whole_payload_are_refused) {
  const auto with_note = [](std::string message, std::uint8_t note) {
    message_head::set_note(message.data(), note);
    return message;
  };
  BOOST_TEST(!broker_at_the_end().feed(with_note(basp_message(1, 0), message_head::has_trailing)));
  const auto both = with_note(rest_of(basp_message(1, 10), 4), message_head::has_trailing | message_head::follows_fragments);
  BOOST_TEST(!broker_at_the_end().feed(fragment("abcd") + both));
  BOOST_TEST(broker_at_the_end().feed(fragment("abcd") + rest_of(basp_message(1, 10), 4)));
}

// FR-2, FR-3
BOOST_AUTO_TEST_CASE(a_wrong_fragment_takes_no_memory) {
  fragment_reader reader;
  reader.begin();
  const auto head = fragment(0xFFFFFFFF, "");
  std::vector<char> chunk(head.begin(), head.end());
  BOOST_TEST((reader.sort(chunk) == fragment_reader::outcome::wrong));
  BOOST_TEST(!reader.has_wish());
}

BOOST_AUTO_TEST_CASE(bytes_of_another_protocol_go_to_their_broker) {
  fragment_reader reader;
  std::vector<char> chunk(message_head::bytes, static_cast<char>(message_head::fragment));
  const auto before = chunk;
  BOOST_TEST((reader.sort(chunk) == fragment_reader::outcome::for_broker));
  BOOST_TEST((chunk == before));
  BOOST_TEST(!reader.has_wish());
}

BOOST_AUTO_TEST_SUITE_END()
