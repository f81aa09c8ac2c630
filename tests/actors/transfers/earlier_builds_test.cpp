// SPDX-License-Identifier: BSD-3-Clause
// Earlier builds with the same protocol answer a piece with nothing; this one says when it took the piece. Both go on with each other.
#include <cstdint>
#include <optional>

#include <boost/test/unit_test.hpp>
#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/transfers/transfer_desk.hpp>

#include "actors/lone_services.hpp"

namespace {

constexpr troupe::node_id there{7};

using sender_before = caf::typed_actor<caf::reacts_to<troupe::tensor_piece>>;

struct sender_state {
  std::optional<troupe::transfers::transfer_desk> desk;
};

struct two_builds : troupe::test::lone_services {
  template <class Handle, class Answer>
  Handle receiver(Answer answer) {
    const auto made = system.spawn([answer](caf::event_based_actor*) -> caf::behavior {
      return {[answer](const troupe::tensor_piece&) { return answer(); }};
    });
    return caf::actor_cast<Handle>(caf::actor_cast<caf::strong_actor_ptr>(made));
  }
  /// How often a sender of this build is told that its piece was taken.
  template <class Answer>
  int times_taken(Answer answer) {
    troupe::member who;
    who.id = there;
    services.directory.add(who, receiver<caf::strong_actor_ptr>(answer), ++period);
    int taken = 0;
    system.spawn([&](caf::stateful_actor<sender_state>* self) {
      self->state.desk.emplace(self, services, services.memory_readers).when_taken(there, [&] { ++taken; });
    });
    run();
    return taken;
  }

  std::uint64_t period = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(earlier_builds, two_builds)

BOOST_AUTO_TEST_CASE(a_sender_goes_on_whatever_a_receiver_answers_to_a_piece) {
  BOOST_TEST(times_taken([] { return std::int64_t{5}; }) == 1);
  BOOST_TEST(times_taken([] {}) == 1);
  BOOST_TEST(times_taken([] { return caf::make_error(caf::sec::runtime_error); }) == 1);
}

BOOST_AUTO_TEST_CASE(a_sender_of_an_earlier_build_goes_on_when_it_is_told_a_time) {
  const auto gateway = receiver<sender_before>([] { return std::int64_t{5}; });
  int taken = 0;
  system.spawn([&](caf::event_based_actor* self) {
    auto answered = [&] { ++taken; };
    self->request(gateway, caf::infinite, troupe::tensor_piece{}).then(answered, [=](const caf::error&) { answered(); });
  });
  run();
  BOOST_TEST(taken == 1);
}

BOOST_AUTO_TEST_SUITE_END()
