// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/message.hpp>

#include <troupe/messages/registration.hpp>

#include "samples.hpp"

using namespace troupe;

namespace {

struct config : caf::actor_system_config, tensor_receiver {
  config() {
    set("scheduler.policy", caf::atom("testing"));
    troupe::add_message_types(*this);  // troupe::, because the base class has a function of that name
  }
};

}  // namespace

// Finds the type by its registered name, as CAF does between nodes.
BOOST_AUTO_TEST_CASE_TEMPLATE(every_message_travels_under_its_name, T, testing::message_types) {
  config settings;
  caf::actor_system system{settings};
  testing::generator random{17};
  T sent = testing::make<T>(random);
  auto message = caf::make_message(caf::atom("before"), sent, std::uint32_t{42});
  testing::bytes wire;
  caf::binary_serializer sink{system, wire};
  BOOST_REQUIRE(!sink(message));

  caf::message received;
  caf::binary_deserializer source{system, wire};
  BOOST_REQUIRE(!source(received));
  BOOST_REQUIRE((received.match_elements<caf::atom_value, T, std::uint32_t>()));
  BOOST_TEST(testing::same(received.get_as<T>(1), sent));
  BOOST_TEST(received.get_as<std::uint32_t>(2) == 42u);
}

BOOST_AUTO_TEST_CASE(names_on_the_wire_stay) {
  config settings;
  for (const char* name : {"autograd", "hello", "member", "welcome", "beat",    "seen",  "bye",   "call",   "result",
                           "grads",    "quiet", "failed", "disc",    "discd",   "prune", "abort", "abortd", "joined",
                           "rel",      "reld",  "status", "piece",   "askmark", "mark",  "offer", "gossip", "held"})
    BOOST_TEST(settings.value_factories_by_name.count(std::string("troupe.") + name) == 1u, name);
}

BOOST_AUTO_TEST_CASE(an_error_is_rendered_with_the_text_of_its_code) {
  config settings;
  caf::actor_system system{settings};
  BOOST_TEST(system.render(make_error(errc::peer_down, "stage1")) == std::string(to_text(errc::peer_down)) + ": stage1");
  BOOST_TEST(system.render(caf::error{errc::peer_down}) == to_text(errc::peer_down));
}
