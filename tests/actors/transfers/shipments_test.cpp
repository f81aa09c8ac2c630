// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/shipments.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "simulation/event_queue.hpp"
#include "simulation/simulated_network.hpp"

BOOST_AUTO_TEST_SUITE(shipments_of_a_node)

namespace {

using namespace troupe;
using namespace troupe::transfers;
using answer = offer_answered::answer;

constexpr auto offer = shipments::offer_bytes;
constexpr auto piece = piece_window::large_piece;
constexpr node_id there{7};

/// The failure of a copy to the host, if it has failed.
std::optional<error> outcome(bool has_failed) {
  return has_failed ? std::optional(error(errc::function_failed, "broken")) : std::nullopt;
}

/// Notes in `log` what leaves: a piece as "number:offset+bytes", an offered piece as "number@offset+bytes", a message as "m" and its number,
/// a message that fails as "fail" and its number,
/// transfers that are let go of as "-number", and transfers that are copied to the host as "host number".
struct shipping_node {
  shipments all;
  std::deque<std::uint64_t> pieces;  // without an answer
  std::int64_t now = 1;

  static std::string text(const transfer_section& of, char how, std::uint64_t unit) {
    return std::to_string(of.transfer) + how + std::to_string(of.offset / unit) + "+" + std::to_string(of.bytes / unit) + " ";
  }
  std::string on(const shipping_event& event) {
    std::string log;
    for (const auto& each : all.on(event, now)) {
      if (const auto* sent = std::get_if<send_piece>(&each)) {
        pieces.push_back(sent->piece);
        log += text(*sent, ':', piece);
      } else if (const auto* offered = std::get_if<send_offer>(&each)) {
        log += text(*offered, '@', offer);
      } else if (const auto* message = std::get_if<send_message>(&each)) {
        log += "m" + std::to_string(message->message) + " ";
      } else if (const auto* dropped = std::get_if<drop_message>(&each)) {
        log += "drop" + std::to_string(dropped->message) + " ";
      } else if (const auto* failed = std::get_if<fail_message>(&each)) {
        log += "fail" + std::to_string(failed->message) + " ";
      } else if (const auto* free = std::get_if<let_go>(&each)) {
        log += "-" + std::to_string(free->transfer) + " ";
      } else if (const auto* copied = std::get_if<copy_to_host>(&each)) {
        log += "host" + std::to_string(copied->transfer) + " ";
      } else {
        log += "mark? ";
      }
    }
    return log;
  }
  std::string ship(std::vector<transfer> ahead, std::uint64_t message, bool may_read = false) {
    return on(shipment_begun{there, std::move(ahead), message, may_read});
  }
  std::string taken(int count = 1) {
    std::string log;
    for (; count > 0; --count) {
      const auto number = pieces.front();
      pieces.pop_front();
      now += 100'000;
      log += on(piece_answered{there, number, now});
    }
    return log;
  }
  std::string answered(std::uint64_t transfer, answer how = answer::taken) { return on(offer_answered{there, transfer, how}); }
  std::string copied(std::uint64_t transfer, bool failed = false) {
    return on(copied_to_host{there, transfer, outcome(failed)});
  }
};

/// A node whose memory `there` reads.
struct offering_node : shipping_node {
  offering_node() {
    ship({}, 100, true);
    on(mark_drawn{there});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(pieces_leave_a_few_at_a_time_and_the_message_with_the_last) {  // OP-1, OP-2
  shipping_node here;
  BOOST_TEST(here.ship({{1, 5 * piece}, {2, 2 * piece}}, 3) == "1:0+1 1:1+1 1:2+1 1:3+1 ");
  BOOST_TEST(here.taken() == "1:4+1 -1 ");
  BOOST_TEST(here.taken(3) == "2:0+1 2:1+1 -2 m3 ");
  BOOST_TEST(!here.all.is_idle());
  BOOST_TEST(here.taken(3) == "");
  BOOST_TEST(here.all.is_idle());
}

BOOST_AUTO_TEST_CASE(messages_leave_in_the_order_in_which_they_were_shipped) {  // OP-1
  shipping_node here;
  BOOST_TEST(here.ship({{1, 3 * piece}}, 2) == "1:0+1 1:1+1 1:2+1 -1 m2 ");
  BOOST_TEST(here.ship({{3, 2 * piece}}, 4) == "3:0+1 ");
  BOOST_TEST(here.ship({}, 5) == "");
  BOOST_TEST(here.taken() == "3:1+1 -3 m4 m5 ");
}

BOOST_AUTO_TEST_CASE(the_last_piece_is_what_is_left) {
  shipments all;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sections;
  for (const auto& each : all.on(shipment_begun{there, {{1, piece + 16}}, 2, false}, 1))
    if (const auto* sent = std::get_if<send_piece>(&each)) {
      sections.emplace_back(sent->offset, sent->bytes);
      BOOST_TEST(sent->total == piece + 16);
    }
  BOOST_TEST((sections == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, piece}, {piece, 16}}));
}

BOOST_AUTO_TEST_CASE(a_node_is_asked_for_a_mark_once_and_offered_to_from_its_answer_on) {  // OP-4
  shipping_node here;
  BOOST_TEST(here.on(mark_drawn{there}) == "");  // it was not asked
  BOOST_TEST(here.ship({{1, piece}}, 2) == "1:0+1 -1 m2 ");
  BOOST_TEST(here.ship({{3, piece}}, 4, true) == "mark? 3:0+1 -3 m4 ");
  BOOST_TEST(here.ship({{5, piece}}, 6, true) == "5:0+1 -5 m6 ");
  BOOST_TEST(here.on(mark_drawn{there}) == "");
  BOOST_TEST(here.ship({{7, offer}}, 8, true) == "7@0+1 ");
  BOOST_TEST(here.answered(7) == "-7 m8 ");
  here.on(receiver_down{there});
  BOOST_TEST(here.ship({{9, piece}}, 10, true) == "mark? 9:0+1 -9 m10 ");
}

BOOST_AUTO_TEST_CASE(a_message_follows_what_was_offered_when_that_is_taken) {  // OP-1, OP-2, OP-3
  offering_node here;
  BOOST_TEST(here.ship({{1, 5 * offer}, {2, offer}}, 3) == "1@0+1 1@1+1 1@2+1 1@3+1 ");
  BOOST_TEST(here.ship({{4, offer}}, 5) == "");
  BOOST_TEST(here.answered(1) == "1@4+1 ");
  BOOST_TEST(here.answered(1) == "2@0+1 ");
  BOOST_TEST(here.answered(1) == "4@0+1 ");
  BOOST_TEST(here.answered(4) == "-4 ");
  BOOST_TEST(here.answered(1) == "");
  BOOST_TEST(here.answered(1) == "-1 ");
  BOOST_TEST(here.answered(2) == "-2 m3 m5 ");
  BOOST_TEST(here.all.is_idle());
}

BOOST_AUTO_TEST_CASE(a_message_follows_at_once_what_the_receiver_reads_at_once) {  // OP-1, OP-3
  shipping_node here;
  here.ship({}, 100, true);
  here.on(mark_drawn{there, 2 * piece});
  BOOST_TEST(here.ship({{1, piece}}, 2) == "1@0+0 ");  // the receiver has taken no offer yet
  BOOST_TEST(here.answered(1) == "-1 m2 ");
  BOOST_TEST(here.ship({{3, piece}, {4, 2 * piece}}, 5) == "3@0+0 4@0+0 m5 ");
  BOOST_TEST(here.ship({{6, 2 * piece + 1}, {7, piece}}, 8) == "6@0+0 7@0+0 ");  // 6 is too large
  BOOST_TEST(here.ship({{9, piece}}, 10) == "");                                 // four offers have no answer
  BOOST_TEST(here.answered(3) == "-3 9@0+0 ");
  BOOST_TEST(here.answered(6) == "-6 m8 m10 ");
  BOOST_TEST(here.answered(4) == "-4 ");
  BOOST_TEST(here.answered(7, answer::refused) == "-7 ");  // its message has left
  BOOST_TEST(here.ship({{20, piece}}, 21) == "20@0+0 ");   // waits, because the last answer was a refusal
  BOOST_TEST(here.answered(20) == "-20 m21 ");
  BOOST_TEST(!here.all.is_idle());
  BOOST_TEST(here.answered(9, answer::unreadable) == "-9 ");
  BOOST_TEST(here.all.is_idle());
  BOOST_TEST(here.ship({{11, piece}}, 12) == "11:0+1 -11 m12 ");
}

BOOST_AUTO_TEST_CASE(a_node_that_reads_much_at_once_is_offered_no_more_than_fits_in_one_offer) {
  shipping_node here;
  here.ship({}, 100, true);
  here.on(mark_drawn{there, 100 * offer});
  here.ship({{1, piece}}, 2);
  here.answered(1);
  BOOST_TEST(here.ship({{3, 2 * offer}}, 4) == "3@0+1 3@1+1 ");
  BOOST_TEST(here.ship({{5, offer}}, 6) == "5@0+1 ");
  BOOST_TEST(here.answered(3) == "");
  BOOST_TEST(here.answered(3) == "-3 m4 m6 ");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_began_goes_on_as_it_began) {
  shipping_node here;
  BOOST_TEST(here.ship({{1, 6 * piece}, {2, 2 * piece}}, 3, true) == "mark? 1:0+1 1:1+1 1:2+1 1:3+1 ");
  here.on(mark_drawn{there});
  BOOST_TEST(here.taken(2) == "1:4+1 1:5+1 -1 2@0+0 ");
  BOOST_TEST(here.answered(2) == "-2 m3 ");
}

BOOST_AUTO_TEST_CASE(a_refused_transfer_leaves_anew_when_no_offer_of_it_is_on_its_way) {  // OP-1, OP-3
  offering_node here;
  BOOST_TEST(here.ship({{1, 5 * offer}, {2, 2 * piece}}, 3) == "1@0+1 1@1+1 1@2+1 1@3+1 ");
  BOOST_TEST(here.answered(1, answer::refused) == "2@0+0 ");
  BOOST_TEST(here.answered(1) == "");
  BOOST_TEST(here.answered(1, answer::refused) == "");
  BOOST_TEST(here.answered(1) == "1:0+1 1:1+1 1:2+1 1:3+1 ");
  BOOST_TEST(here.answered(2) == "-2 ");
  std::string rest;
  while (!here.pieces.empty()) rest += here.taken();
  BOOST_TEST(rest.ends_with(" 1:79+1 -1 m3 "), rest);
  BOOST_TEST(here.all.is_idle());
}

BOOST_AUTO_TEST_CASE(after_an_unreadable_offer_every_transfer_leaves_in_pieces) {  // OP-4
  offering_node here;
  BOOST_TEST(here.ship({{1, 3 * offer}, {2, 3 * offer}}, 3) == "1@0+1 1@1+1 1@2+1 2@0+1 ");
  BOOST_TEST(here.answered(1, answer::unreadable) == "");
  BOOST_TEST(here.answered(1, answer::unreadable) == "");
  BOOST_TEST(here.answered(2, answer::unreadable) == "2:0+1 2:1+1 2:2+1 2:3+1 ");
  BOOST_TEST(here.answered(1) == "");
  BOOST_TEST(here.ship({{4, piece}}, 5, true) == "");  // not asked again
  std::string rest;
  while (!here.pieces.empty()) rest += here.taken();
  BOOST_TEST(rest.find('@') == std::string::npos, rest);
  BOOST_TEST(rest.find("m3 ") < rest.find("m5 "), rest);
}

BOOST_AUTO_TEST_CASE(what_waits_for_a_node_that_goes_down_is_dropped) {  // OP-5
  offering_node here;
  here.ship({{1, 5 * offer}, {2, piece}}, 3);
  BOOST_TEST(here.on(receiver_down{there}) == "-1 -2 drop3 ");
  BOOST_TEST(here.all.is_idle());
  BOOST_TEST(here.answered(1) == "");
  here.ship({{4, 8 * piece}}, 5);
  const auto late = here.pieces.front();
  here.on(receiver_down{there});
  BOOST_TEST(here.on(piece_answered{there, late, 5}) == "");
  here.ship({}, 6, true);
  here.on(mark_drawn{there, offer});
  here.ship({{7, piece}}, 8);
  here.answered(7);
  here.ship({{9, piece}, {10, 2 * offer}}, 11);
  BOOST_TEST(here.on(receiver_down{there}) == "-9 -10 drop11 ");
  BOOST_TEST(here.answered(9) == "");
}

BOOST_AUTO_TEST_CASE(a_transfer_on_a_device_is_offered_as_a_whole) {  // OP-6
  offering_node here;
  BOOST_TEST(here.ship({{1, 7 * offer, true}}, 2) == "1@0+7 ");
  BOOST_TEST(here.answered(1) == "-1 m2 ");
}

BOOST_AUTO_TEST_CASE(a_transfer_on_a_device_is_copied_to_the_host_for_a_node_that_reads_no_memory) {  // OP-6
  shipping_node here;
  BOOST_TEST(here.ship({{1, 2 * piece, true}, {2, piece}}, 3, true) == "mark? host1 2:0+1 -2 ");
  BOOST_TEST(here.copied(2) == "");  // not asked for
  BOOST_TEST(here.copied(1) == "1:0+1 1:1+1 -1 m3 ");
  BOOST_TEST(here.copied(1) == "");
  here.on(mark_drawn{there});
  BOOST_TEST(here.ship({{4, 2 * piece, true}}, 5, true) == "4@0+0 ");
}

BOOST_AUTO_TEST_CASE(a_copy_on_the_host_is_offered_if_the_node_reads_it) {
  shipping_node here;
  BOOST_TEST(here.ship({{1, 2 * offer, true}}, 2, true) == "mark? host1 ");
  here.on(mark_drawn{there});
  BOOST_TEST(here.copied(1) == "1@0+1 1@1+1 ");
}

BOOST_AUTO_TEST_CASE(a_node_that_can_not_read_devices_still_reads_the_host) {  // OP-4
  offering_node here;
  BOOST_TEST(here.ship({{1, 4 * offer, true}, {2, 2 * offer}, {3, offer, true}}, 4) == "1@0+4 2@0+1 2@1+1 3@0+1 ");
  BOOST_TEST(here.answered(1, answer::unreadable) == "host1 ");
  BOOST_TEST(here.answered(3) == "host3 ");  // it was read, and counts no more
  BOOST_TEST(here.copied(1) == "1@0+1 1@1+1 ");
  BOOST_TEST(here.answered(2) == "1@2+1 ");
  BOOST_TEST(here.ship({{5, offer, true}}, 6) == "");
  BOOST_TEST(here.answered(2) == "-2 1@3+1 host5 ");
}

BOOST_AUTO_TEST_CASE(a_node_that_can_not_read_the_host_still_reads_devices) {  // OP-4
  offering_node here;
  BOOST_TEST(here.ship({{1, piece}, {2, offer, true}}, 3) == "1@0+0 2@0+1 ");
  BOOST_TEST(here.answered(1, answer::unreadable) == "1:0+1 -1 ");
  BOOST_TEST(here.answered(2) == "-2 m3 ");
  BOOST_TEST(here.ship({{4, offer, true}}, 5) == "4@0+1 ");
}

BOOST_AUTO_TEST_CASE(a_node_may_be_offered_nothing_but_devices) {
  shipping_node here;
  here.ship({}, 100, true);
  here.on(mark_drawn{there, 0, true});
  BOOST_TEST(here.ship({{1, piece}, {2, offer, true}}, 3) == "1:0+1 -1 2@0+1 ");
}

BOOST_AUTO_TEST_CASE(a_refused_transfer_on_a_device_is_copied_alone) {
  offering_node here;
  BOOST_TEST(here.ship({{1, offer, true}, {2, offer, true}}, 3) == "1@0+1 2@0+1 ");
  BOOST_TEST(here.answered(1, answer::refused) == "host1 ");
  BOOST_TEST(here.answered(2) == "-2 ");
  BOOST_TEST(here.copied(1) == "1@0+1 ");
  BOOST_TEST(here.answered(1) == "-1 m3 ");
}

BOOST_AUTO_TEST_CASE(a_late_device_holds_up_no_other_message) {  // OP-1, OP-2
  offering_node here;
  for (std::uint64_t i = 10; i < 20; i += 2)
    BOOST_TEST(here.ship({{i, offer, true, 1}}, i + 1) == (i < 18 ? std::to_string(i) + "@0+1 " : ""));
  BOOST_TEST(here.ship({{21, 2 * offer}}, 22) == "21@0+1 21@1+1 ");
  BOOST_TEST(here.ship({}, 23) == "");  // behind a transfer of the host
  here.answered(21);
  BOOST_TEST(here.answered(21) == "-21 m22 m23 ");
  BOOST_TEST(here.ship({{24, offer, true, 0}}, 25) == "24@0+1 ");
  BOOST_TEST(here.answered(24) == "-24 m25 ");
  BOOST_TEST(here.answered(12) == "-12 m13 18@0+1 ");
  BOOST_TEST(here.answered(10, answer::refused) == "host10 ");
  BOOST_TEST(here.ship({}, 26) == "m26 ");
  BOOST_TEST(here.copied(10) == "10@0+1 ");
  BOOST_TEST(here.ship({}, 27) == "");  // the transfer is of the host now
  BOOST_TEST(here.answered(10) == "-10 m11 m27 ");
}

BOOST_AUTO_TEST_CASE(a_message_of_which_a_copy_has_failed_fails) {  // OP-7
  shipping_node here;
  BOOST_TEST(here.ship({{1, offer, true}}, 2) == "host1 ");
  BOOST_TEST(!here.all.is_idle());
  BOOST_TEST(here.copied(1, true) == "fail2 -1 ");
  BOOST_TEST(here.all.is_idle());
}

BOOST_AUTO_TEST_CASE(a_message_that_fails_holds_what_is_offered_or_copied_and_stops_no_other_message) {  // OP-3, OP-7
  offering_node here;
  BOOST_TEST(here.ship({{1, offer, true}}, 2) == "1@0+1 ");
  BOOST_TEST(here.ship({{3, 2 * offer}, {4, offer, true, 1}, {5, offer, true, 2}, {6, 9 * offer}}, 7) ==
             "3@0+1 3@1+1 4@0+1 5@0+1 6@0+1 6@1+1 ");
  BOOST_TEST(here.ship({}, 8) == "m8 ");
  BOOST_TEST(here.answered(4, answer::refused) == "host4 ");
  BOOST_TEST(here.answered(5, answer::refused) == "host5 ");
  BOOST_TEST(here.answered(3) == "6@2+1 ");
  BOOST_TEST(here.copied(4, true) == "fail7 -4 ");
  BOOST_TEST(here.answered(3) == "-3 ");
  BOOST_TEST(here.answered(6) + here.answered(6) + here.answered(6, answer::refused) == "-6 ");
  BOOST_TEST(here.answered(1) == "-1 m2 ");
  BOOST_TEST(!here.all.is_idle());
  BOOST_TEST(here.copied(5) == "-5 ");
  BOOST_TEST(here.all.is_idle());
}

BOOST_AUTO_TEST_CASE(elements_leave_as_they_come_and_hold_up_no_other_message) {  // OP-1, OP-8
  shipping_node here;
  const auto came = [&](std::uint64_t end, bool fails = false) {
    return here.on(elements_came{there, 1, end, outcome(fails)});
  };
  BOOST_TEST(here.ship({{1, 3 * piece, false, 0, true}}, 2) == "");
  BOOST_TEST(here.ship({{3, piece}}, 4) == "3:0+1 -3 m4 ");
  BOOST_TEST(came(piece) == "1:0+1 ");
  BOOST_TEST(came(piece) == "");
  BOOST_TEST(here.ship({}, 5) == "m5 ");
  BOOST_TEST(came(3 * piece) == "1:1+1 1:2+1 -1 m2 ");
  BOOST_TEST(came(3 * piece) == "");
}

BOOST_AUTO_TEST_CASE(a_message_waits_for_the_answers_to_parts_that_are_offered) {  // OP-1
  shipping_node here;
  here.ship({}, 100, true);
  here.on(mark_drawn{there, 4 * piece});
  BOOST_TEST(here.ship({{1, piece}}, 2) == "1@0+0 ");
  BOOST_TEST(here.answered(1) == "-1 m2 ");  // now it has read
  BOOST_TEST(here.ship({{3, 2 * piece, false, 0, true}}, 4) == "");
  BOOST_TEST(here.on(elements_came{there, 3, piece, {}}) == "3@0+0 ");
  BOOST_TEST(here.on(elements_came{there, 3, 2 * piece, {}}) == "3@0+0 ");
  BOOST_TEST(here.answered(3) == "");
  BOOST_TEST(here.answered(3) == "-3 m4 ");
}

BOOST_AUTO_TEST_CASE(a_message_fails_whose_elements_do_not_come) {  // OP-7
  shipping_node here;
  BOOST_TEST(here.ship({{1, 3 * piece, false, 0, true}, {2, piece}}, 3) == "2:0+1 -2 ");
  BOOST_TEST(here.on(elements_came{there, 1, piece, {}}) == "1:0+1 ");
  BOOST_TEST(here.on(elements_came{there, 1, 2 * piece, outcome(true)}) == "fail3 -1 ");
  BOOST_TEST(here.on(elements_came{there, 1, 3 * piece, outcome(true)}) == "");
}

BOOST_AUTO_TEST_CASE(a_few_transfers_are_copied_at_a_time) {  // OP-2
  shipping_node here;
  constexpr std::uint64_t many = shipments::most_copies + 2;
  for (std::uint64_t i = 1; i <= many; ++i)
    BOOST_TEST(here.ship({{i, offer, true}}, 100 + i) == (i + 2 <= many ? "host" + std::to_string(i) + " " : ""));
  BOOST_TEST(here.ship({{50, offer, true, 1}}, 51) == "host50 ");
  BOOST_TEST(here.copied(1, true) == "fail101 -1 host5 ");
  BOOST_TEST(here.on(receiver_down{there}).size() > 0U);
  BOOST_TEST(here.ship({{60, offer, true}}, 61) == "host60 ");
}

BOOST_AUTO_TEST_CASE(a_copy_for_a_node_that_went_down_changes_nothing) {  // OP-5
  shipping_node here;
  BOOST_TEST(here.ship({{1, offer, true}}, 2) == "host1 ");
  BOOST_TEST(here.on(receiver_down{there}) == "-1 drop2 ");
  BOOST_TEST(here.copied(1) == "");
}

namespace {

/// Nodes to which drawn shipments leave, and what has become of each. Checks the promises after each event.
struct drawn_shipments {
  explicit drawn_shipments(std::uint64_t seed) : random(seed) {}

