// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/broker_mailbox.hpp>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

namespace {

using namespace std::chrono_literals;

// A behaviour that never answers, for any kind of actor.
template <class Self>
caf::behavior make_silent(Self self) {
  troupe::support::close_mailbox_at_exit(self);
  return {[=](int) { return self->make_response_promise(); }};
}

// This broker sends itself each message again, so its mailbox is never empty until the mailbox is closed.
caf::behavior make_restless(caf::io::broker* self) {
  troupe::support::close_mailbox_at_exit(self);
  return {[=](int x) { self->send(self, x); }};
}

caf::error ask_the_dead(caf::actor_system& system, const caf::actor& silent) {
  caf::scoped_actor self{system};
  self->send_exit(silent, caf::exit_reason::user_shutdown);
  self->wait_for(silent);
  caf::error result;
  self->request(silent, 3s, 1).receive([] {}, [&](const caf::error& problem) { result = problem; });
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(who_asks_a_broker_that_has_ended_is_told_at_once) {
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  BOOST_TEST(
    (ask_the_dead(system, system.middleman().spawn_broker(make_silent<caf::io::broker*>)) == caf::sec::request_receiver_down));
  BOOST_TEST((ask_the_dead(system, system.spawn(make_silent<caf::event_based_actor*>)) == caf::sec::request_receiver_down));
}

// A detached actor sends messages that a broker never reads. These messages must not keep the thread of the detached actor.
BOOST_AUTO_TEST_CASE(the_system_ends_though_a_broker_left_messages_unread) {
  for (int round = 0; round < 50; ++round) {
    troupe::nodes::system_config config{troupe::settings{}};
    caf::actor_system system{config};
    auto broker = system.middleman().spawn_broker(make_restless);
    auto sender = system.spawn<caf::detached>([broker](caf::event_based_actor* self) -> caf::behavior {
      for (int i = 0; i < 1000; ++i) self->send(broker, i);
      return {[](int) {}};
    });
    caf::anon_send_exit(broker, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(sender, caf::exit_reason::user_shutdown);
  }
}

// As in a node that stops while it dials: CAF's broker of connections has ended when another actor sends it a request.
BOOST_AUTO_TEST_CASE(the_system_ends_though_the_broker_of_connections_left_messages_unread) {
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  troupe::support::close_basp_mailbox_at_exit(system);
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  caf::scoped_actor self{system};
  self->send_exit(broker, caf::exit_reason::kill);
  self->wait_for(broker);
  caf::error told;
  auto asker = system.spawn<caf::detached>([broker, &told](caf::event_based_actor* me) {
    me->request(broker, 3s, 1).then([] {}, [&told](const caf::error& problem) { told = problem; });
  });
  self->wait_for(asker);
  BOOST_TEST((told == caf::sec::request_receiver_down));
}
