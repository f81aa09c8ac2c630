// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/transfer_desk.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <caf/actor_cast.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/byte.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/span.hpp>
#include <caf/stateful_actor.hpp>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/messages/caf_error.hpp>

#include "actors/lone_services.hpp"
#include "support/resident_memory.hpp"

namespace {

constexpr troupe::node_id refusing{7};
constexpr auto offered = static_cast<std::int64_t>(troupe::transfers::shipments::offer_bytes);

struct offering_state {
  std::optional<troupe::transfers::transfer_desk> desk;
};

/// A node that draws a mark, and then refuses to read this process's memory.
struct refusing_receiver : troupe::test::lone_services {
  explicit refusing_receiver(bool networked = false) : lone_services(networked) {
    const auto made = system.spawn([this](caf::event_based_actor*) -> caf::behavior {
      return {
        [this](const troupe::request_mark&) {
          return troupe::memory_mark{{++marks, 0, 0, 0}, read_at_once};
        },
        [this](const troupe::tensor_offer& offer) -> caf::result<void> {
          ++offers;
          last_offer = offer;
          mark_of_offer = *reinterpret_cast<const std::uint64_t*>(offer.mark);
          if (takes_offers) return caf::unit;
          return make_error(troupe::errc::refused, "the kernel does not allow it");
        },
        [this](const troupe::tensor_piece&) {
          ++pieces;
          return std::int64_t{5};
        },
      };
    });
    who.id = refusing;
    who.host = "127.0.0.1";
    receiver = caf::actor_cast<caf::strong_actor_ptr>(made);
    services.directory.add(who, receiver, 1);
  }
  ~refusing_receiver() { end(sender); }

  /// Runs the function with the desk of a node that sends.
  template <class F>
  void with_desk(F run_it) {
    if (!sender)
      sender = system.spawn([this](caf::stateful_actor<offering_state>* self) -> caf::behavior {
        self->state.desk.emplace(self, services, services.memory_readers);
        return {[self](std::function<void(troupe::transfers::transfer_desk&)>& what) { what(*self->state.desk); },
                [self](troupe::support::capacity_atom, const troupe::contracts::capacity_wish_ptr& what) {
                  self->state.desk->wish(what);
                }};
      });
    gateway->send(sender, std::function<void(troupe::transfers::transfer_desk&)>(std::move(run_it)));
  }

