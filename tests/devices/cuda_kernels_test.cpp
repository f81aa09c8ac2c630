// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda_kernels.hpp>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/errors.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(cuda_kernels)

BOOST_AUTO_TEST_CASE(without_a_gpu_nothing_is_loaded_and_nothing_fails) {
  BOOST_TEST(devices::gpu_count() >= 0);
  if (devices::gpu_count() == 0) {
    BOOST_TEST(!devices::load_cuda_kernels());
    BOOST_TEST(!devices::load_cuda_kernels());
  }
}

BOOST_AUTO_TEST_CASE(a_library_that_can_not_be_loaded_is_named_with_the_reason) {
  BOOST_CHECK_EXCEPTION(devices::load_library("libtroupe_has_no_such.so"), error, [](const error& failed) {
    const std::string text = failed.what();
    return text.find("libtroupe_has_no_such.so, got: ") != std::string::npos && text.find("cannot open") != std::string::npos;
  });
  BOOST_CHECK_NO_THROW(devices::load_library("libc10.so"));
}

BOOST_AUTO_TEST_SUITE_END()
