// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/lane.hpp>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

BOOST_FIXTURE_TEST_SUITE(lane, simulated::fixture)

BOOST_AUTO_TEST_CASE(LA1_lanes_number_the_cpu_and_then_the_accelerators) {
  const std::vector<c10::Device> expected{c10::Device(at::kCPU), first, second};
  const auto present = devices::present_devices();
  BOOST_CHECK(present == expected);
  BOOST_TEST(devices::accelerator_count() == 2);
  BOOST_CHECK(devices::accelerator_type() == at::kPrivateUse1);
  for (std::uint32_t i = 0; i < expected.size(); ++i) {
    BOOST_CHECK(devices::device_of(devices::lane_id{i}) == expected[i]);
    BOOST_CHECK(devices::lane_of(expected[i]) == devices::lane_id{i});
  }
}

BOOST_AUTO_TEST_CASE(LA2_a_function_is_in_the_lane_of_its_forward) {
  const auto make = [](at::Device device) { return (at::ones({2}, at::device(device)).requires_grad_() * 2).grad_fn(); };
  BOOST_CHECK(devices::lane_of(*make(at::kCPU)).id == devices::cpu_lane);
  BOOST_CHECK(!devices::lane_of(*make(at::kCPU)).stream);
  BOOST_CHECK(devices::lane_of(*make(at::kMeta)).id == devices::cpu_lane);
  BOOST_CHECK(devices::lane_of(*make(second)).id == devices::lane_id{2});
  const c10::StreamGuard on(stream);
  BOOST_CHECK(devices::lane_of(*make(first)).id == devices::lane_id{1});
  BOOST_CHECK(devices::lane_of(*make(first)).stream == stream);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_refused_with_the_names_of_those_that_are) {
  BOOST_TEST(devices::is_present(at::Device(at::kPrivateUse1)));
  BOOST_TEST(!devices::is_present(simulated::device(2)));
  BOOST_TEST(!devices::is_present(at::Device(at::kCUDA, 0)));
  const auto names_all = [](const c10::Error& refused) {
    return std::string(refused.what_without_backtrace()).find("cpu, simulated:0, simulated:1") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(devices::lane_of(simulated::device(2)), c10::Error, names_all);
  BOOST_CHECK_EXCEPTION(devices::device_of(devices::lane_id{3}), c10::Error, names_all);
}

BOOST_AUTO_TEST_SUITE_END()
