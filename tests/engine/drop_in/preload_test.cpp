// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <string>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <boost/test/unit_test.hpp>

// This program was built without troupe. It runs with LD_PRELOAD=libtroupe_preload.so.

BOOST_AUTO_TEST_SUITE(drop_in_preload)

BOOST_AUTO_TEST_CASE(an_unchanged_program_runs_on_troupes_engine) {
  bool inside = false;
  std::string running;
  const auto x = at::ones({2}).requires_grad_();
  const auto y = x.exp();
  y.register_hook([&](const at::Tensor&) {
    // A pass with inputs lists its functions. One of them is troupe's private function.
    for (const auto& [function, info] : *torch::autograd::get_current_graph_task_exec_info())
      inside = inside || function->name() == "troupe::pass";
    running = torch::autograd::get_current_node()->name();
  });
  const auto gradients = torch::autograd::grad({y.sum()}, {x});
  BOOST_TEST(inside);
  BOOST_TEST(running == "ExpBackward0");
  BOOST_TEST(at::equal(gradients[0], x.detach().exp()));
  BOOST_TEST(torch::autograd::get_current_node() == nullptr);
}

// A wrong name would hide nothing, and tell nobody.
BOOST_AUTO_TEST_CASE(the_preloaded_library_hears_when_compiled_autograd_is_set) {
  Dl_info found{};
  BOOST_TEST_REQUIRE(dladdr(reinterpret_cast<void*>(&torch::autograd::Engine::set_compiled_autograd), &found) != 0);
  BOOST_TEST(std::string(found.dli_fname).ends_with("libtroupe_preload.so"));
}

BOOST_AUTO_TEST_CASE(exceptions_pass_through_the_preloaded_library) {
  const auto x = at::ones({2}).requires_grad_();
  const auto y = x * 2;
  y.register_hook([](const at::Tensor&) { throw 42; });
  BOOST_CHECK_THROW(torch::autograd::backward({y}, {at::ones({2})}, true), int);
  BOOST_CHECK_THROW(torch::autograd::backward({y}, {at::ones({7})}, true), c10::Error);
}

BOOST_AUTO_TEST_SUITE_END()
