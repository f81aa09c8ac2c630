// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/present_devices.hpp>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

BOOST_FIXTURE_TEST_SUITE(present_devices, simulated::fixture)

BOOST_AUTO_TEST_CASE(the_devices_are_the_cpu_and_then_the_accelerators) {
  const std::vector<c10::Device> expected{c10::Device(at::kCPU), first, second};
  const auto present = devices::present_devices();
  BOOST_CHECK(present == expected);
  BOOST_TEST(devices::accelerator_count() == 2);
  BOOST_CHECK(devices::accelerator_type() == at::kPrivateUse1);
  BOOST_TEST(devices::names_of_present_devices() == "cpu, simulated:0, simulated:1");
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_told_from_those_that_are) {
  for (const auto& device : devices::present_devices()) BOOST_TEST(devices::is_present(device));
  BOOST_TEST(devices::is_present(at::Device(at::kPrivateUse1)));
  BOOST_TEST(!devices::is_present(simulated::device(2)));
  BOOST_TEST(!devices::is_present(at::Device(at::kCUDA, 0)));
}

BOOST_AUTO_TEST_SUITE_END()
