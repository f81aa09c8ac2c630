// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/checkpoint.hpp>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <actors/temporary_folder.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

const std::string a_save = "0123456789abcdef";
const std::string another_save = "fedcba9876543210";

at::Tensor ten_bytes() { return at::arange(10, at::kByte); }

}  // namespace

BOOST_AUTO_TEST_SUITE(pieces_of_parts)

BOOST_AUTO_TEST_CASE(the_pieces_of_one_node_are_the_bytes_of_the_other) {  // PP-1
  const auto sent = objects::part_pieces::of(a_save, ten_bytes());
  objects::part_pieces received;
  for (std::uint64_t offset = 0; offset < 10; offset += 4) received.receive(a_save, offset, 10, sent.piece(a_save, offset, 4));
  BOOST_TEST(at::equal(received.take(a_save), ten_bytes()));
  BOOST_TEST(contains(text_of<error>([&] { received.take(a_save); }), "was not received to its end"));
  BOOST_TEST(sent.piece(a_save, 10, 4).numel() == 0);
}

BOOST_AUTO_TEST_CASE(a_part_that_is_not_whole_is_not_handed_out) {  // PP-1
  objects::part_pieces received;
  received.receive(a_save, 0, 10, ten_bytes().narrow(0, 0, 9));
  BOOST_TEST(contains(text_of<error>([&] { received.take(a_save); }), "was not received to its end; load again"));
}

BOOST_AUTO_TEST_CASE(a_piece_out_of_order_or_beyond_the_end_is_refused) {  // PP-1
  objects::part_pieces received;
  const auto refusal = [&](std::uint64_t offset, const at::Tensor& piece) {
    return text_of<error>([&] { received.receive(a_save, offset, 10, piece); });
  };
  BOOST_TEST(contains(refusal(4, ten_bytes()), "expected byte 0 of save (none), got 10 bytes from byte 4"));
  received.receive(a_save, 0, 10, ten_bytes().narrow(0, 0, 4));
  BOOST_TEST(contains(refusal(5, ten_bytes().narrow(0, 0, 1)), "expected byte 4 of save " + a_save));
  BOOST_TEST(contains(refusal(4, ten_bytes().narrow(0, 0, 7)), "got 7 bytes from byte 4"));
  BOOST_TEST(contains(refusal(4, at::ones({2})), "type Byte"));
  BOOST_TEST(contains(text_of<error>([&] { received.receive(a_save, 0, ~std::uint64_t{0}, ten_bytes()); }), "announced"));
}

BOOST_AUTO_TEST_CASE(a_part_that_begins_again_replaces_the_one_before) {
  objects::part_pieces received;
  received.receive(another_save, 0, 10, ten_bytes().narrow(0, 0, 4));
  received.receive(a_save, 0, 10, ten_bytes());
  BOOST_TEST(at::equal(received.take(a_save), ten_bytes()));
}

BOOST_AUTO_TEST_CASE(bytes_of_ananother_save_are_refused) {  // PP-2
  const auto sent = objects::part_pieces::of(a_save, ten_bytes());
  BOOST_TEST(contains(text_of<error>([&] { sent.piece(another_save, 0, 4); }), "no snapshot of save " + another_save));
  BOOST_TEST(contains(text_of<error>([&] { sent.piece(a_save, 11, 4); }), "has 10 bytes, asked for byte 11"));
  BOOST_TEST(contains(text_of<error>([&] { objects::part_pieces().piece({}, 0, 4); }), "no snapshot"));
  objects::part_pieces received;
  received.receive(a_save, 0, 10, ten_bytes().narrow(0, 0, 4));
  BOOST_TEST(contains(text_of<error>([&] { received.receive(another_save, 4, 10, ten_bytes().narrow(0, 4, 6)); }),
                      "expected byte 4 of save " + a_save));
  received.receive(a_save, 4, 10, ten_bytes().narrow(0, 4, 6));
  BOOST_TEST(contains(text_of<error>([&] { received.take(another_save); }), "was not received"));
}

BOOST_AUTO_TEST_SUITE_END()