  struct receiver {                                             // of a node
    std::deque<std::uint64_t> messages;                         // that have not left
    std::map<std::uint64_t, std::vector<std::uint64_t>> ahead;  // transfers of these
    std::map<std::uint64_t, transfer_section> pieces;           // without an answer
    std::vector<transfer_section> offers;                       // without an answer
    std::vector<std::uint64_t> copies;                          // that are not done
    bool was_asked = false;
    bool may_offer = false;
    bool has_read = false;
    std::uint64_t at_once = 0;
    bool may_offer_devices = false;
  };

  std::uint64_t below(std::uint64_t limit) { return random() % limit; }
  /// The device of the transfer, or -1.
  int device_of(std::uint64_t number) const {
    const auto found = on_device.find(number);
    return found == on_device.end() ? -1 : found->second;
  }

  void on(const shipping_event& event) {
    for (const auto& each : all.on(event, now)) std::visit([this](const auto& effect) { note(effect); }, each);
    const auto is_busy = [](const auto& each) {
      const auto& at = each.second;
      return !at.messages.empty() || !at.pieces.empty() || !at.offers.empty() || !at.copies.empty();
    };
    if (!is_going_down) BOOST_REQUIRE(all.is_idle() == std::none_of(receivers.begin(), receivers.end(), is_busy));
  }
  void note(const ask_for_mark& what) { BOOST_REQUIRE(!std::exchange(receivers[what.of].was_asked, true)); }  // OP-4
  void left(const transfer_section& of) {
    BOOST_REQUIRE(of.bytes > 0 && of.offset + of.bytes <= of.total && of.total == sizes.at(of.transfer));
    BOOST_REQUIRE(held.contains(of.transfer));
    BOOST_REQUIRE(!failed.contains(of.transfer));                                                 // OP-7
    BOOST_REQUIRE((!there.contains(of.transfer) || of.offset + of.bytes <= there[of.transfer]));  // OP-8
  }
  void note(const send_piece& what) {
    left(what);
    auto& at = receivers[what.to];
    BOOST_REQUIRE(!on_device.contains(what.transfer));  // OP-6
    BOOST_REQUIRE(at.pieces.emplace(what.piece, what).second);
    auto& reached = sent[what.transfer];
    BOOST_REQUIRE(what.offset == reached);  // nothing is left out, nothing leaves twice
    reached += what.bytes;
  }
  void note(const send_offer& what) {
    left(what);
    auto& at = receivers[what.to];
    if (on_device.contains(what.transfer))
      BOOST_REQUIRE((at.may_offer_devices && what.bytes == what.total));  // OP-4, OP-6
    else
      BOOST_REQUIRE(at.may_offer);
    at.offers.push_back(what);
    ++offers_left;
    const auto counts = [&](const auto& each) { return device_of(each.transfer) == device_of(what.transfer); };
    BOOST_REQUIRE(std::count_if(at.offers.begin(), at.offers.end(), counts) <= shipments::most_offers);  // OP-2
  }
  void note(const copy_to_host& what) {
    auto& at = receivers[what.to];
    BOOST_REQUIRE((on_device.contains(what.transfer) && held.contains(what.transfer)));
    at.copies.push_back(what.transfer);
    const auto counts = [&](auto each) { return device_of(each) == device_of(what.transfer); };
    BOOST_REQUIRE(std::count_if(at.copies.begin(), at.copies.end(), counts) <= shipments::most_copies);  // OP-2
    BOOST_REQUIRE(!failed.contains(what.transfer));                                                      // OP-7
    ++copies_made;
  }
  void note(const send_message& what) {  // OP-1
    auto& at = receivers[to.at(what.message)];
    const auto left = std::find(at.messages.begin(), at.messages.end(), what.message);
    BOOST_REQUIRE(left != at.messages.end());
    BOOST_REQUIRE(std::all_of(at.messages.begin(), left, [&](auto earlier) {
      const auto& transfers = at.ahead.at(earlier);
      return std::any_of(transfers.begin(), transfers.end(), [&](auto number) {
        return held.contains(number) && (on_device.contains(number) || is_coming(number));
      });
    }));
    overtook += left != at.messages.begin() ? 1 : 0;
    at.messages.erase(left);
    for (const auto number : at.ahead.at(what.message)) {
      const auto is_of = [&](const transfer_section& each) { return each.transfer == number; };
      const auto offered = std::find_if(at.offers.begin(), at.offers.end(), is_of);
      const bool is_read_first = offered != at.offers.end() && !on_device.contains(number) && at.has_read &&
                                 offered->bytes == offered->total && offered->total <= at.at_once && offered->total <= offer;
      BOOST_REQUIRE(is_read_first || !held.contains(number));
      if (is_read_first) has_left.insert(number);
    }
    ++messages_left;
  }
  void note(const drop_message& what) {
    auto& at = receivers[to.at(what.message)];
    BOOST_REQUIRE(std::erase(at.messages, what.message) == 1);
  }
  void note(const fail_message& what) {  // OP-7
    auto& at = receivers[to.at(what.message)];
    BOOST_REQUIRE(std::erase(at.messages, what.message) == 1);
    const auto& ahead = at.ahead.at(what.message);
    BOOST_REQUIRE(std::any_of(ahead.begin(), ahead.end(), [&](auto number) { return failed.contains(number); }));
    failed.insert(ahead.begin(), ahead.end());
    ++messages_failed;
  }
  void note(const let_go& what) {
    BOOST_REQUIRE(held.erase(what.transfer) == 1);
    if (is_going_down) return;
    const auto& at = receivers[owner.at(what.transfer)];
    const auto is_of = [&](const transfer_section& each) { return each.transfer == what.transfer; };
    BOOST_REQUIRE(std::none_of(at.offers.begin(), at.offers.end(), is_of));  // OP-3
    BOOST_REQUIRE((failed.contains(what.transfer) || has_left.contains(what.transfer) ||
                   sent[what.transfer] + taken[what.transfer] == sizes.at(what.transfer)));
  }

