// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/outgoing_calls.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include <caf/actor_cast.hpp>
#include <caf/after.hpp>

#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/messages/message_size.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(calls_that_a_node_makes)

namespace {

struct fixture : test::lone_services {
  contracts::outgoing_call_ptr made(context_id context = {}) {
    auto job = std::make_shared<contracts::outgoing_call>();
    job->request.payload.context = context;
    job->to = node_id{2};
    job->label = "f";
    job->answer = std::make_shared<autograd_message>();
    calls.send(job);
    return job;
  }
  static call_result result(std::int64_t number) {
    call_result made;
    made.values = {{"number", number}};
    return made;
  }

  calls::outgoing_calls& calls = services.calls;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(go_to_the_gateway_and_are_counted, fixture) {
  const auto job = made();
  contracts::outgoing_call_ptr sent;
  gateway->receive([&](const contracts::outgoing_call_ptr& came) { sent = came; }, caf::after(test::patience) >> [] {});
  BOOST_TEST((sent == job));
  BOOST_TEST(services.counts.calls_made == 1u);
  BOOST_TEST(services.counts.calls_waiting == 1u);
  job->ended = true;
}

BOOST_FIXTURE_TEST_CASE(that_were_answered_keep_their_first_answer, fixture) {  // OG-1
  const auto job = made();
  auto first = result(1);
  auto second = result(2);
  calls.finish(*job, first);
  calls.finish(*job, second);
  calls.fail(*job, error(errc::peer_down, "it is down"));
  BOOST_TEST(get<std::int64_t>(job->reply.get().values, "number") == 1);
  BOOST_TEST(services.counts.calls_waiting == 0u);
  BOOST_TEST(services.counts.calls_failed == 0u);
}

BOOST_FIXTURE_TEST_CASE(that_failed_keep_their_first_failure, fixture) {  // OG-1
  const auto job = made();
  auto late = result(1);
  calls.fail(*job, error(errc::peer_down, "it is down"));
  calls.fail(*job, error(errc::misuse, "another reason"));
  calls.finish(*job, late);
  BOOST_CHECK_EXCEPTION(job->reply.get(), error, [](const error& failed) {
    return failed.code() == errc::peer_down && std::string(failed.what()).find("it is down") != std::string::npos;
  });
  BOOST_TEST(services.counts.calls_waiting == 0u);
  BOOST_TEST(services.counts.calls_failed == 1u);
}

// A message names no more failed passes than its receiver takes.
BOOST_FIXTURE_TEST_CASE(in_a_context_with_too_many_failed_passes_fail, fixture) {
  services.directory.add({"there", node_id{2}, "127.0.0.1", 1}, caf::actor_cast<caf::strong_actor_ptr>(gateway));
  const auto context = services.contexts.open();
  const auto fail_a_pass = [&] { context.record->end(context.record->begin(true)->number, false); };
  for (std::size_t i = 0; i < max_entries; ++i) fail_a_pass();
  const auto taken = made(context.record->id());
  BOOST_TEST(taken->request.failed.size() == max_entries);
  BOOST_TEST(!taken->ended);
  taken->ended = true;
  fail_a_pass();
  const auto refused_call = made(context.record->id());
  BOOST_TEST_REQUIRE(refused_call->ended);
  BOOST_CHECK_EXCEPTION(refused_call->reply.get(), error, [](const error& refused) {
    return refused.code() == errc::misuse && std::string(refused.what()).find("131073 passes") != std::string::npos;
  });
  services.contexts.stop();
  end(context.actor);
}

BOOST_AUTO_TEST_SUITE_END()
