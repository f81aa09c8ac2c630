// SPDX-License-Identifier: BSD-3-Clause
// Passes over four devices and the CPU: streams, results, errors. Each test runs on the calling thread alone, and with lanes.
#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/devices/present_devices.hpp>
#include <troupe/engine/backward.hpp>

#include "devices/four_devices.hpp"
#include "devices/random_programs.hpp"
#include "support/simulated_lanes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct with_lanes : four_devices {
  simulated::lanes lanes;
  const std::vector<engine::cpu_workers*> both_ways{nullptr, &lanes};
};

/// A leaf and a product on each device, on the device's own stream. The product of the third device was recorded first, so it
/// runs last.
struct products {
  explicit products(const four_devices& on_all) {
    leaves.resize(4);
    made.resize(4);
    roots.resize(4);
    for (const std::size_t i : {2U, 0U, 1U, 3U}) {
      on(on_all.own[i], [&] {
        leaves[i] = at::ones({3}, at::device(on_all.all[i])).requires_grad_();
        made[i] = leaves[i] * factor(i);
        return roots[i] = made[i].sum();
      });
    }
  }

  static double factor(std::size_t i) { return static_cast<double>(i) + 2; }

  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> made;
  std::vector<at::Tensor> roots;
};

std::vector<std::unique_ptr<simulated::gate>> gates_before(const std::vector<c10::Stream>& streams) {
  std::vector<std::unique_ptr<simulated::gate>> gates;
  for (const auto& each : streams) gates.push_back(std::make_unique<simulated::gate>(each));
  return gates;
}

/// Opens one gate after the other, each when all other work has run as far as it can.
void open(std::vector<std::unique_ptr<simulated::gate>>& gates) {
  for (auto& each : gates) {
    simulated::settle();
    each.reset();
  }
  simulated::synchronize();
}

