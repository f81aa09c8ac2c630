// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <boost/test/unit_test.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "support/collected_warnings.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(drop_in_errors)

namespace {

struct my_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

template <class Thrown>
at::Tensor throwing(const at::Tensor& from, Thrown what) {
  return through(from, [what](const at::Tensor&) -> at::Tensor { throw what; });
}

/// The text of an error, and the warnings.
std::vector<std::string> error_and_warnings(const std::function<void()>& run) {
  collected_warnings warnings;
  const std::string text = error_of(run);
  warnings.texts.push_back(text);
  return warnings.texts;
}

}  // namespace

// SU-2
BOOST_AUTO_TEST_CASE(an_exception_arrives_as_itself) {
  const installed engine;
  const auto x = leaf({2});
  BOOST_CHECK_EXCEPTION(torch::autograd::backward({throwing(x, my_error("mine")).sum()}), my_error,
                        [](const my_error& error) { return std::string(error.what()) == "mine"; });
}

// SU-2
BOOST_AUTO_TEST_CASE(what_is_no_std_exception_arrives_as_itself_too) {
  const installed engine;
  const auto x = leaf({2});
  BOOST_CHECK_EXCEPTION(torch::autograd::backward({throwing(x, 42).sum()}), int, [](int number) { return number == 42; });
  // After such an exception, libtorch's own engine would run every later pass of this thread as a nested pass.
  bool at_top = false;
  const auto y = through(x, [&](at::Tensor gradient) {
    at_top = true;
    return gradient;
  });
  torch::autograd::backward({y.sum()});
  BOOST_TEST(at_top);
  BOOST_TEST(at::equal(x.grad(), at::ones({2})));
}

// SU-2
BOOST_AUTO_TEST_CASE(what_is_no_std_exception_passes_through_nested_passes) {
  const installed engine;
  const auto x = leaf({2});
  const auto inner = throwing(x, 42).sum();
  const auto outer = through(x, [&](at::Tensor gradient) {
    torch::autograd::backward({inner}, {}, true);
    return gradient;
  });
  BOOST_CHECK_EXCEPTION(torch::autograd::backward({outer.sum()}), int, [](int number) { return number == 42; });
}

BOOST_AUTO_TEST_CASE(the_graph_and_the_engine_are_usable_after_an_error) {
  const installed engine;
  const auto x = leaf({2});
  bool fails = true;
  const auto y = through(x, [&](at::Tensor gradient) {
    if (fails) throw my_error("once");
    return gradient;
  });
  const auto loss = y.sum();
  BOOST_CHECK_THROW(torch::autograd::backward({loss}, {}, true), my_error);
  BOOST_TEST(!x.grad().defined());
  fails = false;
  torch::autograd::backward({loss});
  BOOST_TEST(at::equal(x.grad(), at::ones({2})));
}

BOOST_AUTO_TEST_CASE(final_callbacks_do_not_run_after_an_error) {
  const auto run = [] {
    std::vector<std::string> trace;
    const auto x = leaf({2});
    const auto failing = through(x, [](const at::Tensor&) -> at::Tensor { throw my_error("late"); });
    const auto queueing = through(failing, [&](at::Tensor gradient) {
      torch::autograd::Engine::get_default_engine().queue_callback([&] { trace.push_back("callback"); });
      return gradient;
    });
    trace.push_back(error_of([&] { torch::autograd::backward({queueing.sum()}); }));
    return trace;
  };
  const auto found = on_both(run);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(found.troupe == std::vector<std::string>{"std: late"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(errors_have_libtorchs_texts) {
  const auto x = leaf({2, 3});
  const auto run = [&] {
    const auto y = x.exp();
    const auto wrong = through(
      x, [](const at::Tensor&) { return at::ones({5}); }, "wrong");
    const auto freed = x.exp();
    torch::autograd::backward({freed.sum()});
    return std::vector<std::string>{
      error_of([&] { torch::autograd::backward({y}); }),
      error_of([&] { torch::autograd::backward({y}, {at::ones({4})}); }),
      error_of([&] { torch::autograd::backward({wrong.sum()}); }),
      error_of([&] { torch::autograd::grad({y.sum()}, {}); }),
      error_of([&] { torch::autograd::grad({y.sum()}, {leaf({2})}); }),
      error_of([&] {
        torch::autograd::backward({freed}, {at::ones({2, 3})});
      }),
      error_of([&] { torch::autograd::Engine::get_default_engine().queue_callback([] {}); }),
    };
  };
  const auto found = on_both(run);
  for (const std::string& each : found.libtorch) BOOST_TEST(each != "none");
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(anomaly_mode_names_the_function_and_shows_where_it_was_made) {
  const auto run = [] {
    const torch::autograd::DetectAnomalyGuard anomaly;
    const auto x = at::zeros({2}).requires_grad_();
    auto texts = error_and_warnings([&] { torch::autograd::backward({(x.sqrt() * 0).sum()}); });
    // The trace has addresses and frames of this program, which differ from call to call.
    for (std::string& each : texts) {
      each = each.substr(0, each.find("#0"));
      each = each.substr(0, 80);
    }
    return texts;
  };
  const auto found = on_both(run);
  BOOST_TEST(found.libtorch.back().find("returned nan values in its 0th output") != std::string::npos);
  BOOST_TEST(found.libtorch.size() > 1u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(warnings_of_functions_reach_the_caller_when_the_pass_is_over) {
  const auto run = [] {
    const auto x = leaf({2});
    std::size_t during = 99;
    collected_warnings warnings;
    const auto y = through(x, [&](at::Tensor gradient) {
      TORCH_WARN("from a function");
      during = warnings.texts.size();
      return gradient;
    });
    torch::autograd::backward({y.sum()});
    warnings.texts.push_back(std::to_string(during));
    return warnings.texts;
  };
  const auto found = on_both(run);
  BOOST_TEST(found.libtorch.size() == 2u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
