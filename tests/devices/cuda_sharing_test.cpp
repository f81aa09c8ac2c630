// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda_sharing.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstring>
#include <string>

#include <ATen/ATen.h>

#include <troupe/devices/present_sharing.hpp>
#include <troupe/messages/foreign_memory.hpp>

#include "support/contains.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(cuda_sharing)

namespace {

// CUDA's calls, with host memory. GPU number 1 of all machines is the second device of this process.
struct driver {
  static inline std::array<char, 4096> memory;
  static inline std::uint64_t bytes_there = memory.size();
  static inline int result = 0;
  static inline int open = 0;
  static inline int events = 0;

  static int share_memory(const void* address, devices::cuda::memory_handle* to, std::uint64_t* offset) {
    to->gpu[0] = 1;
    to->bytes = memory.size();
    *offset = static_cast<std::uint64_t>(static_cast<const char*>(address) - memory.data());
    return result;
  }
  static int find_gpu(const unsigned char* gpu, int* index) {
    *index = gpu[0] == 1 ? 1 : -1;
    return 0;
  }
  static int open_memory(int, const devices::cuda::memory_handle*, void** base, std::uint64_t* bytes) {
    *base = memory.data();
    *bytes = bytes_there;
    ++open;
    return 0;
  }
  static int close_memory(int, void*) { return --open; }
  static int make_event(int, void** event, unsigned char*) {
    *event = &events;
    ++events;
    return result;
  }
  static int open_event(int, const unsigned char*, void** event) {
    *event = &events;
    ++events;
    return 0;
  }
  static int record_event(int, void*, void*) { return 0; }
  static int wait_for_event(int, void*, void*) { return 0; }
  static int destroy_event(void*) { return --events; }
  static const char* reason(int) { return "no driver"; }
};

struct fixture {
  fixture() {
    driver::result = 0;
    driver::bytes_there = driver::memory.size();
  }

  /// The reason why the handle is not opened; empty if it is.
  std::string why_not(std::uint64_t process, const std::string& handle) {
    try {
      static_cast<void>(sharing.open(process, handle));
      return {};
    } catch (const c10::Error& refused) {
      return refused.what_without_backtrace();
    }
  }

  const devices::cuda::functions table{
    devices::cuda::functions_version,
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    driver::reason,
    {driver::share_memory, driver::find_gpu, driver::open_memory, driver::close_memory, driver::make_event, driver::open_event,
     driver::record_event, driver::wait_for_event, driver::destroy_event}};
  devices::cuda_sharing sharing{table};
  const at::Tensor elements = at::from_blob(driver::memory.data() + 64, {8}, at::kByte);
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(opens_what_a_process_has_shared_and_closes_it_at_the_end, fixture) {
  const auto place = sharing.share(elements);
  BOOST_TEST(place.offset == 64U);
  {
    const auto opened = sharing.open(this_process(), place.allocation);
    BOOST_TEST(opened.elements.get() == driver::memory.data());
    BOOST_TEST(opened.bytes == driver::memory.size());
    BOOST_TEST(opened.device.str() == "cuda:1");
    BOOST_TEST(driver::open == 1);
  }
  BOOST_TEST(driver::open == 0);
}

BOOST_FIXTURE_TEST_CASE(opens_no_handle_that_is_wrong, fixture) {  // IH-1
  const auto text = sharing.share(elements).allocation;
  BOOST_TEST(why_not(this_process(), text) == "");
  BOOST_TEST(test::contains(why_not(this_process() + 1, text), "came from process"));
  BOOST_TEST(test::contains(why_not(this_process(), text + "x"), "expected a handle"));
  auto of_other_gpu = text;
  of_other_gpu.at(sizeof(std::uint64_t)) = 2;
  BOOST_TEST(test::contains(why_not(this_process(), of_other_gpu), "does not see the GPU"));
  driver::bytes_there = 64;
  BOOST_TEST(test::contains(why_not(this_process(), text), "its handle says"));
  BOOST_TEST(driver::open == 0);
}

BOOST_FIXTURE_TEST_CASE(says_why_CUDA_shares_no_memory, fixture) {  // IH-2
  driver::result = 1;
  BOOST_CHECK_EXCEPTION(sharing.share(elements), c10::Error, [](const auto& why) {
    return test::contains(why.what_without_backtrace(), "no driver") && test::contains(why.what_without_backtrace(), "error 1");
  });
}

BOOST_FIXTURE_TEST_CASE(destroys_events_at_their_end, fixture) {
  const std::string text(sizeof(std::uint64_t) + devices::cuda::handle_bytes, '\0');
  const c10::Device gpu(c10::kCUDA, 1);
  {
    const auto opened = sharing.open_event(0, text, gpu);
    BOOST_TEST(opened->handle() == text);
    BOOST_TEST(driver::events == 1);
  }
  BOOST_CHECK_THROW(sharing.open_event(1, text, gpu), c10::Error);
  BOOST_CHECK_THROW(sharing.open_event(0, {}, gpu), c10::Error);
  BOOST_CHECK_THROW(sharing.record(c10::Stream(c10::Stream::DEFAULT, gpu)), c10::Error);  // there are no streams of CUDA
  BOOST_TEST(driver::events == 0);
}

BOOST_AUTO_TEST_CASE(is_for_CUDA_alone_and_needs_a_GPU) {
  BOOST_TEST(devices::sharing_of(c10::kCUDA) == nullptr);
  BOOST_TEST(devices::sharing_of(c10::kXPU) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
