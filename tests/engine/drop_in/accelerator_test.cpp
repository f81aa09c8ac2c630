// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/drop_in/substitute.hpp>
#include <troupe/engine/running_pass.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "support/simulated_accelerator.hpp"
#include "support/twin_program.hpp"

using namespace troupe::test;

namespace {

struct with_accelerator {
  with_accelerator() { simulated::install(); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(drop_in_accelerator, with_accelerator)

BOOST_AUTO_TEST_CASE(a_pass_with_functions_on_an_accelerator_is_troupes_too) {
  const installed engine;
  bool inside = false;
  const auto x = at::ones({4}).requires_grad_();
  const auto y = x * 2;
  y.register_hook([&](const at::Tensor&) { inside = inside_troupe(); });
  torch::autograd::backward({(y.to(simulated::device()) * 3).sum().cpu()});
  BOOST_TEST(inside);
  BOOST_TEST(at::equal(x.grad(), at::full({4}, 6.0F)));
}

BOOST_AUTO_TEST_CASE(random_programs_on_streams_have_the_gradients_of_the_cpu) {
  const installed engine;
  const auto before = troupe::engine::passes_so_far();
  const std::vector<c10::Stream> all{c10::Stream(c10::Stream::DEFAULT, simulated::device()), simulated::new_stream(),
                                     c10::Stream(c10::Stream::DEFAULT, simulated::device(1)), simulated::new_stream(1)};
  for (unsigned seed = 1; seed <= 300; ++seed) {
    twin_program program(seed, all);
    const auto root = program.here.back().sum();
    const auto twin = program.there.back().sum();
    if (!root.requires_grad()) continue;
    torch::autograd::backward({root});
    const auto read = pass_with_gates(program, [&] { torch::autograd::backward({twin}); });
    for (std::size_t i = 0; i < program.leaves; ++i) {
      const auto& expected = program.here[i].grad();
      BOOST_TEST_REQUIRE(expected.defined() == read[i].defined(), "seed " << seed << ", leaf " << i);
      if (expected.defined()) BOOST_TEST(at::equal(read[i].cpu(), expected), "seed " << seed << ", leaf " << i);
    }
  }
  BOOST_TEST(troupe::engine::passes_so_far().libtorch - before.libtorch < 30u);  // those of a single function
}

BOOST_AUTO_TEST_CASE(final_callbacks_read_what_the_accelerator_has_made) {
  const installed engine;
  const c10::Stream own = simulated::new_stream();
  simulated::gate late(own);
  at::Tensor x;
  at::Tensor y;
  {
    const c10::StreamGuard on(own);
    x = at::ones({4}, at::device(simulated::device())).requires_grad_();
    y = (x * 3).sum();
  }
  at::Tensor read;
  y.register_hook(
    [&](const at::Tensor&) { torch::autograd::Engine::get_default_engine().queue_callback([&] { read = x.grad() * 1; }); });
  torch::autograd::backward({y});
  late.open();
  simulated::synchronize();
  BOOST_TEST(at::equal(read.cpu(), at::full({4}, 3.0F)));
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
