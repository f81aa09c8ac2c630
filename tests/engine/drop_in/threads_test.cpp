// SPDX-License-Identifier: BSD-3-Clause
#include <barrier>
#include <thread>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(drop_in_threads)

namespace {

constexpr int thread_count = 8;
constexpr int rounds = 50;

void on_threads(const std::function<void(int)>& run) {
  std::barrier start(thread_count);
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      run(i);
    });
  }
  for (auto& each : threads) each.join();
}

}  // namespace

BOOST_AUTO_TEST_CASE(many_threads_run_passes_over_graphs_of_their_own) {
  const installed engine;
  std::array<std::string, thread_count> differences;
  on_threads([&](int number) {
    for (int round = 0; round < rounds; ++round) {
      const auto x = at::full({4}, number + 1.0).requires_grad_();
      torch::autograd::backward({(x * x).sum() + (x.exp() * 0).sum()});
      differences[number] += difference(x.grad(), at::full({4}, 2 * (number + 1.0)));
    }
  });
  for (const std::string& each : differences) BOOST_TEST(each == "");
}

BOOST_AUTO_TEST_CASE(many_threads_run_passes_over_one_graph) {
  const installed engine;
  const auto x = at::ones({4}).requires_grad_();
  const auto loss = (x * 3).sum();
  on_threads([&](int) {
    for (int round = 0; round < rounds; ++round) torch::autograd::backward({loss}, {}, true);
  });
  BOOST_TEST(at::equal(x.grad(), at::full({4}, 3.0 * thread_count * rounds)));
}

BOOST_AUTO_TEST_CASE(the_engine_changes_while_threads_run_passes) {
  torch::autograd::backward({(at::ones({1}).requires_grad_() * 2).sum()});  // the first pass of a process has to be over
  std::array<std::string, thread_count> differences;
  on_threads([&](int number) {
    for (int round = 0; round < rounds; ++round) {
      if (number == 0) round % 2 == 0 ? troupe::install_engine() : troupe::uninstall_engine();
      const auto x = at::ones({4}).requires_grad_();
      differences[number] += difference(torch::autograd::grad({(x * x).sum()}, {x})[0], at::full({4}, 2.0F));
    }
  });
  troupe::uninstall_engine();
  for (const std::string& each : differences) BOOST_TEST(each == "");
}

BOOST_AUTO_TEST_SUITE_END()
