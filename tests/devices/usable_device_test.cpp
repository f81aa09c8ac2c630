// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/device_map.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

#include <troupe/messages/errors.hpp>

using troupe::devices::usable_device;

BOOST_AUTO_TEST_SUITE(devices_by_name)

BOOST_AUTO_TEST_CASE(the_cpu_is_always_there) { BOOST_TEST((usable_device("cpu") == c10::Device(c10::kCPU))); }

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_refused_with_those_that_are) {
  for (const std::string name : {"cuda:99", "no such device", "", "meta"})
    BOOST_CHECK_EXCEPTION(usable_device(name), troupe::error, [&](const troupe::error& failure) {
      const std::string text = failure.what();
      return failure.code() == troupe::errc::misuse && text.find("expected a device of this process (cpu") == 0 &&
             text.find("but it is '" + name + "'") != std::string::npos;
    });
}

BOOST_AUTO_TEST_SUITE_END()
