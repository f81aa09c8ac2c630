// SPDX-License-Identifier: BSD-3-Clause
// A worker_team with four device workers: functions of four devices at a time, passes within them, errors of one device.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <caf/actor_system.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/worker_team.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/lane.hpp>

#include "devices/four_devices.hpp"
#include "engine/notifying_hook.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct with_team : four_devices {
  nodes::system_config config{nodes::system_config::for_tests{}};  // the scheduler has no threads, but the workers have
  caf::actor_system system{config};
  worker_team team{system, 1};
};

/// A root on each device. All roots are ready when a pass begins.
struct branches {
  template <class Make>
  branches(const four_devices& on_all, Make make) {
    for (std::size_t i = 0; i < 4; ++i)
      on(on_all.own[i], [&] {
        ones.push_back(at::ones({3}, at::device(on_all.all[i])));
        leaves.push_back(ones[i].clone().requires_grad_());
        return roots.emplace_back(make(leaves[i]));
      });
  }

  /// Runs a pass whose roots go to the workers, because the workers hear that these functions take long.
  void pass(engine::cpu_workers& workers) const {
    for (std::size_t i = 0; i < 4; ++i)
      workers.costs().note(engine::cost_book::kind_of(*roots[i].grad_fn(), {ones[i]}), 1'000'000'000);
    workers.busy() = true;
    troupe::backward(roots, ones, {.keep_graph = true, .workers = &workers});
  }

  /// Whether each leaf has this gradient.
  bool have(float gradient) const {
    bool all = true;
    for (const auto& leaf : leaves) all = all && at::equal(leaf.grad().cpu(), at::full({3}, gradient));
    return all;
  }

  std::vector<at::Tensor> ones;  // the gradients of the roots
  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> roots;
};

at::Tensor product(const at::Tensor& x) { return x * 2 * 3; }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(workers_of_four_devices, with_team)

BOOST_AUTO_TEST_CASE(are_one_for_each_device) {  // WT-2
  struct question final : engine::lane_task {
    question() : lane_task(0, 0) {}
    void run() noexcept override {
      answer.set_value({c10::impl::VirtualGuardImpl(at::kPrivateUse1).getDevice(), std::this_thread::get_id()});
    }
    std::promise<std::pair<c10::Device, std::thread::id>> answer;
  };
  std::set<std::thread::id> threads;
  for (const c10::Device device : all) {
    auto* const lane = team.lane_of(device);
    BOOST_REQUIRE(lane != nullptr);
    const auto asked = std::make_shared<question>();
    lane->add(asked);
    const auto [current, thread] = asked->answer.get_future().get();
    BOOST_TEST((current == device));
    threads.insert(thread);
  }
  BOOST_TEST(threads.size() == 4u);
  BOOST_TEST(team.lane_of(simulated::device(4)) == nullptr);
}

BOOST_AUTO_TEST_CASE(run_a_function_of_each_device_at_the_same_time) {
  const branches graph(*this, product);
  meeting_of_devices meeting(4);
  std::atomic<int> alone{0};
  for (std::size_t i = 0; i < 4; ++i) watch(graph.roots[i], [&, i] { alone += meeting.come(all[i]) ? 0 : 1; });
  graph.pass(team);
  BOOST_TEST(alone == 0);
  BOOST_TEST(graph.have(6));
}

// Each worker waits within its function for a pass on the next device, whose worker waits too, and so on round the devices.
BOOST_AUTO_TEST_CASE(run_passes_round_the_devices_though_each_worker_waits_for_one) {  // LV-2
  value_of_next_device::streams = own;
  constexpr int depth = 60;
  for (int round = 0; round < 5; ++round) {
    const branches graph(*this, [&](const at::Tensor& x) { return pass_on_next_device::on(x, depth, &team); });
    meeting_of_devices meeting(4);
    std::atomic<int> alone{0};
    for (std::size_t i = 0; i < 4; ++i) watch(graph.roots[i], [&, i] { alone += meeting.come(all[i]) ? 0 : 1; });
    simulated::gate late(own[static_cast<std::size_t>(round) % 4]);
    graph.pass(team);
    simulated::settle();
    late.open();
    BOOST_TEST(alone == 0);
    BOOST_TEST(graph.have(depth + 2));
  }
}

// A function of one device throws while a function of each other device runs.
BOOST_AUTO_TEST_CASE(end_what_they_have_begun_when_a_function_of_one_device_fails) {  // JB-3, SO-5
  for (std::size_t guilty = 0; guilty < 4; ++guilty) {
    const branches graph(*this, product);
    meeting_of_devices meeting(4);
    std::promise<void> fails;
    const auto failed = fails.get_future().share();
    std::atomic<int> alone{0};
    std::vector<at::Tensor> made(4);
    std::vector<unsigned> hooks;
    for (std::size_t i = 0; i < 4; ++i)
      hooks.push_back(graph.roots[i].register_hook([&, i](const at::Tensor& gradient) {
        alone += meeting.come(all[i]) ? 0 : 1;
        if (i == guilty) {
          fails.set_value();
          throw std::runtime_error("of the test");
        }
        failed.wait();
        made[i] = gradient * 5;
      }));
    std::vector<std::unique_ptr<simulated::gate>> gates;
    for (const auto& each : own) gates.push_back(std::make_unique<simulated::gate>(each));
    BOOST_CHECK_THROW(graph.pass(team), std::runtime_error);
    BOOST_TEST(alone == 0);
    std::vector<at::Tensor> read(4);
    for (std::size_t i = 0; i < 4; ++i)
      if (i != guilty) read[i] = made[i] * 1;  // on the caller's stream
    simulated::settle();
    gates.clear();
    for (std::size_t i = 0; i < 4; ++i) {
      if (i != guilty) BOOST_TEST(at::equal(read[i].cpu(), at::full({3}, 5.0F)), all[i]);
      graph.roots[i].remove_hook(hooks[i]);
      graph.leaves[i].mutable_grad().reset();
    }
    graph.pass(team);
    BOOST_TEST(graph.have(6));
  }
}

BOOST_AUTO_TEST_CASE(give_a_pass_the_bits_that_it_has_without_them) {
  const auto gradients = [&](engine::cpu_workers* workers) {
    const auto x = at::linspace(0, 1, 1000).requires_grad_();
    at::Tensor sum = at::zeros({});
    for (const c10::Device device : all)
      for (int i = 0; i < 3; ++i) sum = sum + at::tanh(x.to(device) * (i + 0.3)).sum().cpu();
    backward({sum}, {}, {.workers = workers});
    return x.grad();
  };
  const auto expected = gradients(nullptr);
  for (int round = 0; round < 20; ++round) BOOST_TEST(at::equal(gradients(&team), expected));
}

BOOST_AUTO_TEST_SUITE_END()
