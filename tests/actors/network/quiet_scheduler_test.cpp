// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/quiet_scheduler.hpp>

#include <boost/test/unit_test.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/group.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

namespace {

using namespace std::chrono_literals;

// A clock that counts the timeouts that are set and cancelled.
class counting_clock final : public caf::actor_clock {
 public:
  int set = 0;
  int cancelled = 0;
  void set_ordinary_timeout(time_point, caf::abstract_actor*, caf::atom_value, std::uint64_t) override { ++set; }
  void set_multi_timeout(time_point, caf::abstract_actor*, caf::atom_value, std::uint64_t) override { ++set; }
  void set_request_timeout(time_point, caf::abstract_actor*, caf::message_id) override { ++set; }
  void cancel_ordinary_timeout(caf::abstract_actor*, caf::atom_value) override {}
  void cancel_request_timeout(caf::abstract_actor*, caf::message_id) override {}
  void cancel_timeouts(caf::abstract_actor*) override { ++cancelled; }
  void schedule_message(time_point, caf::strong_actor_ptr, caf::mailbox_element_ptr) override {}
  void schedule_message(time_point, caf::group, caf::strong_actor_ptr, caf::message) override {}
  void cancel_all() override {}
};

struct a_system {
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quiet_scheduler, a_system)

// QC-1
BOOST_AUTO_TEST_CASE(only_actors_that_set_a_timeout_have_theirs_cancelled) {
  counting_clock real;
  troupe::network::quiet_clock clock(real);
  caf::scoped_actor one{system};
  caf::scoped_actor other{system};
  auto* with = caf::actor_cast<caf::abstract_actor*>(one);
  auto* without = caf::actor_cast<caf::abstract_actor*>(other);
  clock.cancel_timeouts(without);
  BOOST_TEST(real.cancelled == 0);
  clock.set_ordinary_timeout({}, with, caf::atom("x"), 1);
  clock.set_multi_timeout({}, with, caf::atom("x"), 2);
  clock.set_request_timeout({}, with, caf::make_message_id(3));
  BOOST_TEST(real.set == 3);
  clock.cancel_timeouts(with);
  BOOST_TEST(real.cancelled == 1);
  clock.cancel_timeouts(with);
  BOOST_TEST(real.cancelled == 1);
}

BOOST_AUTO_TEST_CASE(nodes_have_it_unless_they_ask_for_another_policy) {
  BOOST_TEST((dynamic_cast<troupe::network::quiet_scheduler*>(&system.scheduler()) != nullptr));
  troupe::settings stealing;
  stealing.configure = [](caf::actor_system_config& own) { own.set("scheduler.policy", caf::atom("stealing")); };
  troupe::nodes::system_config other{stealing};
  caf::actor_system theirs{other};
  BOOST_TEST((dynamic_cast<troupe::network::quiet_scheduler*>(&theirs.scheduler()) == nullptr));
}

BOOST_AUTO_TEST_CASE(timeouts_and_delayed_messages_come) {
  auto silent = system.spawn(
    [](caf::event_based_actor* self) -> caf::behavior { return {[=](int) { return self->make_response_promise(); }}; });
  caf::scoped_actor self{system};
  caf::error told;
  self->request(silent, 5ms, 1).receive([] {}, [&](const caf::error& why) { told = why; });
  BOOST_TEST((told == caf::sec::request_timeout));
  auto late = system.spawn([asker = caf::actor_cast<caf::actor>(self)](caf::event_based_actor* me) -> caf::behavior {
    me->delayed_send(asker, 5ms, 42);
    return {[](int) {}};
  });
  self->receive([](int what) { BOOST_TEST(what == 42); });
  self->send_exit(silent, caf::exit_reason::user_shutdown);
  self->send_exit(late, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_SUITE_END()
