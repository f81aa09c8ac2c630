// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/actors/transfers/outgoing_pieces.hpp>

using troupe::tensor_piece;
using troupe::transfers::outgoing_pieces;

namespace {

constexpr auto offer = static_cast<std::int64_t>(outgoing_pieces::offer_bytes);
constexpr std::int64_t piece = 256 << 10;

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

/// Notes in `log` what may leave: a piece as "number:offset+bytes", an offered piece as "number@offset+bytes", a message as its
/// name.
struct leaving {
  outgoing_pieces all;
  std::uint64_t last = 0;
  std::string log;
  bool direct = false;

  troupe::sent_ahead add(const std::vector<at::Tensor>& tensors, const std::string& name) {
    troupe::sent_ahead ahead{{5}, {}};
    all.add(tensors, ahead, last, [this, name] { log += name + " "; });
    return ahead;
  }
  std::string next() {
    log.clear();
    while (auto step = all.next(direct, 4 * piece, piece)) {
      if (auto* send = std::get_if<outgoing_pieces::send_message>(&*step)) {
        (*send)();
        continue;
      }
      if (const auto* offered = std::get_if<troupe::tensor_offer>(&*step)) {
        log += std::to_string(offered->transfer) + "@" + std::to_string(offered->offset / outgoing_pieces::offer_bytes) + "+" +
               std::to_string(offered->bytes / outgoing_pieces::offer_bytes) + " ";
        continue;
      }
      const auto& each = std::get<tensor_piece>(*step);
      log += std::to_string(each.transfer) + ":" + std::to_string(each.offset / piece) + "+" +
             std::to_string(each.elements.nbytes() / piece) + " ";
      BOOST_TEST(each.from.value == 5u);
    }
    return log;
  }
  std::string after(int taken) {
    all.piece_taken(static_cast<std::uint64_t>(taken * piece));
    return next();
  }
  std::string after_offers(const std::vector<std::uint64_t>& taken, const std::vector<std::uint64_t>& refused = {}) {
    for (const auto number : taken) all.taken(number);
    for (const auto number : refused) all.refused(number);
    return next();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(outgoing)

BOOST_AUTO_TEST_CASE(pieces_leave_a_few_at_a_time_and_the_message_with_the_last) {  // OP-1, OP-2
  leaving to;
  const auto ahead = to.add({bytes(5 * piece), bytes(10), bytes(2 * piece)}, "message");
  BOOST_TEST(ahead.transfers == (std::vector<std::uint64_t>{1, 0, 2}), boost::test_tools::per_element());
  BOOST_TEST(to.next() == "1:0+1 1:1+1 1:2+1 1:3+1 ");
  BOOST_TEST(to.next() == "");
  BOOST_TEST(to.after(1) == "1:4+1 ");
  BOOST_TEST(to.after(3) == "2:0+1 2:1+1 message ");
  BOOST_TEST(!to.all.empty());
  BOOST_TEST(to.after(3) == "");
  BOOST_TEST(to.all.empty());
}

BOOST_AUTO_TEST_CASE(messages_leave_in_the_order_in_which_they_were_added) {  // OP-1
  leaving to;
  to.add({bytes(3 * piece)}, "first");
  const auto ahead = to.add({bytes(2 * piece)}, "second");
  BOOST_TEST(ahead.transfers == (std::vector<std::uint64_t>{2}), boost::test_tools::per_element());
  to.add({bytes(1)}, "third");
  BOOST_TEST(to.next() == "1:0+1 1:1+1 1:2+1 first 2:0+1 ");
  BOOST_TEST(to.after(1) == "2:1+1 second third ");
}

BOOST_AUTO_TEST_CASE(the_last_piece_is_what_is_left_and_offsets_begin_anew) {
  outgoing_pieces all;
  troupe::sent_ahead ahead{{5}, {}};
  std::uint64_t last = 0;
  const auto even = at::arange(2 * (piece / 8) + 3, at::kLong).reshape({-1, 1});
  const auto strided = at::arange(piece / 2, at::kInt).reshape({2, piece / 4}).t();
  all.add({even.narrow(0, 1, even.size(0) - 1), strided}, ahead, last, [] {});
  std::vector<tensor_piece> pieces;
  while (auto step = all.next(false, 4 * piece, piece))
    if (auto* each = std::get_if<tensor_piece>(&*step)) pieces.push_back(std::move(*each));
  all.piece_taken(piece);
  while (auto step = all.next(false, 4 * piece, piece))
    if (auto* each = std::get_if<tensor_piece>(&*step)) pieces.push_back(std::move(*each));
  BOOST_REQUIRE(pieces.size() == 5U);
  BOOST_TEST(pieces[0].total == even.nbytes() - 8);
  BOOST_TEST(pieces[0].elements.view(at::kLong)[0].item<std::int64_t>() == 1);
  BOOST_TEST(pieces[2].elements.nbytes() == 16U);
  BOOST_TEST(pieces[2].elements.view(at::kLong)[1].item<std::int64_t>() == even.size(0) - 1);
  BOOST_TEST(pieces[3].offset == 0U);
  BOOST_TEST(pieces[4].elements.view(at::kInt)[0].item<int>() == piece / 4);  // as they lie in memory
}

BOOST_AUTO_TEST_CASE(pieces_of_a_transfer_may_change_their_size) {
  outgoing_pieces all;
  troupe::sent_ahead ahead{{5}, {}};
  std::uint64_t last = 0;
  all.add({bytes(3 * piece)}, ahead, last, [] {});
  std::uint64_t expected = 0;
  for (const std::int64_t size : {piece, piece / 4, piece / 4, piece, piece, piece}) {
    const auto under_way = all.under_way();
    const auto step = all.next(false, 3 * piece, static_cast<std::uint64_t>(size));
    BOOST_TEST_REQUIRE(step.has_value());
    const auto& each = std::get<tensor_piece>(*step);
    BOOST_TEST(each.offset == expected);
    BOOST_TEST(each.elements.nbytes() == std::min<std::uint64_t>(size, 3 * piece - expected));
    BOOST_TEST(all.under_way() == under_way + each.elements.nbytes());
    expected += each.elements.nbytes();
    if (expected == 3 * piece) break;
  }
  BOOST_TEST(expected == 3 * piece);
  all.piece_taken(expected);
  BOOST_TEST(std::holds_alternative<outgoing_pieces::send_message>(*all.next(false, 3 * piece, piece)));
  BOOST_TEST(all.empty());
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_there_twice_leaves_once) {  // OP-3
  leaving to;
  const auto x = bytes(2 * piece);
  const auto ahead = to.add({x, x, bytes(2 * piece), x.view(at::kInt)}, "message");
  BOOST_TEST(ahead.transfers == (std::vector<std::uint64_t>{1, 1, 2, 1}), boost::test_tools::per_element());
  BOOST_TEST(to.next() == "1:0+1 1:1+1 2:0+1 2:1+1 message ");
}

BOOST_AUTO_TEST_CASE(a_tensor_and_its_first_part_leave_both) {  // OP-3
  leaving to;
  const auto x = bytes(3 * piece);
  const auto ahead = to.add({x, x.narrow(0, 0, 2 * piece)}, "message");
  BOOST_TEST(ahead.transfers == (std::vector<std::uint64_t>{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(to.next() == "1:0+1 1:1+1 1:2+1 2:0+1 ");
  BOOST_TEST(to.after(1) == "2:1+1 message ");
}

BOOST_AUTO_TEST_CASE(a_message_follows_what_was_offered_when_that_is_taken) {  // OP-1, OP-2
  leaving to;
  to.direct = true;
  to.add({bytes(5 * offer), bytes(offer)}, "first");
  to.add({bytes(offer)}, "second");
  BOOST_TEST(to.next() == "1@0+1 1@1+1 1@2+1 1@3+1 ");
  BOOST_TEST(to.after_offers({1}) == "1@4+1 ");
  BOOST_TEST(to.after_offers({1, 1}) == "2@0+1 3@0+1 ");
  BOOST_TEST(to.after_offers({3}) == "");
  BOOST_TEST(to.after_offers({1, 1}) == "");
  BOOST_TEST(!to.all.empty());
  BOOST_TEST(to.after_offers({2}) == "first second ");
  BOOST_TEST(to.all.empty());
}

BOOST_AUTO_TEST_CASE(a_transfer_that_began_goes_on_as_it_began) {
  leaving to;
  to.add({bytes(5 * piece), bytes(2 * piece)}, "message");
  BOOST_TEST(to.next() == "1:0+1 1:1+1 1:2+1 1:3+1 ");
  to.direct = true;
  BOOST_TEST(to.after(4) == "1:4+1 2@0+0 ");
  BOOST_TEST(to.after(1) == "");
  BOOST_TEST(to.after_offers({2}) == "message ");
}

BOOST_AUTO_TEST_CASE(a_refused_transfer_leaves_anew_when_no_offer_of_it_is_on_its_way) {  // OP-1, OP-4
  leaving to;
  to.direct = true;
  to.add({bytes(5 * offer), bytes(2 * piece)}, "message");
  BOOST_TEST(to.next() == "1@0+1 1@1+1 1@2+1 1@3+1 ");
  BOOST_TEST(to.after_offers({}, {1}) == "2@0+0 ");
  BOOST_TEST(to.after_offers({1}, {1}) == "");
  BOOST_TEST(to.after_offers({1}) == "1:0+1 1:1+1 1:2+1 1:3+1 ");
  BOOST_TEST(to.after_offers({2}) == "");
  std::string rest;
  for (int i = 4; i < 5 * offer / piece; ++i) rest += to.after(1);
  BOOST_TEST(rest.ends_with(" 1:78+1 1:79+1 message "));
  to.after(4);
  BOOST_TEST(to.all.empty());
}

BOOST_AUTO_TEST_CASE(what_is_offered_stays_until_it_is_answered) {  // OP-4
  for (const bool taken : {true, false}) {
    leaving to;
    to.direct = true;
    bool freed = false;
    std::vector<char> elements(2 * offer);
    to.add({at::from_blob(
             elements.data(), {2 * offer}, [&](void*) { freed = true; }, at::kByte)},
           "message");
    BOOST_TEST(to.next() == "1@0+1 1@1+1 ");
    to.after_offers({1});
    BOOST_TEST(!freed);
    if (taken)
      BOOST_TEST(to.after_offers({1}) == "message ");
    else
      to.all = {};
    BOOST_TEST(freed);
  }
}

BOOST_AUTO_TEST_CASE(an_offer_says_where_its_elements_are) {
  outgoing_pieces all;
  troupe::sent_ahead ahead{{5}, {}};
  std::uint64_t last = 6;
  const auto x = at::zeros({3, offer}, at::kByte);
  all.add({x.narrow(0, 1, 2).narrow(1, 0, offer)}, ahead, last, [] {});
  auto next = all.next(true, 4 * piece, piece);
  BOOST_REQUIRE(next.has_value());
  next = all.next(true, 4 * piece, piece);
  const auto& second = std::get<troupe::tensor_offer>(*next);
  BOOST_TEST(second.from.value == 5u);
  BOOST_TEST(second.transfer == 7u);
  BOOST_TEST(second.total == 2 * outgoing_pieces::offer_bytes);
  BOOST_TEST(second.address == reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) + 2 * outgoing_pieces::offer_bytes);
}

BOOST_AUTO_TEST_CASE(small_tensors_are_not_large) {
  BOOST_TEST(!outgoing_pieces::any_large({bytes(piece / 2), at::Tensor(), bytes(piece / 2)}));
  BOOST_TEST(outgoing_pieces::any_large({bytes(piece / 2), at::Tensor(), bytes(piece / 2 + 1)}));
  BOOST_TEST(!outgoing_pieces::any_large(std::vector<at::Tensor>(100, bytes(piece / 5))));
  BOOST_TEST(outgoing_pieces::any_large({bytes(1), bytes(2 * piece)}));
}

BOOST_AUTO_TEST_SUITE_END()
