// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/cpu_continuation.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>
#include <caf/after.hpp>
#include <caf/send.hpp>

#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(compute_thread_of_a_node)

namespace {

struct fixture : test::lone_services {
  fixture() : lone_services(true) {
    record->begin(true);
    services.bursts.start(1, [this] { return passes::spawn_burst_thread(services); });
  }
  ~fixture() {
    for (const auto& thread : services.bursts.stop()) caf::anon_send_exit(thread, caf::exit_reason::user_shutdown);
  }

  contracts::burst_ptr burst_from(const at::Tensor& root) const {
    auto work = std::make_shared<passes::burst>();
    work->context = record->id();
    work->pass = pass_number{1};
    work->share.carried = protocol::whole_weight();
    work->state = std::make_unique<passes::pass_task>();
    work->state->record = record;
    work->state->settings.roots = {torch::autograd::impl::gradient_edge(root)};
    work->state->settings.root_gradients = {at::ones_like(root)};
    work->stop = std::make_shared<std::atomic<bool>>(false);
    return work;
  }

  /// Sends the burst and returns what comes back to the graph task.
  contracts::burst_ptr run(contracts::burst_ptr work) {
    const auto owner = caf::actor_cast<contracts::graph_task_actor>(caf::actor_cast<caf::actor>(gateway));
    services.bursts.post({std::move(work), owner});
    contracts::burst_ptr back;
    gateway->receive([&](contracts::burst_ptr& came) { back = std::move(came); }, caf::after(test::patience) >> [] {});
    return back;
  }

  contracts::context_record_ptr record =
    std::make_shared<passes::context_record>(context_id{services.self.id(), 1}, services.self.id(), services.counts);
  at::Tensor leaf = at::ones({2}).requires_grad_();
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(returns_a_burst_with_its_state_machine_and_keeps_nothing, fixture) {  // CC-1
  auto back = run(burst_from((leaf * 3).sum()));
  BOOST_REQUIRE(back);
  BOOST_TEST(!back->failure.has_value());
  BOOST_TEST(back->functions > 0u);
  BOOST_REQUIRE(back->state);
  {
    const checked_lock lock(back->state->leaves_mutex);
    BOOST_TEST(at::equal(back->state->leaves.find(leaf), at::full({2}, 3.0)));
  }
  const std::weak_ptr<passes::burst> first = back;
  back.reset();
  BOOST_REQUIRE(run(burst_from((leaf * 5).sum())));  // runs after the thread has dropped the first burst
  BOOST_TEST(first.expired());
}

BOOST_FIXTURE_TEST_CASE(returns_every_burst_whatever_its_functions_throw, fixture) {  // CC-2
  const auto known = leaf * 2;
  known.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("of a hook"); });
  const auto unknown = leaf * 2;
  unknown.register_hook([](const at::Tensor&) -> at::Tensor { throw 42; });
  for (const at::Tensor& each : {known, unknown}) {
    const auto back = run(burst_from(each));
    BOOST_REQUIRE(back);
    BOOST_TEST(static_cast<bool>(back->state));
    BOOST_REQUIRE(back->failure.has_value());
    BOOST_TEST(std::string(back->failure->what()).find("'here'") != std::string::npos, back->failure->what());
  }
}

BOOST_AUTO_TEST_SUITE_END()
