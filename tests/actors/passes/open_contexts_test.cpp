// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/open_contexts.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <caf/after.hpp>

#include <troupe/actors/passes/context_record.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;
using passes::open_contexts;

BOOST_AUTO_TEST_SUITE(contexts_of_a_node)

namespace {

struct fixture : test::lone_services {
  /// The number of messages that ask the gateway to release the context.
  int releases_of(const context_id& id, std::chrono::milliseconds wait = std::chrono::milliseconds(0)) {
    int count = 0;
    bool more = true;
    while (more)
      gateway->receive(
        [&](support::close_atom, const context_id& closed, const contracts::context_actor& actor) {
          count += closed == id ? 1 : 0;
          wait = std::chrono::milliseconds(0);
          end(actor);
        },
        caf::after(wait) >> [&] { more = false; });
    return count;
  }

  open_contexts& contexts = services.contexts;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(another_node_opens_only_so_many, fixture) {  // OC-3
  const node_id other{77};
  const auto know = [&](node_id opener, std::uint64_t number) {
    const context_id id{opener, number};
    return contexts.know({std::make_shared<passes::context_record>(id, services.self.id(), services.counts), {}});
  };
  for (std::uint64_t number = 0; number < open_contexts::most_of_one; ++number) BOOST_TEST_REQUIRE(know(other, number));
  BOOST_TEST(!know(other, open_contexts::most_of_one));
  const auto why = contexts.unknown({other, open_contexts::most_of_one});
  BOOST_TEST((why.code() == errc::refused));
  BOOST_TEST(std::string(why.what()).find("has 65536 open contexts of node ") != std::string::npos, why.what());
  BOOST_TEST(know(node_id{78}, 1));
  BOOST_TEST(know(services.self.id(), 1));
  contexts.forget({other, 5});
  BOOST_TEST(know(other, open_contexts::most_of_one));
  BOOST_TEST(!know(other, open_contexts::most_of_one + 1));
  contexts.close({other, 6});
  BOOST_TEST(know(other, open_contexts::most_of_one + 1));
}

BOOST_FIXTURE_TEST_CASE(are_found_until_they_are_closed, fixture) {
  const auto one = contexts.open();
  const auto two = contexts.open();
  BOOST_TEST((one.record->id() != two.record->id()));
  BOOST_TEST((contexts.find(one.record->id()).record == one.record));
  BOOST_TEST(contexts.all().size() == 2u);
  contexts.close(one.record->id());
  BOOST_TEST(!contexts.find(one.record->id()).record);
  contexts.forget(two.record->id());
  BOOST_TEST(contexts.all().empty());
  BOOST_TEST(std::string(contexts.unknown(one.record->id()).what()).starts_with("node 'here' does not know "));
  end(one.actor);
  end(two.actor);
}

BOOST_FIXTURE_TEST_CASE(that_were_closed_are_released_once_when_the_node_tidies_up, fixture) {  // OC-1
  const auto id = contexts.open().record->id();
  int asked = 0;
  tidy = [&] { ++asked; };
  contexts.close(id);
  contexts.close(id);
  BOOST_TEST(asked == 1);
  BOOST_TEST(releases_of(id) == 0);
  contexts.release_closed();
  contexts.release_closed();
  BOOST_TEST(releases_of(id) == 1);
}

BOOST_FIXTURE_TEST_CASE(leave_nothing_once_they_were_stopped, fixture) {  // OC-2
  const auto open = contexts.open();
  const auto closed = contexts.open().record->id();
  contexts.close(closed);
  for (const auto& actor : contexts.stop()) end(actor);
  contexts.release_closed();
  BOOST_TEST(releases_of(closed) == 0);
  BOOST_TEST(contexts.all().empty());
  BOOST_TEST(!contexts.know(open));
  BOOST_CHECK_EXCEPTION(contexts.open(), error, [](const error& refused) { return refused.code() == errc::stopping; });
}

// OC-1: the thread that closes does not release.
BOOST_AUTO_TEST_CASE(of_a_node_with_a_network_are_released_by_another_thread) {
  test::lone_services here(true);
  auto& contexts = here.services.contexts;
  std::promise<std::thread::id> where;
  here.tidy = [&] {
    contexts.release_closed();
    where.set_value(std::this_thread::get_id());
  };
  const context_id id{here.services.self.id(), 1};
  const auto record = std::make_shared<passes::context_record>(id, here.services.self.id(), here.services.counts);
  contexts.know({record, caf::actor_cast<contracts::context_actor>(caf::actor_cast<caf::actor>(here.gateway))});
  contexts.close(id);
  auto released = where.get_future();
  BOOST_REQUIRE((released.wait_for(test::patience) == std::future_status::ready));
  BOOST_TEST((released.get() != std::this_thread::get_id()));
  bool came = false;
  here.gateway->receive(
    [&](support::close_atom, const context_id& closed, const contracts::context_actor&) { came = closed == id; },
    caf::after(test::patience) >> [] {});
  BOOST_TEST(came);
}

BOOST_AUTO_TEST_SUITE_END()
