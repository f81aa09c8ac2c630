// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/transfer_desk.hpp>

#include <cstdint>
#include <optional>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <troupe/actors/transfers/memory_reader.hpp>
#include <troupe/messages/caf_error.hpp>

#include "actors/lone_services.hpp"

namespace {

constexpr troupe::node_id refusing{7};
constexpr auto offered = static_cast<std::int64_t>(troupe::transfers::shipments::offer_bytes);

struct offering_state {
  std::optional<troupe::transfers::transfer_desk> desk;
};

/// A node that draws a mark, and then refuses to read this process's memory.
struct refusing_receiver : troupe::test::lone_services {
  refusing_receiver() {
    const auto made = system.spawn([this](caf::event_based_actor*) -> caf::behavior {
      return {
        [](const troupe::request_mark&) { return troupe::memory_mark{}; },
        [this](const troupe::tensor_offer&) {
          ++offers;
          return make_error(troupe::errc::refused, "the kernel does not allow it");
        },
        [this](const troupe::tensor_piece&) {
          ++pieces;
          return std::int64_t{5};
        },
      };
    });
    troupe::member who;
    who.id = refusing;
    who.host = "127.0.0.1";
    services.directory.add(who, caf::actor_cast<caf::strong_actor_ptr>(made), 1);
  }

  troupe::transfers::lazy_memory_reader reader{services};
  int offers = 0;
  int pieces = 0;
};

}  // namespace

// One refused offer is enough: no further offer leaves, also of a transfer that has begun with offers.
BOOST_FIXTURE_TEST_CASE(tensors_that_were_being_offered_leave_in_pieces_after_a_refusal, refusing_receiver) {
  troupe::sent_ahead first, second;
  int sent = 0;
  const auto sender = system.spawn([&](caf::stateful_actor<offering_state>* self) -> caf::behavior {
    auto& desk = self->state.desk.emplace(self, services, reader);
    desk.ship(refusing, {at::empty({1 << 20}, at::kByte)}, first, [&] { ++sent; });  // the node draws its mark
    return {[&](int) {
      desk.ship(refusing, {at::empty({2 * offered}, at::kByte), at::empty({6 * offered}, at::kByte)}, second, [&] { ++sent; });
    }};
  });
  run();
  BOOST_TEST(sent == 1);
  BOOST_TEST(offers == 0);
  const auto before = pieces;
  gateway->send(sender, 1);
  run();
  BOOST_TEST(sent == 2);
  BOOST_TEST(offers == troupe::transfers::shipments::most_offers);
  BOOST_TEST(pieces > before);
  end(sender);
}