  void ship() {
    const node_id whom{1 + below(3)};
    shipment_begun what{whom, {}, ++last, below(2) == 0};
    for (auto count = below(4); count > 0; --count) {
      const auto bytes = 1 + below(below(3) == 0 ? 6 * offer : 3 * piece);
      what.ahead.push_back({++last, bytes, below(4) == 0, 0});
      if (what.ahead.back().on_device) on_device[last] = what.ahead.back().device = static_cast<int>(below(2));
      if (!what.ahead.back().on_device && below(4) == 0) {
        what.ahead.back().comes = true;
        there[last] = 0;
      }
      sizes[last] = bytes;
      owner[last] = whom;
      held.insert(last);
    }
    what.message = ++last;
    to[last] = whom;
    auto& at = receivers[whom];
    at.messages.push_back(last);
    for (const auto& each : what.ahead) at.ahead[last].push_back(each.number);
    at.ahead[last];
    on(what);
  }
  void answer_piece(node_id who, receiver& at) {
    if (at.pieces.empty()) return;
    auto which = std::next(at.pieces.begin(), static_cast<std::ptrdiff_t>(below(at.pieces.size())));
    const auto number = which->first;
    at.pieces.erase(which);
    on(piece_answered{who, number, below(8) == 0 ? std::nullopt : std::optional<std::int64_t>(now - 1000)});
  }
  void answer_offer(node_id who, receiver& at) {
    if (at.offers.empty()) return;
    const auto which = at.offers.begin() + static_cast<std::ptrdiff_t>(below(at.offers.size()));
    const auto what = *which;
    at.offers.erase(which);
    const auto how = below(10) == 0 ? answer::unreadable : below(8) == 0 ? answer::refused : answer::taken;
    const bool of_device = on_device.contains(what.transfer);
    if (how == answer::unreadable) (of_device ? at.may_offer_devices : at.may_offer) = false;
    if (!of_device) at.has_read = how == answer::taken;
    if (how == answer::unreadable)
      for (auto& [number, node] : owner)
        if (node == who && on_device.contains(number) == of_device) {  // what is in offers begins anew
          taken[number] = 0;
          refused.insert(number);
        }
    if (how == answer::refused) refused.insert(what.transfer);
    if (how == answer::taken && !refused.contains(what.transfer)) taken[what.transfer] += what.bytes;
    if (how == answer::refused) taken[what.transfer] = 0;
    on(offer_answered{who, what.transfer, how});
  }
  void end_copy(node_id who, receiver& at) {
    if (at.copies.empty()) return;
    const auto which = at.copies.begin() + static_cast<std::ptrdiff_t>(below(at.copies.size()));
    const auto number = *which;
    at.copies.erase(which);
    on_device.erase(number);
    refused.erase(number);
    taken[number] = 0;
    const bool fails = below(10) == 0;
    if (fails) failed.insert(number);
    on(copied_to_host{who, number, outcome(fails)});
  }
  bool is_coming(std::uint64_t number) const {
    const auto found = there.find(number);
    return found != there.end() && found->second < sizes.at(number);
  }
  /// Elements of a drawn transfer come to the host, or the copy fails.
  void come() {
    std::vector<std::uint64_t> some;
    for (const auto& [number, end] : there)
      if (is_coming(number)) some.push_back(number);
    if (some.empty()) return;
    const auto number = some[below(some.size())];
    const bool fails = below(20) == 0;
    if (fails && held.contains(number)) failed.insert(number);
    there[number] = fails ? sizes[number] : std::min(sizes[number], there[number] + 1 + below(2 * offer));
    on(elements_came{owner.at(number), number, there[number], outcome(fails)});
    ++parts_came;
  }
  void go_down(node_id who, receiver& at) {
    is_going_down = true;
    on(receiver_down{who});
    is_going_down = false;
    BOOST_REQUIRE(at.messages.empty());
    BOOST_REQUIRE(std::none_of(held.begin(), held.end(), [&](auto number) { return owner.at(number) == who; }));
    const auto pieces = std::exchange(at.pieces, {});
    const auto copies = std::exchange(at.copies, {});
    at = {};
    for (const auto& [number, each] : pieces) on(piece_answered{who, number, now});  // OP-5: too late
    for (const auto number : copies) on(copied_to_host{who, number, {}});
  }
  void step() {
    now += static_cast<std::int64_t>(below(2'000'000));
    const node_id who{1 + below(3)};
    auto& at = receivers[who];
    switch (below(20)) {
      case 0:
      case 1:
        return ship();
      case 2:
        if (at.was_asked && has_drawn.insert(who).second) {
          at.may_offer = at.may_offer_devices = true;
          at.at_once = below(2) * below(2 * offer);
          return on(mark_drawn{who, at.at_once});
        }
        return on(mark_drawn{who, 5});  // unasked, or twice
      case 3:
        if (below(10) == 0) {
          go_down(who, at);
          has_drawn.erase(who);
        }
        return;
      default:
        if (below(4) == 0) return below(2) == 0 ? come() : end_copy(who, at);
        return below(2) == 0 ? answer_piece(who, at) : answer_offer(who, at);
    }
  }
  void settle() {  // every node answers
    for (bool more = true; more;) {
      more = false;
      for (auto& [who, at] : receivers)
        while (!at.pieces.empty() || !at.offers.empty() || !at.copies.empty()) {
          more = true;
          now += 1'000'000;
          answer_piece(who, at);
          answer_offer(who, at);
          end_copy(who, at);
        }
      for (; std::any_of(there.begin(), there.end(), [&](const auto& each) { return is_coming(each.first); }); more = true)
        come();
    }
    BOOST_REQUIRE(all.is_idle());
    BOOST_REQUIRE(held.empty());
    for (const auto& [who, at] : receivers) BOOST_REQUIRE(at.messages.empty());
  }

