// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/anomaly.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/plan.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "support/contains.hpp"

using namespace troupe::test;
using torch::autograd::DetectAnomalyGuard;
using trace = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(anomaly_mode)

namespace {

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

/// libtorch's traces are C++ backtraces with addresses, so only their headings are compared.
trace headings(const trace& texts) {
  trace all;
  for (const std::string& text : texts) {
    const auto begin = std::min(text.find_first_not_of('\n'), text.size());
    std::string heading = text.substr(begin, text.find('\n', begin) - begin);
    if (const auto at = heading.find("Traceback of forward call"); at != std::string::npos)
      heading = heading.substr(0, at + 25);
    all.push_back(heading);
  }
  return all;
}

/// The error of a pass in anomaly mode and the headings of its warnings.
trace error_and_warnings(const std::function<void()>& run) {
  const DetectAnomalyGuard detect;
  collected_warnings warnings;
  std::string text = error_of(run);
  trace all = headings(warnings.texts);
  all.push_back(text.substr(0, std::min(text.find('\n'), text.find(" (Error detected in"))));  // troupe adds the trace
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(finds_a_nan_as_libtorch_does) {
  const auto run = [](const way& run_on) {
    return error_and_warnings([&] {
      const auto x = at::zeros({2}).requires_grad_();
      run_on.backward({(x.sqrt() * 0).sum()});
    });
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.libtorch.size() >= 2u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(contains(found.troupe.back(), "Function 'SqrtBackward0' returned nan values in its 0th output."));
}

BOOST_AUTO_TEST_CASE(looks_for_no_nan_where_that_is_off) {
  const DetectAnomalyGuard detect(false);
  const auto x = at::zeros({2}).requires_grad_();
  troupe::backward({(x.sqrt() * 0).sum()});
  BOOST_TEST(x.grad().isnan().all().item<bool>());
}

BOOST_AUTO_TEST_CASE(prints_where_the_function_that_failed_was_made) {
  const auto run = [](const way& run_on) {
    return error_and_warnings([&] {
      const auto y = through(
        leaf({2}), [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("failed"); }, "failing");
      run_on.backward({y.exp().sum()});
    });
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(contains(found.troupe.front(), "Error detected in failing"));
}

BOOST_AUTO_TEST_CASE(prints_the_parents_of_a_function_that_a_graph_of_gradients_made) {
  const auto run = [](const way& run_on) {
    return error_and_warnings([&] {
      const auto x = at::zeros({2}).requires_grad_();
      // PowBackward0 makes the gradient of x ^ 1.5. The gradient of that gradient is infinite at 0. Infinity times 0 is NaN.
      const auto first = run_on.grad({x.pow(1.5).sum()}, {x}, {}, true, true)[0];
      run_on.backward({(first * 0).sum()});
    });
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.libtorch.size() >= 3u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(contains(found.troupe[1], "Previous calculation was induced by PowBackward0"));
}

BOOST_AUTO_TEST_CASE(prints_the_function_in_which_a_nested_pass_made_the_one_that_failed) {
  const auto run = [](const way& run_on) {
    return error_and_warnings([&] {
      const auto outer = through(
        leaf({2}),
        [&](at::Tensor gradient) {
          const c10::AutoGradMode recording(true);
          const auto x = at::zeros({2}).requires_grad_();
          run_on.backward({(x.sqrt() * 0).sum()});
          return gradient;
        },
        "recomputing");
      run_on.backward({outer.sum()});
    });
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.libtorch.size() >= 3u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(contains(found.troupe[1], "induced by recomputing"));
}

BOOST_AUTO_TEST_CASE(puts_the_trace_into_the_error) {
  const DetectAnomalyGuard detect;
  const collected_warnings warnings;
  const auto x = at::zeros({2}).requires_grad_();
  const std::string text = error_of([&] { troupe::backward({(x.sqrt() * 0).sum()}); });
  BOOST_TEST(contains(text, "returned nan values"));
  BOOST_TEST(contains(text, "Error detected in SqrtBackward0"));
}

BOOST_AUTO_TEST_CASE(has_a_task_tell_the_trace_for_errors_that_travel) {
  const DetectAnomalyGuard detect;
  const collected_warnings warnings;
  troupe::engine::graph_task_settings settings;
  const auto y = through(
                   leaf({2}), [](const at::Tensor&) -> at::Tensor { throw 1; }, "failing")
                   .sum();
  settings.roots = {torch::autograd::impl::gradient_edge(y)};
  settings.root_gradients = {at::ones({})};
  troupe::engine::graph_task task(std::move(settings));
  BOOST_CHECK_THROW(task.run(), int);
  BOOST_TEST(contains(task.failed_trace(), "Error detected in failing"));
}

// GT-8
BOOST_AUTO_TEST_CASE(does_not_compute_what_the_pass_leaves_out) {
  const auto run = [](const way& run_on) {
    return error_and_warnings([&] {
      const auto a = at::full({4}, 1.5).requires_grad_();
      const auto x = at::linspace(0.1, 2, 4).requires_grad_();
      run_on.grad({at::igamma(a, x).sum()}, {x});
    });
  };
  const auto found = both_ways(run);
  BOOST_TEST(found.libtorch.back() == "none");
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(names_no_parent_of_a_function_that_another_thread_made) {
  const auto run = [](const way& run_on) {
    return error_and_warnings([&] {
      const auto outer = through(leaf({2}), [&](at::Tensor gradient) {
        const c10::AutoGradMode recording(true);
        at::Tensor made_elsewhere;
        const auto from = at::sequence_number::peek();
        std::thread([&] {
          while (at::sequence_number::peek() < from) at::sequence_number::get_and_increment();
          made_elsewhere = (at::zeros({2}).requires_grad_().sqrt() * 0).sum();
        }).join();
        const auto x = leaf({2});
        while (at::sequence_number::peek() < from + 10)  // the other thread's sequence numbers are in this range
          x.exp();
        run_on.backward({made_elsewhere + x.sum()});
        return gradient;
      });
      run_on.backward({outer.sum()});
    });
  };
  const auto found = both_ways(run);
  BOOST_TEST(contains(found.troupe.front(), "Error detected in SqrtBackward0"));
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(std::none_of(found.troupe.begin(), found.troupe.end(),
                          [](const std::string& each) { return contains(each, "induced by through"); }));
}

// A function keeps its parent alive. A function that is its own parent would never be freed.
BOOST_AUTO_TEST_CASE(makes_no_function_its_own_parent) {
  const DetectAnomalyGuard detect;
  const auto x = leaf({2});
  {
    const auto from = at::sequence_number::peek();
    const auto y = x.exp();
    troupe::engine::adopt_outputs(*y.grad_fn(), from, {y});
    const troupe::engine::plan graph({{y.grad_fn(), 0}}, {}, {}, false);
    troupe::engine::adopt_functions(*y.grad_fn(), from, graph);
  }
  BOOST_TEST(x.use_count() == 1);  // the function held `x`
}

BOOST_AUTO_TEST_SUITE_END()
