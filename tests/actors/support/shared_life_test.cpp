// SPDX-License-Identifier: BSD-3-Clause
// A context actor and a graph task are lazy: both run for the first time when their first message comes. By then the node may have
// ended its other actors and dropped their handles.
#include <troupe/actors/support/broker_mailbox.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <set>

#include <caf/actor_cast.hpp>
#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/behavior.hpp>

#include <troupe/actors/passes/context_actor.hpp>
#include <troupe/actors/passes/graph_task_actor.hpp>
#include <troupe/actors/passes/pass_terms.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(shared_life)

namespace {

struct fixture : test::lone_services {
  fixture() { services.actors.gateway = caf::actor_cast<contracts::gateway_actor>(other); }

  void spawn() {
    auto terms = std::make_shared<passes::pass_terms>();
    terms->participant.emplace(std::set<message_id>{});
    context = services.contexts.make({services.self.id(), 1}).actor;
    task = passes::spawn_graph_task(services, terms);
    caf::anon_send(context,
                   support::gradients_atom::value);  // a lazy actor runs for the first time when its first message comes
    caf::anon_send(task, support::gradients_atom::value);
  }
  /// How many actors run, without `other`.
  std::size_t running() { return system.registry().running() - before; }

  std::size_t before = system.registry().running();
  caf::actor other = system.spawn([] { return caf::behavior{[](int) {}}; });
  contracts::context_record_ptr record =
    std::make_shared<passes::context_record>(context_id{services.self.id(), 1}, services.self.id(), services.counts);
  contracts::context_actor context;
  contracts::graph_task_actor task;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(actors_end_with_the_gateway, fixture) {
  spawn();
  run();
  BOOST_TEST(running() == 3U);
  end(other);
  BOOST_TEST(running() == 0U);
}

BOOST_FIXTURE_TEST_CASE(actors_that_run_first_after_the_gateway_has_ended_end_too, fixture) {
  end(other);
  spawn();
  services.actors.gateway = contracts::gateway_actor{};
  run();
  BOOST_TEST(running() == 0U);
}

BOOST_FIXTURE_TEST_CASE(actors_of_a_node_without_a_gateway_end, fixture) {
  end(other);
  services.actors.gateway = contracts::gateway_actor{};
  spawn();
  run();
  BOOST_TEST(running() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