  std::mt19937_64 random;
  shipments all;
  std::int64_t now = 1;
  std::uint64_t last = 0;
  std::uint64_t messages_left = 0;
  std::uint64_t messages_failed = 0;
  std::uint64_t offers_left = 0;
  std::uint64_t copies_made = 0;
  std::uint64_t parts_came = 0;
  std::uint64_t overtook = 0;  // messages that left before earlier ones
  bool is_going_down = false;
  std::map<node_id, receiver> receivers;
  std::map<std::uint64_t, node_id> to;     // of messages
  std::map<std::uint64_t, node_id> owner;  // of transfers
  std::map<std::uint64_t, std::uint64_t> sizes;
  std::map<std::uint64_t, std::uint64_t> there;  // bytes that have come, of transfers that come
  std::map<std::uint64_t, std::uint64_t> sent;   // bytes in pieces, in their order
  std::map<std::uint64_t, std::uint64_t> taken;  // bytes in offers
  std::set<std::uint64_t> held;
  std::set<std::uint64_t> has_left;  // transfers for which their message did not wait
  std::set<std::uint64_t> refused;
  std::map<std::uint64_t, int> on_device;  // the devices of transfers that are on one
  std::set<std::uint64_t> failed;          // copies to the host
  std::set<node_id> has_drawn;
};

}  // namespace

BOOST_AUTO_TEST_CASE(hold_their_promises_whatever_the_receivers_answer,
                     *boost::unit_test::label("explored")) {  // OP-1, OP-2, OP-3, OP-4, OP-5, OP-6, OP-7, OP-8
  std::uint64_t left = 0;
  std::uint64_t offered = 0;
  std::uint64_t at_once = 0;
  std::uint64_t copied = 0;
  std::uint64_t overtook = 0;
  std::uint64_t failed = 0;
  std::uint64_t came = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      drawn_shipments all(seed);
      for (int i = 0; i < 150; ++i) all.step();
      all.settle();
      left += all.messages_left;
      offered += all.offers_left;
      at_once += all.has_left.size();
      copied += all.copies_made;
      overtook += all.overtook;
      failed += all.messages_failed;
      came += all.parts_came;
    }
  }
  BOOST_TEST(left > 10'000U);
  BOOST_TEST(offered > 10'000U);
  BOOST_TEST(at_once > 1'000U);
  BOOST_TEST(copied > 1'000U);
  BOOST_TEST(overtook > 1'000U);
  BOOST_TEST(failed > 500U);
  BOOST_TEST(came > 10'000U);
}

namespace {

/// Nodes that ship large tensors to each other over the simulated network. A message can be read where all its transfers have come.
struct simulated_shipping {
  static constexpr std::int64_t ms = 1'000'000;

  explicit simulated_shipping(std::uint64_t seed, std::int64_t latency_ns)
      : network(clock, 3, costs(latency_ns), seed), nodes(3), random(seed) {
    network.on_lost = [this](std::size_t at, std::size_t other) { went_down(at, other); };
    for (std::size_t a = 0; a < 3; ++a)
      for (std::size_t b = 0; b < a; ++b) network.connect(a, b);
  }
  static simulation::network_costs costs(std::int64_t latency_ns) {
    auto result = simulation::network_costs::one_rack();
    result.latency_ns = latency_ns;
    result.jitter_ns = 0;  // messages of one connection arrive in the order in which they left
    return result;
  }
  static node_id id_of(std::size_t node) { return node_id{node + 1}; }
  static std::size_t number_of(node_id id) { return id.value - 1; }

  void on(std::size_t at, const shipping_event& event) {
    for (const auto& each : nodes[at].all.on(event, clock.now_ns()))
      std::visit([&](const auto& effect) { carry_out(at, effect); }, each);
  }
  void carry_out(std::size_t, const ask_for_mark&) {}
  void carry_out(std::size_t, const send_offer&) { BOOST_FAIL("nobody drew a mark"); }
  void carry_out(std::size_t, const copy_to_host&) { BOOST_FAIL("no transfer is on a device"); }
  void carry_out(std::size_t, const fail_message&) { BOOST_FAIL("no transfer is on a device"); }
  void carry_out(std::size_t, const let_go&) {}
  void carry_out(std::size_t, const drop_message&) { ++dropped; }
  void carry_out(std::size_t at, const send_piece& what) {
    under_way[at] += what.bytes;
    most_under_way = std::max(most_under_way, under_way[at]);
    const auto to = number_of(what.to);
    network.send(at, to, what.bytes, [this, at, to, what] {
      nodes[to].came[{at, what.transfer}] += what.bytes;
      network.send(to, at, 8, [this, at, to, what, taken = clock.now_ns()] {
        under_way[at] -= what.bytes;
        on(at, piece_answered{id_of(to), what.piece, taken});
      });
    });
  }
  void carry_out(std::size_t at, const send_message& what) {
    const auto& it = messages.at(what.message);
    network.send(at, it.to, 100, [this, at, it] {
      if (network.connection(at, it.to) != it.over) return;  // its transfers left over a connection that has ended
      BOOST_REQUIRE(it.number > std::exchange(nodes[it.to].last_from[at], it.number));
      for (const auto& each : it.ahead) BOOST_REQUIRE((nodes[it.to].came[{at, each.number}] == each.bytes));
      ++read;
    });
  }
  void went_down(std::size_t at, std::size_t other) {
    std::erase_if(nodes[at].came, [&](const auto& each) { return each.first.first == other; });
    on(at, receiver_down{id_of(other)});
  }
  void ship(std::size_t at, std::size_t to, std::uint64_t bytes) {
    message what{++last, to, network.connection(at, to), {{++last, bytes}, {++last, 3 * piece}}};
    messages[what.number] = what;
    on(at, shipment_begun{id_of(to), what.ahead, what.number, false});
  }

  struct message {
    std::uint64_t number;
    std::size_t to;
    std::uint64_t over;  // the connection
    std::vector<transfer> ahead;
  };
  struct node {
    shipments all;
    std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> came;  // bytes of transfers of a node
    std::map<std::size_t, std::uint64_t> last_from;
  };
  simulation::event_queue clock;
  simulation::simulated_network network;
  std::vector<node> nodes;
  std::mt19937_64 random;
  std::map<std::uint64_t, message> messages;
  std::uint64_t last = 0;
  int read = 0;
  int dropped = 0;
  std::map<std::size_t, std::uint64_t> under_way;  // bytes in pieces of a node without an answer, where no connection ends
  std::uint64_t most_under_way = 0;
};

}  // namespace

// Two ways: between hosts in one rack, and between hosts 20 ms apart. On each way the window grows to what the way holds.
BOOST_AUTO_TEST_CASE(ship_at_the_rate_of_the_way, *boost::unit_test::label("explored")) {  // WD-2
  const std::vector<std::tuple<std::int64_t, std::int64_t, std::uint64_t>> ways{{12'000, 600, 8}, {20'000'000, 1200, 64}};
  for (const auto& [latency_ns, most_ms, most_mb] : ways) {
    simulated_shipping all(1, latency_ns);
    for (int i = 0; i < 10; ++i) {
      all.ship(0, 1, 64 << 20);
      all.ship(1, 0, 64 << 20);
    }
    while (all.read < 20) BOOST_REQUIRE(all.clock.step());
    // 680 MB at 1.25 GB/s take 0.54 s. The window has to grow first.
    BOOST_TEST(all.clock.now_ns() < most_ms * simulated_shipping::ms);
    // The first way holds little, and pieces may wait for 0.5 ms there. The second one holds as much as a window may have.
    BOOST_TEST(all.most_under_way <= most_mb << 20);
  }
}

BOOST_AUTO_TEST_CASE(go_on_after_cuts_freezes_and_lost_connections, *boost::unit_test::label("explored")) {  // OP-1, OP-5
  int read = 0;
  int dropped = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      simulated_shipping all(seed, 200'000);
      const auto below = [&](std::uint64_t limit) { return all.random() % limit; };
      for (int i = 0; i < 200; ++i) {
        const auto a = below(3);
        const auto b = (a + 1 + below(2)) % 3;
        switch (below(12)) {
          case 0:
            all.network.cut_way(a, b);
            break;
          case 1:
          case 2:
            all.network.mend_way(a, b);
            break;
          case 3:
            all.network.freeze(a);
            break;
          case 4:
          case 5:
            all.network.thaw(a);
            break;
          case 6:
            if (below(4) == 0 && !all.network.is_cut(a, b) && !all.network.is_cut(b, a)) all.network.disconnect(a, b);
            break;
          default:
            if (all.network.connection(a, b) == 0) all.network.connect(a, b);
            if (!all.network.is_frozen(a)) all.ship(a, b, 1 + below(4 * piece));
        }
        all.clock.run_until(all.clock.now_ns() + 2 * simulated_shipping::ms);
      }
      all.network.mend_all();
      for (std::size_t node = 0; node < 3; ++node) all.network.thaw(node);
      all.clock.run_until(all.clock.now_ns() + 10'000 * simulated_shipping::ms);
      for (const auto& each : all.nodes) BOOST_REQUIRE(each.all.is_idle());
      read += all.read;
      dropped += all.dropped;
    }
  }
  BOOST_TEST(read > 10'000);
  BOOST_TEST(dropped > 100);
}

BOOST_AUTO_TEST_SUITE_END()
