// SPDX-License-Identifier: BSD-3-Clause
// The sample of CONTRIBUTING.md, which quotes it from "sample:begin" to "sample:end".
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/messages/caf_error.hpp>

// sample:begin
namespace {

using ask_atom = caf::atom_constant<caf::atom("ask")>;

using source_actor = caf::typed_actor<caf::replies_to<ask_atom>::with<double>>;

/// Adds up what its sources say.
///   TO-1  the total is complete, or the request fails with the first reason.
///   TO-2  every request is answered by the deadline.
using total_actor = caf::typed_actor<caf::replies_to<ask_atom>::with<double>>;

/// The handlers of the actor. A desk has its state for itself, and is given what it uses.
class total_desk {
 public:
  total_desk(troupe::support::desk_actor self, std::vector<source_actor> sources, std::chrono::milliseconds deadline)
      : self_(self), sources_(std::move(sources)), deadline_(deadline) {}

  caf::result<double> ask() {
    auto answer = self_->response_promise<double>();
    auto sum = std::make_shared<double>(0);
    auto missing = std::make_shared<std::size_t>(sources_.size());
    auto failed = [answer](caf::error& reason) mutable {
      if (answer.pending()) answer.deliver(std::move(reason));
    };
    for (const auto& source : sources_)
      self_->request(source, deadline_, ask_atom::value)
        .then(
          [=](double value) mutable {
            *sum += value;
            if (--*missing == 0 && answer.pending()) answer.deliver(*sum);
          },
          failed);
    return answer;
  }

 private:
  troupe::support::desk_actor self_;
  const std::vector<source_actor> sources_;
  const std::chrono::milliseconds deadline_;
};

struct total_state {
  static inline const char* name = "total";
  std::optional<total_desk> desk;
};

total_actor::behavior_type make_total(total_actor::stateful_pointer<total_state> self, std::vector<source_actor> sources,
                                      std::chrono::milliseconds deadline) {
  auto& desk = self->state.desk.emplace(self, std::move(sources), deadline);
  return {[&desk](ask_atom) { return desk.ask(); }};
}

// The deterministic scheduler runs actors and lets time pass when told to, so a test needs no sleep.
struct fixture {
  troupe::nodes::system_config config{troupe::nodes::system_config::for_tests{}};
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  caf::scoped_actor self{system};
  std::vector<caf::actor> all;

  ~fixture() {  // a system waits for its last actor
    for (auto& actor : all) self->send_exit(actor, caf::exit_reason::user_shutdown);
    scheduler.run();
  }

  template <class Actor>
  Actor keep(Actor spawned) {
    all.push_back(caf::actor_cast<caf::actor>(spawned));
    return spawned;
  }
  source_actor says(double value) {
    return keep(system.spawn([value]() -> source_actor::behavior_type { return {[value](ask_atom) { return value; }}; }));
  }
  source_actor fails() {
    return keep(system.spawn([]() -> source_actor::behavior_type {
      return {[](ask_atom) -> caf::result<double> { return make_error(troupe::errc::stopping, "the node is stopping"); }};
    }));
  }
  source_actor never_answers() {
    return keep(system.spawn([](source_actor::pointer own) -> source_actor::behavior_type {
      return {[own](ask_atom) -> caf::result<double> { return own->make_response_promise<double>(); }};
    }));
  }
  total_actor total(std::vector<source_actor> sources) {
    return keep(system.spawn(make_total, std::move(sources), std::chrono::milliseconds(100)));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_total_adds_what_every_source_says, fixture) {  // TO-1
  auto pending = self->request(total({says(1), says(2), says(4)}), caf::infinite, ask_atom::value);
  scheduler.run();
  pending.receive([](double sum) { BOOST_TEST(sum == 7); }, [](caf::error&) { BOOST_ERROR("expected a total"); });
}

BOOST_FIXTURE_TEST_CASE(a_total_fails_with_the_reason_of_a_source, fixture) {  // TO-1
  auto pending = self->request(total({says(1), fails()}), caf::infinite, ask_atom::value);
  scheduler.run();
  pending.receive([](double) { BOOST_ERROR("expected an error"); },
                  [](caf::error& reason) { BOOST_TEST((reason == make_error(troupe::errc::stopping, ""))); });
}

BOOST_FIXTURE_TEST_CASE(a_source_that_never_answers_fails_the_total_at_its_deadline, fixture) {  // TO-2
  auto pending = self->request(total({says(1), never_answers()}), caf::infinite, ask_atom::value);
  scheduler.run();
  scheduler.advance_time(std::chrono::milliseconds(100));
  scheduler.run();
  pending.receive([](double) { BOOST_ERROR("expected an error"); },
                  [](caf::error& reason) { BOOST_TEST((reason == caf::sec::request_timeout)); });
}
// sample:end
