// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/continuations.hpp>

#include <cstddef>
#include <memory>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/system_config.hpp>
#include <troupe/actors/settings.hpp>

namespace {

using troupe::contracts::cpu_continuation_actor;

cpu_continuation_actor spawn(caf::actor_system& on) {
  return on.spawn([](cpu_continuation_actor::pointer) -> cpu_continuation_actor::behavior_type {
    return {[](troupe::contracts::burst_ptr&, const troupe::contracts::graph_task_actor&) {},
            [](troupe::support::merge_atom, troupe::contracts::gradients_ptr& all,
               const troupe::contracts::table_ptr&) -> caf::result<troupe::contracts::gradients_ptr> { return all; },
            [](const troupe::contracts::garbage_ptr&) {}};
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(continuations)

BOOST_AUTO_TEST_CASE(a_burst_goes_to_the_actor_with_the_fewest) {  // CN-1
  troupe::network::system_config config{troupe::settings()};
  caf::actor_system system{config};
  troupe::services::continuations all;
  BOOST_TEST(!all.first());
  for (int i = 0; i < 3; ++i) all.add(spawn(system));
  const auto actors = all.all();
  BOOST_REQUIRE(actors.size() == 3u);
  BOOST_TEST((all.first() == actors[0]));
  std::vector<std::shared_ptr<void>> turns;
  for (const std::size_t expected : {0, 1, 2, 0, 1}) {
    auto [actor, turn] = all.next();
    BOOST_TEST((actor == actors[expected]), expected);
    turns.push_back(std::move(turn));
  }
  turns[1].reset();  // both bursts of the second actor are over
  turns[4].reset();
  BOOST_TEST((all.next().first == actors[1]));
  turns.clear();
  BOOST_TEST((all.next().first == actors[0]));
  BOOST_TEST((all.next().first == actors[0]));  // nobody has kept the turn
  all.clear();
  BOOST_TEST(!all.first());
  for (const auto& each : actors) caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_SUITE_END()
