// SPDX-License-Identifier: BSD-3-Clause
// Which tensors stay on their device when they are offered, and what becomes of tensors that arrive on a device.
#include <troupe/devices/staging.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/devices/present_sharing.hpp>

#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_sharing.hpp"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(offered_tensors)

namespace {

constexpr auto enough = static_cast<std::int64_t>(devices::least_offered / sizeof(float));

struct fixture : simulated::fixture {
  fixture() { simulated::install_shared(); }
  at::Tensor ones(std::int64_t count = enough) { return at::ones({count}, at::device(first)); }
  static bool is_idle(const c10::Stream& stream) { return c10::impl::VirtualGuardImpl(at::kPrivateUse1).queryStream(stream); }

  devices::staging stage;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(stay_where_they_are_if_they_are_large_enough, fixture) {  // ST-5
  const auto large = ones();
  const auto small = ones(enough - 1);
  const auto truths = ones(4 * enough).to(at::kBool);
  const auto here = at::ones({enough});
  const auto elsewhere = large.to(second);
  const auto staged = stage.to_host({large, small, truths, here, elsewhere, at::Tensor()}, true);
  BOOST_TEST(staged.tensors[0].is_alias_of(large));
  for (const std::size_t i : {1, 2, 3}) BOOST_TEST(staged.tensors[i].is_cpu());
  BOOST_TEST(staged.tensors[4].is_alias_of(elsewhere));
  BOOST_REQUIRE(staged.devices.size() == 6U);
  BOOST_TEST(staged.devices[0] == first);
  BOOST_TEST(staged.devices[1] == first);
  BOOST_TEST(staged.devices[3].is_cpu());
  BOOST_TEST(staged.devices[4] == second);
  BOOST_REQUIRE(staged.made.size() == 2U);
  BOOST_TEST(staged.made[0].first == first);
  BOOST_TEST(staged.made[1].first == second);
  BOOST_TEST(staged.offers(staged.tensors[0]));
  BOOST_TEST(!staged.offers(staged.tensors[1]));
  BOOST_TEST(!stage.to_host({large}).offers(large));
}

BOOST_FIXTURE_TEST_CASE(have_an_event_of_their_device_whichever_is_current, fixture) {  // ST-5
  for (const auto& device : {first, second}) {
    const auto staged = stage.to_host({at::ones({enough}, at::device(device))}, true);
    BOOST_REQUIRE(staged.made.size() == 1U);
    BOOST_TEST(staged.made[0].first == device);
    BOOST_TEST(staged.not_offered == "");
  }
}

BOOST_FIXTURE_TEST_CASE(go_to_the_host_with_the_reason_if_there_is_no_event, fixture) {  // ST-5
  const simulated::watched_sharing none([] {}, [] { TORCH_CHECK(false, "no event today"); });
  const auto staged = stage.to_host({ones()}, true);
  BOOST_TEST(staged.made.empty());
  BOOST_TEST(staged.tensors[0].is_cpu());
  BOOST_TEST(contains(staged.not_offered, "simulated:0: no event today"));
}

BOOST_FIXTURE_TEST_CASE(have_no_gaps_and_an_event_after_their_last_element, fixture) {  // ST-5
  simulated::gate late(stream);
  devices::staged staged;
  {
    const c10::StreamGuard on(stream);
    const auto whole = at::arange(4 * enough, at::kFloat).reshape({2, 2 * enough}).to(first, true);
    staged = stage.to_host({whole.narrow(1, 5, enough)}, true);
  }
  BOOST_TEST(staged.tensors[0].is_contiguous());
  BOOST_TEST(staged.events.empty());
  BOOST_REQUIRE(staged.made.size() == 1U);
  staged.made[0].second->block(other);
  simulated::settle();
  BOOST_TEST(!is_idle(other));
  late.open();
  simulated::synchronize();
  BOOST_TEST(staged.tensors[0][1][0].item<float>() == 2 * enough + 5);
}

BOOST_FIXTURE_TEST_CASE(go_to_the_host_if_their_accelerator_shares_nothing, fixture) {  // ST-5
  devices::set_sharing(at::kPrivateUse1, nullptr);
  const auto staged = stage.to_host({ones()}, true);
  simulated::install_shared();
  BOOST_TEST(staged.made.empty());
  BOOST_TEST(staged.tensors[0].is_cpu());
}

BOOST_FIXTURE_TEST_CASE(that_are_on_their_device_are_not_copied_nor_freed_too_early, fixture) {  // AV-3
  for (const bool moves : {false, true}) {
    std::vector<at::Tensor> came{ones(2)};
    const auto* before = came[0].const_data_ptr();
    simulated::synchronize();
    simulated::gate late(stream);
    const c10::StreamGuard on(stream);
    if (moves) devices::move_to_devices(came, {first}, "x");
    BOOST_TEST(came[0].const_data_ptr() == before);
    const auto twice = came[0] * 2;
    came.clear();
    simulated::settle();
    late.open();
    simulated::synchronize();
    BOOST_TEST(at::isnan(twice.cpu()).all().item<bool>() == !moves);
  }
}

BOOST_FIXTURE_TEST_CASE(go_on_to_another_device_or_to_the_host, fixture) {  // AV-3
  std::vector<at::Tensor> came{ones(3) * 5, ones(3) * 6, at::ones({3})};
  devices::move_to_devices(came, {second, c10::Device(c10::kCPU), c10::Device(c10::kCPU)}, "x");
  BOOST_TEST(came[0].device() == second);
  BOOST_TEST(at::equal(came[0].cpu(), at::full({3}, 5.0F)));
  BOOST_TEST(came[1].is_cpu());
  BOOST_TEST(at::equal(came[1], at::full({3}, 6.0F)));
}

BOOST_AUTO_TEST_SUITE_END()
