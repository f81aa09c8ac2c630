// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/tracer.hpp>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>

namespace {

using troupe::tracing::trace_log;
using troupe::tracing::trace_span;

trace_span numbered(int i) { return {"span " + std::to_string(i), "test", i, i + 1, "track"}; }

struct fixture {
  troupe::nodes::system_config config{troupe::nodes::system_config::for_tests{}};
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  troupe::tracing::tracer_actor tracer;

  explicit fixture(std::size_t capacity = 100) : tracer(troupe::tracing::spawn_tracer(system, capacity)) {}
  ~fixture() {
    caf::anon_send_exit(tracer, caf::exit_reason::user_shutdown);
    run();
  }

  std::size_t run() {
    std::size_t jobs = 0;
    while (scheduler.try_run_once()) ++jobs;
    return jobs;
  }

  trace_log collect() {
    caf::scoped_actor self{system};
    trace_log result;
    auto answer = self->request(tracer, caf::infinite, troupe::support::collect_atom::value);
    run();
    answer.receive([&](trace_log& log) { result = std::move(log); }, [](caf::error&) { BOOST_ERROR("no log"); });
    return result;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_recorded_span_is_collected_and_stays) {
  fixture here;
  troupe::tracing::trace_recorder recorder(here.tracer, true);
  recorder.record("forward", "call", 10, 20, "calls");
  recorder.record("backward", "pass", 20, 30);
  here.run();
  const trace_log expected{{{"forward", "call", 10, 20, "calls"}, {"backward", "pass", 20, 30, "pass"}}, 0};
  BOOST_TEST((here.collect() == expected));
  BOOST_TEST((here.collect() == expected));
}

// TR-1
BOOST_AUTO_TEST_CASE(older_spans_give_way_and_are_counted) {
  troupe::tracing::span_ring ring(3);
  for (int i = 0; i < 3; ++i) ring.add(numbered(i));
  BOOST_TEST((ring.log() == trace_log{{numbered(0), numbered(1), numbered(2)}, 0}));
  for (int i = 3; i < 8; ++i) ring.add(numbered(i));
  BOOST_TEST((ring.log() == trace_log{{numbered(5), numbered(6), numbered(7)}, 5}));
}

// TR-1
BOOST_AUTO_TEST_CASE(the_tracer_keeps_to_its_capacity) {
  fixture here(2);
  troupe::tracing::trace_recorder recorder(here.tracer, true);
  for (int i = 0; i < 5; ++i) recorder.record("span " + std::to_string(i), "test", i, i + 1, "track");
  here.run();
  BOOST_TEST((here.collect() == trace_log{{numbered(3), numbered(4)}, 3}));
}

// TR-2
BOOST_AUTO_TEST_CASE(a_recorder_that_is_off_sends_nothing) {
  fixture here;
  here.run();
  troupe::tracing::trace_recorder recorder(here.tracer, false);
  const auto copy = recorder;
  copy.record("unseen", "test", 1, 2);
  troupe::tracing::trace_recorder().record("unseen", "test", 1, 2);
  BOOST_TEST(here.run() == 0);
  recorder.enable(true);
  BOOST_TEST(copy.enabled());
  copy.record("seen", "test", 1, 2);
  BOOST_TEST(here.run() == 1);
  BOOST_TEST(here.collect().spans.size() == 1);
}