  caf::actor sender;
  troupe::member who;
  caf::strong_actor_ptr receiver;
  troupe::tensor_offer last_offer;
  std::uint64_t mark_of_offer = 0;
  std::uint64_t marks = 0;
  bool takes_offers = false;
  std::uint64_t read_at_once = 0;
  int offers = 0;
  int pieces = 0;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::function<void(troupe::transfers::transfer_desk&)>)

using desk_of_sender = troupe::transfers::transfer_desk;

// One refused offer is enough: no further offer leaves, also of a transfer that has begun with offers.
BOOST_FIXTURE_TEST_CASE(tensors_that_were_being_offered_leave_in_pieces_after_a_refusal, refusing_receiver) {
  troupe::sent_ahead first, second;
  int sent = 0;
  with_desk([&](desk_of_sender& desk) {
    desk.ship(
      refusing, {at::empty({1 << 20}, at::kByte)}, {}, first, [&] { ++sent; },
      [](const troupe::error&) {});  // the node draws its mark
  });
  run();
  BOOST_TEST(sent == 1);
  BOOST_TEST(offers == 0);
  const auto before = pieces;
  with_desk([&](desk_of_sender& desk) {
    desk.ship(
      refusing, {at::empty({2 * offered}, at::kByte), at::empty({6 * offered}, at::kByte)}, {}, second, [&] { ++sent; },
      [](const troupe::error&) {});
  });
  run();
  BOOST_TEST(sent == 2);
  BOOST_TEST(offers == troupe::transfers::shipments::most_offers);
  BOOST_TEST(pieces > before);
}

BOOST_FIXTURE_TEST_CASE(a_mark_of_a_node_that_went_down_meanwhile_counts_no_more, refusing_receiver) {  // DM-1
  troupe::sent_ahead ahead;
  takes_offers = true;
  const auto ship = [&](desk_of_sender& desk) {
    desk.ship(
      refusing, {at::empty({offered}, at::kByte)}, {}, ahead, [] {}, [](const troupe::error&) {});
  };
  with_desk([&](desk_of_sender& desk) {
    ship(desk);
    desk.went_down(refusing);  // before the answer of the node
  });
  run();
  BOOST_TEST(marks == 1U);
  services.directory.add(who, receiver, 2);
  with_desk(ship);  // asks for another mark
  run();
  with_desk(ship);
  run();
  BOOST_TEST(marks == 2U);
  BOOST_TEST(offers == 1);
  BOOST_TEST(mark_of_offer == 2U);
}

BOOST_FIXTURE_TEST_CASE(a_message_waits_for_no_offer_that_its_receiver_reads_at_once, refusing_receiver) {  // OP-1
  takes_offers = true;
  for (const std::uint64_t announced : {0U, 1U << 20}) {
    read_at_once = announced;
    with_desk([&](desk_of_sender& desk) { desk.went_down(refusing); });
    services.directory.add(who, receiver, announced + 1);
    for (int i = 0; i < 3; ++i) {
      troupe::sent_ahead ahead;
      const auto before = offers;
      bool left = false;
      bool left_at_once = false;
      with_desk([&](desk_of_sender& desk) {
        desk.ship(
          refusing, {at::empty({1 << 20}, at::kByte)}, {}, ahead, [&] { left = true; }, [](const troupe::error&) {});
        left_at_once = left;
      });
      run();
      BOOST_TEST(left);
      BOOST_TEST(offers - before == (i > 0 ? 1 : 0));
      // Pieces, then an offer that tells whether the node can read, then an offer right before its message.
      BOOST_TEST(left_at_once == (i == 0 || (i == 2 && announced > 0)));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(elements_are_kept_until_they_have_left, refusing_receiver) {  // OP-3
  troupe::sent_ahead ahead;
  takes_offers = true;
  for (const int offers_before : {0, 1}) {  // in pieces, then in an offer
    bool freed = false;
    std::vector<char> elements(offered);
    with_desk([&](desk_of_sender& desk) {
      auto tensor = at::from_blob(
        elements.data(), {offered}, [&](void*) { freed = true; }, at::kByte);
      desk.ship(
        refusing, {std::move(tensor)}, {}, ahead, [&] { BOOST_TEST(offers == offers_before); }, [](const troupe::error&) {});
      BOOST_TEST(!freed);
    });
    run();
    BOOST_TEST(freed);
    BOOST_TEST(offers == offers_before);
    if (offers == 0) continue;
    BOOST_TEST(last_offer.address == reinterpret_cast<std::uintptr_t>(elements.data()));
    BOOST_TEST(last_offer.total == static_cast<std::uint64_t>(offered));
  }
}

BOOST_AUTO_TEST_CASE(a_wish_for_capacity_fails_at_its_deadline_though_the_writer_never_answers) {  // GW-15
  refusing_receiver all(true);
  all.services.deadlines.stand_still();
  const auto wish = std::make_shared<troupe::contracts::capacity_wish>();
  wish->to = refusing;
  wish->until_ns = troupe::support::steady_ns();
  all.with_desk([&](desk_of_sender& desk) { desk.wish(wish); });
  auto& without_writer = all.all.scheduler();  // the writer is a broker
  without_writer.run();
  BOOST_TEST(!wish->result.ready());
  all.services.deadlines.advance(std::chrono::seconds(1));
  without_writer.run();
  BOOST_TEST_REQUIRE(wish->result.ready());
  BOOST_CHECK_EXCEPTION(wish->result.get(), troupe::error,
                        [](const auto& why) { return why.code() == troupe::errc::deadline_passed; });
}

BOOST_AUTO_TEST_CASE(memory_of_transfers_is_kept_for_a_while) {  // TM-3
  refusing_receiver all(true);
  all.services.deadlines.stand_still();
  constexpr std::uint64_t size = std::uint64_t{40} << 20;
  const std::vector<caf::byte> elements(size, caf::byte{1});
  const auto come = [&] {
    for (std::uint64_t number = 1; number <= 3; ++number) {
      const troupe::tensor_piece piece{refusing, number, size, 0, {}};
      BOOST_TEST(all.arriving.add(piece, caf::make_span(elements)) == nullptr);
      all.with_desk([=](desk_of_sender& desk) { desk.came(piece); });
      all.run();
    }
    for (std::uint64_t number = 1; number <= 3; ++number) all.arriving.take(refusing, number, size);
  };
  const auto before = troupe::test::resident_kib();
  const auto kept_mib = [&] { return (troupe::test::resident_kib() - before) >> 10; };
  come();
  BOOST_TEST(kept_mib() > 110);
  BOOST_TEST(all.services.deadlines.pending() == 1U);
  all.services.deadlines.advance(std::chrono::seconds(1));  // it was in use a moment ago
  BOOST_TEST(kept_mib() > 110);
  all.services.deadlines.advance(std::chrono::seconds(1));
  BOOST_TEST(kept_mib() < 50);
  BOOST_TEST(all.services.deadlines.pending() == 0U);
  come();
  BOOST_TEST(all.services.deadlines.pending() == 1U);
}
