// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <string>

#include <ATen/ATen.h>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/message_size.hpp>

#include "samples.hpp"
#include "support/captured_stderr.hpp"

using namespace troupe;
using testing::framed;

BOOST_AUTO_TEST_CASE_TEMPLATE(every_message_comes_back_as_it_was_sent, T, testing::message_types) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      testing::generator random{seed};
      T sent = testing::make<T>(random);
      testing::bytes wire = testing::encoded(sent);
      T received = testing::make<T>(random);  // the former content must not remain
      std::size_t left = 0;
      auto failed = testing::decode(wire, received, &left);
      BOOST_REQUIRE_MESSAGE(!failed, caf::to_string(failed));
      BOOST_TEST(left == 0u);
      BOOST_TEST(testing::same(sent, received), to_string(sent) << " came back as " << to_string(received));
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_empty_message_comes_back_empty, T, testing::message_types) {
  T sent{};
  if constexpr (requires { sent.carried; }) sent.carried.weight = {0};  // the smallest possible weight
  testing::generator random{1};
  T received = testing::make<T>(random);
  BOOST_REQUIRE(!testing::decode(testing::encoded(sent), received));
  BOOST_TEST(testing::same(sent, received));
}

BOOST_AUTO_TEST_CASE(a_weight_that_no_node_makes_is_refused) {
  for (const auto& weight : std::vector<std::vector<std::uint32_t>>{{}, {3, 3}, {4, 2}, {0xffffffff}}) {
    participant_quiet sent;
    sent.carried.weight = weight;
    participant_quiet received;
    BOOST_TEST(static_cast<bool>(testing::decode(testing::encoded(sent), received)), weight.size() << " powers");
    sent.answers = 1;  // only then may the weight be missing
    BOOST_TEST(static_cast<bool>(testing::decode(testing::encoded(sent), received)) == !weight.empty(), weight.size()
                                                                                                          << " powers");
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(messages_one_after_another_are_told_apart, T, testing::message_types) {
  testing::generator random{2};
  testing::bytes wire;
  T first = testing::make<T>(random);
  T second = testing::make<T>(random);
  BOOST_REQUIRE(!testing::encode(wire, first));
  BOOST_REQUIRE(!testing::encode(wire, second));
  caf::binary_deserializer source{testing::reading_system(), wire};
  T a;
  T b;
  BOOST_REQUIRE(!source(a, b));
  BOOST_TEST(testing::same(a, first));
  BOOST_TEST(testing::same(b, second));
}

BOOST_AUTO_TEST_CASE(fields_and_payload_of_a_newer_version_are_passed_over) {  // WI-3
  wire::Heartbeat header;
  header.set_from(5);
  header.set_sent_ns(-7);
  std::string unknown;
  // fields as tag, then value
  unknown += "\xf8\x07\x2a";                          // field 127, a number
  unknown += std::string("\xfa\x07\x03", 3) + "abc";  // field 127, three bytes
  unknown += std::string("\xf9\x07", 2) + std::string(8, 'x');
  auto wire = framed(header.SerializeAsString() + unknown, 100);
  heartbeat beat;
  std::size_t left = 1;
  auto failed = testing::decode(wire, beat, &left);
  BOOST_REQUIRE_MESSAGE(!failed, caf::to_string(failed));
  BOOST_TEST(left == 0u);
  BOOST_TEST(beat.from.value == 5u);
  BOOST_TEST(beat.sent_ns == -7);
}

BOOST_AUTO_TEST_CASE(fields_an_older_version_does_not_send_have_their_defaults) {
  call_request call;
  call.span = 9;
  BOOST_REQUIRE(!testing::decode(framed(""), call));
  BOOST_TEST(testing::same(call, call_request{}));
}

BOOST_AUTO_TEST_CASE(no_bytes_make_a_call_one_of_the_node_to_itself) {
  call_request sent;
  sent.from_itself = true;
  call_request received;
  received.from_itself = true;
  BOOST_REQUIRE(!testing::decode(testing::encoded(sent), received));
  BOOST_TEST(!received.from_itself);
}

BOOST_AUTO_TEST_CASE(a_tensor_of_a_kind_to_come_is_refused_with_advice) {
  wire::Autograd header;
  header.mutable_tensors()->add_kinds(4);
  autograd_message message;
  auto failed = testing::decode(framed(header.SerializeAsString()), message);
  BOOST_TEST(caf::to_string(failed).find("update this node") != std::string::npos, caf::to_string(failed));
}

BOOST_AUTO_TEST_CASE(a_large_tensor_is_written_without_growing_the_buffer_twice) {
  autograd_message message;
  message.tensors = {at::zeros({1 << 20}), at::zeros({1 << 20})};
  auto wire = testing::encoded(message);
  BOOST_TEST(wire.capacity() < wire.size() + 200);
}

BOOST_AUTO_TEST_CASE(a_long_queue_is_not_moved_for_each_message) {
  autograd_message message;
  message.tensors = {at::zeros({1 << 16})};
  testing::bytes queue;
  int moves = 0;
  for (int i = 0; i < 200; ++i) {
    const auto* before = queue.data();
    BOOST_REQUIRE(!testing::encode(queue, message));
    if (queue.data() != before) ++moves;
  }
  BOOST_TEST(moves < 20);
}

BOOST_AUTO_TEST_CASE(what_makes_a_message_too_long_for_its_length_is_not_written) {  // WI-7, WI-8
  BOOST_TEST(longest_message() + (1 << 20) < std::uint64_t{1} << 32);
  set_longest_message(10'000);
  autograd_message message;
  message.tensors = {at::ones({6000}, at::kByte)};
  testing::bytes wire;
  BOOST_REQUIRE(!testing::encode(wire, message));
  const auto first = wire;
  caf::error failed;
  const auto errors = test::captured_stderr([&] { failed = testing::encode(wire, message); });
  const auto bytes = std::to_string(first.size() - 12);  // a struct begins with its two lengths, 12 bytes
  BOOST_TEST(to_exception(failed).what() == "a struct of " + bytes + " bytes does not fit: " + std::to_string(first.size()) +
                                              " bytes of its message are written before it, and a message has at most 10000; "
                                              "send the tensors in several messages");
  BOOST_TEST(errors == std::string("troupe: a message could not be written: ") + to_exception(failed).what() + "\n");
  BOOST_TEST((wire == first));
  call_request header_alone;
  header_alone.what = requests::function{std::string(6000, 'f')};
  BOOST_TEST(static_cast<bool>(testing::encode(wire, header_alone)));
  BOOST_TEST((wire == first));
  message.tensors = {at::ones({1000}, at::kByte)};
  BOOST_TEST(!testing::encode(wire, message));
  set_longest_message(max_message_bytes);
}
