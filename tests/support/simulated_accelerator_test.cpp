// SPDX-License-Identifier: BSD-3-Clause
#include "support/simulated_accelerator.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include "support/simulated_fixture.hpp"

using namespace troupe::test;

BOOST_FIXTURE_TEST_SUITE(simulated_accelerator, simulated::fixture)

BOOST_AUTO_TEST_CASE(operators_give_what_the_cpu_gives) {
  const auto a = at::randn({3, 4});
  const auto b = at::randn({4, 2});
  const auto there = at::tanh(at::mm(a.to(first), b.to(first)) * 2 + 1);
  BOOST_TEST(at::equal(there.cpu(), at::tanh(at::mm(a, b) * 2 + 1)));
  BOOST_TEST(at::allclose(at::softmax(a.to(first), 1).cpu(), at::softmax(a, 1)));  // no kernel of its own
  BOOST_TEST(at::equal(a.to(first).to(second).cpu(), a));
}

BOOST_AUTO_TEST_CASE(a_result_that_is_read_before_it_is_there_is_NaN) {  // SA-1
  simulated::gate late(stream);
  const c10::StreamGuard on(stream);
  const auto made = at::ones({2}, at::device(first));
  BOOST_TEST(std::isnan(*static_cast<const float*>(made.const_data_ptr())));
  late.open();
  simulated::synchronize();
  BOOST_TEST(*static_cast<const float*>(made.const_data_ptr()) == 1.0F);
}

BOOST_AUTO_TEST_CASE(another_stream_reads_NaN_unless_it_waits_for_an_event) {  // SA-1
  for (const bool waits : {false, true}) {
    simulated::gate late(stream);
    at::Tensor made;
    c10::Event ready(at::kPrivateUse1);
    {
      const c10::StreamGuard on(stream);
      made = at::ones({2}, at::device(first));
      ready.record(stream);
    }
    if (waits) ready.block(other);
    const c10::StreamGuard on(other);
    const auto twice = made * 2;
    simulated::settle();
    late.open();
    simulated::synchronize();
    BOOST_TEST(at::isnan(twice.cpu()).all().item<bool>() == !waits);
  }
}

BOOST_AUTO_TEST_CASE(memory_freed_while_another_stream_uses_it_is_NaN_unless_the_use_is_recorded) {  // SA-2
  for (const bool records : {false, true}) {
    auto lent = at::ones({2}, at::device(first));
    simulated::synchronize();
    if (records) c10::impl::VirtualGuardImpl(at::kPrivateUse1).recordDataPtrOnStream(lent.storage().data_ptr(), stream);
    simulated::gate late(stream);
    const c10::StreamGuard on(stream);
    const auto twice = lent * 2;
    lent.reset();
    simulated::settle();
    late.open();
    simulated::synchronize();
    BOOST_TEST(at::isnan(twice.cpu()).all().item<bool>() == !records);
  }
}

BOOST_AUTO_TEST_CASE(only_a_copy_to_pinned_memory_returns_before_it_is_done) {  // SA-3
  const auto made = at::ones({2}, at::device(first));
  const auto pinned = at::empty({2}, at::TensorOptions().pinned_memory(true));
  BOOST_TEST(pinned.is_pinned());
  simulated::synchronize();
  {
    simulated::gate late(default_stream);
    pinned.copy_(made, true);
    BOOST_TEST(at::isnan(pinned).all().item<bool>());
  }
  simulated::synchronize();
  BOOST_TEST(pinned[0].item<float>() == 1.0F);
  const auto pageable = at::empty({2});
  pageable.copy_(made, true);
  BOOST_TEST(pageable[0].item<float>() == 1.0F);
}

BOOST_AUTO_TEST_CASE(libtorch_sees_one_accelerator_with_two_devices) {
  const auto guard = c10::impl::VirtualGuardImpl(at::kPrivateUse1);
  BOOST_TEST(guard.deviceCount() == 2);
  BOOST_TEST(first.str() == "simulated:0");
}

BOOST_AUTO_TEST_SUITE_END()
