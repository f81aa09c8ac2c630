// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda_kernels.hpp>

#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include <troupe/devices/cuda/functions.hpp>
#include <troupe/messages/errors.hpp>

#include "support/forked_child.hpp"

using namespace troupe;

namespace {

/// The text of the error that loading one of this folder's stand-ins for kernels throws; empty if it throws none.
std::string refusal_of(const std::string& library) {
  try {
    devices::load_functions(library);
  } catch (const error& refused) {
    BOOST_TEST((refused.code() == errc::misuse));
    return refused.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The number of GPUs that a new process counts with one of this folder's drivers; -1 if the process did not exit normally. With a device:
/// what gpu_count_program.cpp says about it.
int gpus_with(const std::string& driver, const char* device = nullptr) {
  return test::status_of_child([&] {
    ::alarm(20);
    return ::execl("/bin/sh", "sh", "-c", R"(LD_LIBRARY_PATH="$0${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$@")",
                   (TROUPE_DRIVERS "/" + driver).c_str(), TROUPE_GPU_COUNT, device, nullptr);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_kernels)

BOOST_AUTO_TEST_CASE(without_a_gpu_nothing_is_loaded_and_nothing_fails) {  // KL-1
  BOOST_TEST(devices::gpu_count() >= 0);
  if (devices::gpu_count() == 0) {
    BOOST_TEST(!devices::load_cuda_kernels());
    BOOST_TEST(!devices::load_cuda_kernels());
    BOOST_TEST(devices::own_cuda_kernels() == nullptr);
    for (const char* library : {"libtorch_cuda.so", devices::own_library})
      BOOST_TEST(::dlopen(library, RTLD_NOW | RTLD_NOLOAD) == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(the_driver_tells_how_many_gpus_there_are) { BOOST_TEST(gpus_with("whole") == 3); }

BOOST_AUTO_TEST_CASE(cuda_is_loaded_for_a_gpu_alone) {
  BOOST_TEST(gpus_with("whole", "cpu") == 0);
  BOOST_TEST(gpus_with("whole", "no such device") == 3);
  BOOST_TEST(gpus_with("without_count", "cuda:0") == 3);
}

// The stand-in for libtorch_cuda registers no GPUs, as if the process had looked for them before.
BOOST_AUTO_TEST_CASE(a_gpu_for_which_cuda_was_loaded_too_late_is_told_from_one_that_is_not_there) {
  BOOST_TEST(gpus_with("whole", "cuda:0") == 2);
}

BOOST_AUTO_TEST_CASE(a_driver_that_lacks_a_function_counts_as_none) {
  BOOST_TEST(gpus_with("without_count") == 0);
  BOOST_TEST(gpus_with("needs_missing_function") == 0);
}

BOOST_AUTO_TEST_CASE(a_library_that_lacks_a_function_is_refused_before_the_function_is_called) {
  BOOST_CHECK_EXCEPTION(
    devices::load_library(TROUPE_DRIVERS "/needs_missing_function/libcuda.so.1"), error,
    [](const error& failed) { return std::string(failed.what()).find("troupe_no_such_function") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(a_library_that_can_not_be_loaded_is_named_with_the_reason) {  // KL-3
  BOOST_CHECK_EXCEPTION(devices::load_library("libtroupe_has_no_such.so"), error, [](const error& failed) {
    const std::string text = failed.what();
    return text.find("libtroupe_has_no_such.so, got: ") != std::string::npos && text.find("cannot open") != std::string::npos;
  });
  BOOST_CHECK_NO_THROW(devices::load_library("libc10.so"));
}

BOOST_AUTO_TEST_CASE(kernels_of_another_version_are_refused_with_both_versions) {  // KL-2, KL-3
  const std::string library = TROUPE_DRIVERS "/libkernels_other_version.so";
  const std::string text = refusal_of(library);
  const auto version = devices::cuda::functions_version;
  BOOST_TEST(contains(text, library));
  BOOST_TEST(contains(text, "expected version " + std::to_string(version)));
  BOOST_TEST(contains(text, "got version " + std::to_string(version + 1)));
}

BOOST_AUTO_TEST_CASE(a_library_without_kernels_is_refused_and_named) {  // KL-2, KL-3
  for (const std::string library :
       {TROUPE_DRIVERS "/libkernels_without_symbol.so", TROUPE_DRIVERS "/libkernels_without_table.so"}) {
    const std::string text = refusal_of(library);
    BOOST_TEST(contains(text, library));
    BOOST_TEST(contains(text, "gives none as troupe_cuda_functions"));
  }
}

BOOST_AUTO_TEST_CASE(kernels_that_can_not_be_loaded_are_named_with_the_reason) {  // KL-3
  const std::string text = refusal_of("libtroupe_has_no_such.so");
  BOOST_TEST(contains(text, "libtroupe_has_no_such.so, got: "));
  BOOST_TEST(contains(text, "cannot open"));
}

BOOST_AUTO_TEST_SUITE_END()
