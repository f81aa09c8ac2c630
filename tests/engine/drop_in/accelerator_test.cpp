// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/fresh_stack.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "support/simulated_accelerator.hpp"

using namespace troupe::test;

namespace {

struct with_accelerator {
  with_accelerator() { simulated::install(); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(drop_in_accelerator, with_accelerator)

BOOST_AUTO_TEST_CASE(a_pass_with_functions_on_an_accelerator_is_left_to_libtorch) {
  const installed engine;
  bool inside = true;
  const auto x = at::ones({4}).requires_grad_();
  const auto y = x * 2;
  y.register_hook([&](const at::Tensor&) { inside = inside_troupe(); });
  torch::autograd::backward({(y.to(simulated::device()) * 3).sum().cpu()});
  BOOST_TEST(!inside);
  BOOST_TEST(at::equal(x.grad(), at::full({4}, 6.0F)));
}

BOOST_AUTO_TEST_CASE(a_pass_on_the_cpu_is_troupes_also_where_there_is_an_accelerator) {
  const installed engine;
  bool inside = false;
  const auto x = at::ones({4}).requires_grad_();
  x.register_hook([&](const at::Tensor&) { inside = inside_troupe(); });
  torch::autograd::backward({(x * 2).sum()});
  BOOST_TEST(inside);
}

// FS-1
BOOST_AUTO_TEST_CASE(a_fresh_stack_has_the_devices_and_streams_of_its_caller) {
  const c10::impl::VirtualGuardImpl accelerator(simulated::device().type());
  const auto first = simulated::device();
  const auto second = simulated::device(1);
  const c10::Stream own = simulated::new_stream();
  const c10::Stream before = accelerator.exchangeStream(own);
  const c10::DeviceGuard on_second(second);
  const c10::Stream untouched = accelerator.getStream(second);
  troupe::engine::on_fresh_stack([&] {
    BOOST_CHECK(accelerator.getStream(first) == own);
    BOOST_CHECK(accelerator.getStream(second) == untouched);
    BOOST_CHECK(accelerator.getDevice() == second);
  });
  accelerator.exchangeStream(before);
}

BOOST_AUTO_TEST_SUITE_END()
