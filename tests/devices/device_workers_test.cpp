// SPDX-License-Identifier: BSD-3-Clause
// Device workers: the actors of a worker_team that serve the lanes of accelerators.
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/passes/lane_worker.hpp>
#include <troupe/actors/worker_team.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/lane.hpp>

#include "support/contains.hpp"
#include "support/nested_pass.hpp"
#include "support/simulated_fixture.hpp"
#include "support/thread_count.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct host : simulated::fixture {
  nodes::system_config config{nodes::system_config::for_tests{}};  // the scheduler has no threads, but the workers have
  caf::actor_system system{config};
};

struct task final : engine::lane_task {
  explicit task(std::function<void()> what) : lane_task(0, 0), what(std::move(what)) {}
  void run() noexcept override { what(); }
  std::function<void()> what;
};

/// Calls `get` on the worker of the lane.
template <class Get>
auto ask(engine::lane& of, Get get) {
  std::promise<decltype(get())> answer;
  of.add(std::make_shared<task>([&] { answer.set_value(get()); }));
  return answer.get_future().get();
}

c10::Device current_device() { return c10::impl::VirtualGuardImpl(at::kPrivateUse1).getDevice(); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(device_workers, host)

BOOST_AUTO_TEST_CASE(have_their_device_as_current_device) {  // LW-2
  const auto worker = passes::spawn_lane_worker(system, second);
  std::promise<c10::Device> of_worker;
  caf::anon_send(worker, passes::posted_work{[&] { of_worker.set_value(current_device()); }});
  BOOST_TEST((of_worker.get_future().get() == second));
  caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_CASE(of_devices_that_nobody_uses_make_no_context) {  // LW-2
  const simulated::unused_devices none;
  worker_team team(system, 1);
  const auto x = at::linspace(0, 1, 1000).requires_grad_();
  for (int round = 0; round < 3; ++round) backward({at::tanh(x).sum()}, {}, {.workers = &team});
  BOOST_TEST(simulated::unused_devices::uses() == 0);
  ask(*team.lane_of(second), current_device);
  BOOST_TEST(simulated::unused_devices::uses() == 1);
}

BOOST_AUTO_TEST_CASE(each_accelerator_has_one) {  // WT-2, LH-2
  worker_team team(system, 2);
  std::set<std::thread::id> threads;
  for (const c10::Device device : {first, second}) {
    engine::lane* const lane = team.lane_of(device);
    BOOST_REQUIRE(lane != nullptr);
    BOOST_TEST((ask(*lane, current_device) == device));
    threads.insert(ask(*lane, std::this_thread::get_id));
    threads.insert(ask(*lane, std::this_thread::get_id));
  }
  BOOST_TEST(threads.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_has_none) {
  worker_team team(system, 1);
  BOOST_TEST(team.lane_of(simulated::device(2)) == nullptr);
  BOOST_TEST(team.lane_of(c10::Device(at::kCUDA, 0)) == nullptr);
  BOOST_TEST(team.lane_of(c10::Device(at::kPrivateUse1)) == nullptr);
}

BOOST_AUTO_TEST_CASE(give_a_pass_the_bits_that_it_has_without_them) {
  worker_team team(system, 1);
  const auto gradients = [&](engine::cpu_workers* workers) {
    const auto x = at::linspace(0, 1, 1000).requires_grad_();
    at::Tensor sum = at::zeros({});
    for (const c10::Device device : {c10::Device(at::kCPU), first, second})
      for (int i = 0; i < 3; ++i) sum = sum + at::tanh(x.to(device) * (i + 0.3)).sum().cpu();
    backward({sum}, {}, {.workers = workers});
    simulated::synchronize();
    return x.grad();
  };
  const auto expected = gradients(nullptr);
  for (int round = 0; round < 20; ++round) BOOST_TEST(at::equal(gradients(&team), expected));
}

// The memory of the devices runs out at the first tensor of a pass, then at the second, and so on.
BOOST_AUTO_TEST_CASE(whose_memory_runs_out_anywhere_end_the_pass_and_go_on) {
  worker_team team(system, 1);
  const auto x = at::linspace(0, 1, 1000).requires_grad_();
  at::Tensor sum = at::zeros({});
  for (const c10::Device device : {first, second})
    for (int i = 0; i < 3; ++i) sum = sum + at::tanh(x.to(device) * (i + 0.3)).sum().cpu();
  const auto pass = [&] { return troupe::grad({sum}, {x}, {}, {.keep_graph = true, .workers = &team})[0]; };
  const auto expected = pass();
  simulated::synchronize();
  const auto bytes = simulated::used_bytes();
  const new_threads more;
  int refusals = 0;
  for (bool ends = false; !ends; refusals += ends ? 0 : 1) {
    try {
      const simulated::scarce_memory few(refusals);
      pass();
      ends = true;
      BOOST_TEST(!few.refused());
    } catch (const c10::OutOfMemoryError& failed) {
      BOOST_TEST(contains(failed.what(), "simulated:"));
      BOOST_TEST(contains(failed.what(), "troupe: the error came from function '"));
      BOOST_TEST(contains(failed.what(), "devices of its gradients: "));
    }
    BOOST_TEST(at::equal(pass(), expected));
    simulated::synchronize();
    BOOST_TEST(simulated::used_bytes() == bytes);
  }
  BOOST_TEST(refusals > 12);
  BOOST_TEST(more.count() == 0U);
}

// A function of the device runs a pass that waits for a function of the same device, and so on. The one worker of the device serves its
// lane meanwhile.
BOOST_AUTO_TEST_CASE(serve_their_lane_while_a_function_waits_to_any_depth) {
  struct value {
    static at::Tensor of(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& next) {
      return next(x) + x.cpu().to(x.device());  // the CPU has its part, too
    }
  };
  constexpr int depth = 300;
  worker_team team(system, 1);
  const auto x = at::ones({2}, at::device(first)).requires_grad_();
  const auto y = nested_pass<value>::on(x, depth, &team);
  troupe::backward({y.sum()}, {}, {.workers = &team});
  simulated::synchronize();
  BOOST_TEST(x.grad().cpu()[1].item<float>() == depth + 2);
}

BOOST_AUTO_TEST_SUITE_END()
