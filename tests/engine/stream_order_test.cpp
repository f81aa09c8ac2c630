// SPDX-License-Identifier: BSD-3-Clause
// A program with an accelerator, and without the library that orders work on accelerators.
#include <troupe/engine/stream_order.hpp>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/engine/backward.hpp>

#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe;

BOOST_FIXTURE_TEST_SUITE(without_devices, test::simulated::fixture)

// AS-1
BOOST_AUTO_TEST_CASE(a_graph_on_an_accelerator_is_refused_with_what_to_link) {
  BOOST_TEST(!engine::type_with_stream_order());
  auto x = at::ones({3}, at::device(at::kPrivateUse1)).requires_grad_();
  BOOST_CHECK_EXCEPTION(backward({(x * 2).sum()}), c10::Error, [](const c10::Error& why) {
    return test::contains(why.what(), "link the program with troupe::streams");
  });
  BOOST_TEST(!x.grad().defined());
}

BOOST_AUTO_TEST_CASE(a_graph_on_the_cpu_and_a_graph_without_elements_run) {
  for (const auto type : {at::kCPU, at::kMeta}) {
    auto x = at::ones({3}, at::device(type)).requires_grad_();
    backward({(x * 2).sum()});
    BOOST_TEST(x.grad().defined());
  }
}

BOOST_AUTO_TEST_SUITE_END()
