// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda_kernels.hpp>

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <string>

#include <troupe/messages/errors.hpp>

#include "support/forked_child.hpp"

using namespace troupe;

namespace {

/// The number of GPUs that a new process counts with one of this folder's drivers; -1 if the process did not exit normally.
int gpus_with(const std::string& driver) {
  return test::status_of_child([&] {
    ::alarm(20);
    return ::execl("/bin/sh", "sh", "-c", R"(LD_LIBRARY_PATH="$0${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$1")",
                   (TROUPE_DRIVERS "/" + driver).c_str(), TROUPE_GPU_COUNT, nullptr);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_kernels)

BOOST_AUTO_TEST_CASE(without_a_gpu_nothing_is_loaded_and_nothing_fails) {
  BOOST_TEST(devices::gpu_count() >= 0);
  if (devices::gpu_count() == 0) {
    BOOST_TEST(!devices::load_cuda_kernels());
    BOOST_TEST(!devices::load_cuda_kernels());
  }
}

BOOST_AUTO_TEST_CASE(the_driver_tells_how_many_gpus_there_are) { BOOST_TEST(gpus_with("whole") == 3); }

BOOST_AUTO_TEST_CASE(a_driver_that_lacks_a_function_counts_as_none) {
  BOOST_TEST(gpus_with("without_count") == 0);
  BOOST_TEST(gpus_with("needs_missing_function") == 0);
}

BOOST_AUTO_TEST_CASE(a_library_that_lacks_a_function_is_refused_before_the_function_is_called) {
  BOOST_CHECK_EXCEPTION(
    devices::load_library(TROUPE_DRIVERS "/needs_missing_function/libcuda.so.1"), error,
    [](const error& failed) { return std::string(failed.what()).find("troupe_no_such_function") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(a_library_that_can_not_be_loaded_is_named_with_the_reason) {
  BOOST_CHECK_EXCEPTION(devices::load_library("libtroupe_has_no_such.so"), error, [](const error& failed) {
    const std::string text = failed.what();
    return text.find("libtroupe_has_no_such.so, got: ") != std::string::npos && text.find("cannot open") != std::string::npos;
  });
  BOOST_CHECK_NO_THROW(devices::load_library("libc10.so"));
}

BOOST_AUTO_TEST_SUITE_END()