bool is_full_of(const at::Tensor& x, double value) {
  return x.defined() && at::equal(x.cpu(), at::full({3}, value, at::kFloat));
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(four_devices_are_found, four_devices) {
  BOOST_TEST(devices::names_of_present_devices() == "cpu, simulated:0, simulated:1, simulated:2, simulated:3");
  BOOST_TEST(devices::is_present(fourth));
  BOOST_TEST(!devices::is_present(simulated::device(4)));
}

BOOST_FIXTURE_TEST_SUITE(passes_over_four_devices, with_lanes)

BOOST_AUTO_TEST_CASE(wait_on_each_device_that_a_gradient_comes_through) {  // SO-2
  const auto program = [&](at::Tensor x, bool is_on_devices) {
    for (const std::size_t i : {0U, 1U, 2U, 3U, 1U, 0U, 3U, 2U}) {
      const auto step = [&] { return at::tanh((is_on_devices ? x.to(all[i]) : x) * (0.5 + static_cast<double>(i))); };
      x = is_on_devices ? on(own[i], step) : step();
    }
    return x.sum();
  };
  const auto here = at::linspace(0.1, 1, 3).requires_grad_();
  troupe::backward({program(here, false)});
  const auto x = here.detach().to(first).requires_grad_();
  const auto root = on(defaults[2], [&] { return program(x, true); });
  for (auto* workers : both_ways)
    for (const auto& streams : {own, defaults})
      for (const auto& held_up : streams) {
        x.mutable_grad().reset();
        auto gates = gates_before({held_up});
        troupe::backward({root}, {}, {.keep_graph = true, .workers = workers});
        open(gates);
        BOOST_TEST(at::equal(x.grad().cpu(), here.grad()), held_up << " was held up");
      }
}

BOOST_AUTO_TEST_CASE(sum_the_gradients_of_four_devices_when_each_is_there) {  // SO-2
  const auto x = on(own[0], [&] { return at::ones({3}, at::device(first)).requires_grad_(); });
  std::vector<at::Tensor> roots;
  for (std::size_t i = 0; i < 4; ++i) roots.push_back(on(own[i], [&] { return (x.to(all[i]) * products::factor(i)).sum(); }));
  for (auto* workers : both_ways)
    for (const auto& held_up : own) {
      x.mutable_grad().reset();
      auto gates = gates_before({held_up});
      troupe::backward(roots, {}, {.keep_graph = true, .workers = workers});
      open(gates);
      BOOST_TEST(is_full_of(x.grad(), 2 + 3 + 4 + 5), held_up << " was held up");
    }
}

BOOST_AUTO_TEST_CASE(go_to_the_cpu_and_back_with_the_gradients_of_the_cpu) {
  const auto program = [&](at::Tensor x, bool is_on_devices) {
    at::Tensor sum = at::zeros({});
    for (std::size_t i = 0; i < 4; ++i)
      for (int j = 0; j < 3; ++j) {
        const auto part = at::tanh((is_on_devices ? x.to(all[i]) : x) * (0.3 + j));
        sum = sum + ((is_on_devices ? part.cpu() : part) * x).sum();
      }
    return sum;
  };
  const auto here = at::linspace(0, 1, 1000).requires_grad_();
  troupe::backward({program(here, false)});
  for (int round = 0; round < 20; ++round)
    for (auto* workers : both_ways) {
      const auto x = here.detach().clone().requires_grad_();
      troupe::backward({program(x, true)}, {}, {.workers = workers});
      BOOST_TEST(at::equal(x.grad(), here.grad()));
    }
}

BOOST_AUTO_TEST_CASE(run_each_function_on_the_stream_and_the_device_of_its_forward) {  // SO-1
  const c10::impl::VirtualGuardImpl accelerator(at::kPrivateUse1);
  const products graph(*this);
  std::vector<std::optional<c10::Stream>> seen(4);
  for (std::size_t i = 0; i < 4; ++i)
    graph.made[i].register_hook([&, i](const at::Tensor&) { seen[i] = accelerator.getStream(accelerator.getDevice()); });
  for (auto* workers : both_ways) {
    std::fill(seen.begin(), seen.end(), std::nullopt);
    troupe::backward(graph.roots, {}, {.keep_graph = true, .workers = workers});
    for (std::size_t i = 0; i < 4; ++i) BOOST_TEST((seen[i] == own[i]), own[i]);
  }
}

BOOST_AUTO_TEST_CASE(end_with_waits_of_the_callers_streams_of_all_devices) {  // SO-5
  const auto callers = new_streams();
  const products graph(*this);
  for (auto* workers : both_ways)
    for (const bool accumulates : {true, false}) {
      const pass_options options{.keep_graph = true, .workers = workers};
      auto streams = own;
      streams.insert(streams.end(), callers.begin(), callers.end());
      auto gates = gates_before(streams);
      std::vector<at::Tensor> read;
      {
        const c10::MultiStreamGuard current(callers);
        std::vector<at::Tensor> gradients;
        if (accumulates) {
          troupe::backward(graph.roots, {}, options);
          for (const auto& leaf : graph.leaves) gradients.push_back(std::move(leaf.mutable_grad()));
        } else {
          gradients = troupe::grad(graph.roots, graph.leaves, {}, options);
        }
        for (const auto& each : gradients) read.push_back(each * 1);
      }  // the memory of the gradients goes back to the streams that made them before the caller's streams have read it
      open(gates);
      for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(is_full_of(read[i], products::factor(i)), all[i]);
    }
}

BOOST_AUTO_TEST_CASE(that_fail_on_one_device_let_the_callers_streams_wait_for_the_others) {  // SO-5
  const products graph(*this);
  for (auto* workers : both_ways) {
    for (const auto& leaf : graph.leaves) leaf.mutable_grad().reset();
    const auto failing =
      graph.made[2].register_hook([](const at::Tensor&) { throw std::runtime_error("of the third device"); });
    auto gates = gates_before(own);
    BOOST_CHECK_EXCEPTION(troupe::backward(graph.roots, {}, {.keep_graph = true, .workers = workers}), std::runtime_error,
                          [](const auto& error) { return error.what() == std::string("of the third device"); });
    std::vector<at::Tensor> read(4);
    for (std::size_t i = 0; i < 4; ++i)
      if (graph.leaves[i].grad().defined()) read[i] = graph.leaves[i].grad() * 1;
    open(gates);
    for (std::size_t i = 0; i < 4; ++i) {
      if (i == 2) BOOST_TEST(!read[i].defined());
      if (i != 2 && workers == nullptr) BOOST_TEST(read[i].defined(), all[i]);  // lanes run the functions in any order
      if (read[i].defined()) BOOST_TEST(is_full_of(read[i], products::factor(i)), all[i]);
    }
    graph.made[2].remove_hook(failing);
    troupe::backward(graph.roots, {}, {.keep_graph = true, .workers = workers});
    for (std::size_t i = 0; i < 4; ++i)
      BOOST_TEST(is_full_of(graph.leaves[i].grad(), (read[i].defined() ? 2 : 1) * products::factor(i)), all[i]);
  }
}

BOOST_AUTO_TEST_CASE(may_run_in_functions_and_lead_to_the_next_device) {
  value_of_next_device::streams = own;
  for (auto* workers : both_ways)
    for (const auto& held_up : own)
      for (const int depth : {1, 2, 7}) {
        std::vector<at::Tensor> leaves;
        std::vector<at::Tensor> roots;
        for (std::size_t i = 0; i < 4; ++i)
          roots.push_back(on(own[i], [&] {
            leaves.push_back(at::ones({3}, at::device(all[i])).requires_grad_());
            return pass_on_next_device::on(leaves[i], depth, workers).sum();
          }));
        auto gates = gates_before({held_up});
        troupe::backward(roots, {}, {.workers = workers});
        open(gates);
        for (const auto& leaf : leaves) BOOST_TEST(is_full_of(leaf.grad(), depth + 2), leaf.device());
      }
}

BOOST_AUTO_TEST_CASE(of_random_programs_have_the_gradients_of_the_cpu) {
  auto streams = own;
  streams.insert(streams.end(), defaults.begin(), defaults.end());
  compare_random_programs(streams, 200);
}

BOOST_AUTO_TEST_SUITE_END()
