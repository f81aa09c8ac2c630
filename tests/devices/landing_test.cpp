// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/landing.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/devices/arrivals.hpp>
#include <troupe/devices/host_buffers.hpp>
#include <troupe/devices/staging.hpp>

#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;
using devices::landing;

namespace {

constexpr std::uint64_t part = devices::part_bytes;
constexpr std::uint64_t whole = 2 * part + 4096;

struct with_buffer : simulated::fixture {
  with_buffer() {
    devices::arrival_stream(first);
    landing::prepare(first, whole);
  }
};

/// Elements that come piece by piece for the first device.
struct landing_fixture : with_buffer {
  at::Tensor values = at::arange(static_cast<std::int64_t>(whole / sizeof(float)), at::kFloat).view({-1, 16}).t();
  c10::Storage elements = landing::make(first, whole);
  landing* landed = landing::of(elements);
  c10::Stream arrivals = devices::arrival_stream(first);

  void come(std::uint64_t begin, std::uint64_t end) {
    std::memcpy(static_cast<char*>(elements.mutable_data()) + begin, static_cast<const char*>(values.const_data_ptr()) + begin,
                end - begin);
  }
  /// The tensor that a message has when all elements have come.
  at::Tensor arrived() const { return at::empty({0}, at::kFloat).set_(elements, 0, values.sizes(), values.strides()); }
  /// What the device computes from a tensor that was handed over, on its current stream.
  static at::Tensor twice(const at::Tensor& tensor) { return (tensor * 2).cpu(); }
  static std::size_t in_use() { return devices::arrival_buffers(at::kPrivateUse1).used().in_use; }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(landing_of_elements, landing_fixture)

BOOST_AUTO_TEST_CASE(is_in_a_buffer_that_was_idle) {  // AL-1
  BOOST_REQUIRE(landed != nullptr);
  BOOST_TEST((elements.nbytes() == whole && elements.device().is_cpu() && arrived().is_pinned()));
  const auto locked = simulated::pinned_bytes();
  std::vector<c10::Storage> others;  // as many as there are idle buffers
  for (auto next = landing::make(first, whole); next; next = landing::make(first, whole)) others.push_back(std::move(next));
  BOOST_TEST(simulated::pinned_bytes() == locked);
  landing::prepare(first, whole);
  BOOST_TEST(simulated::pinned_bytes() > locked);
  BOOST_TEST(landing::make(first, whole).nbytes() == whole);
  others.clear();
  elements = {};
  BOOST_TEST(in_use() == 0U);
}

BOOST_AUTO_TEST_CASE(is_for_accelerators_of_this_process_and_for_tensors_that_leave_room_for_others) {  // AL-1
  const auto locked = simulated::pinned_bytes();
  for (const auto& [device, bytes] : {std::pair(c10::Device(at::kCPU), whole), std::pair(c10::Device(at::kCUDA, 0), whole),
                                      std::pair(c10::Device(at::kPrivateUse1, 100), whole),
                                      std::pair(first, landing::most_bytes + 1), std::pair(first, part)}) {
    landing::prepare(device, bytes);
    BOOST_TEST(simulated::pinned_bytes() == locked);
    BOOST_TEST(!landing::make(device, bytes));
  }
}

BOOST_AUTO_TEST_CASE(leaves_half_of_the_pool_to_others) {  // AL-6
  BOOST_TEST(2 * landing::most_together == devices::host_buffers::default_budget);
  std::vector<at::Tensor> idle;
  for (int i = 0; i < 3; ++i)
    idle.push_back(devices::arrival_buffers(at::kPrivateUse1)
                     .allocate(at::empty({static_cast<std::int64_t>(landing::most_bytes)}, at::kByte)));
  idle.clear();
  elements = {};
  std::vector<c10::Storage> all{landing::make(first, landing::most_bytes), landing::make(first, landing::most_bytes)};
  BOOST_TEST((all[0] && all[1]));
  BOOST_TEST(!landing::make(first, landing::most_bytes));
  all.pop_back();
  BOOST_TEST(landing::make(first, landing::most_bytes).nbytes() == landing::most_bytes);
}

BOOST_AUTO_TEST_CASE(ends_for_a_tensor_that_stays_on_the_host) {  // AL-7
  come(0, whole);
  landed->copy_on(2 * part);
  std::vector<at::Tensor> stays{arrived(), at::ones({2}), at::Tensor()};
  elements = {};
  devices::move_to_devices(stays, {c10::Device(at::kCPU)}, "result");
  BOOST_TEST((!stays[0].is_pinned() && stays[0].strides() == values.strides()));
  BOOST_TEST(at::equal(stays[0], values));
  simulated::synchronize();
  BOOST_TEST(in_use() == 0U);
  stays[0].mul_(2);
  devices::move_to_devices(stays, {first, c10::Device(at::kCPU), c10::Device(at::kCPU)}, "argument");
  BOOST_TEST(at::equal(stays[0].cpu(), values * 2));
}

BOOST_AUTO_TEST_CASE(belongs_to_its_storage_alone) {
  BOOST_TEST(landing::of({}) == nullptr);
  BOOST_TEST(landing::of(at::ones({3}).storage()) == nullptr);
  BOOST_TEST(landing::of(arrived().storage()) == landed);
}

BOOST_AUTO_TEST_CASE(copies_whole_parts_on_and_each_element_once) {  // AL-2
  const auto before = simulated::host_bytes();
  const auto copied = [&] {
    simulated::synchronize();
    return simulated::host_bytes() - before;
  };
  come(0, part + 100);
  landed->copy_on(part - 1);
  BOOST_TEST(copied() == 0U);
  landed->copy_on(part + 100);
  BOOST_TEST(copied() == part);
  landed->copy_on(part + 200);
  BOOST_TEST(copied() == part);
  come(part + 100, whole);
  landed->copy_on(2 * part);
  BOOST_TEST(copied() == 2 * part);
  landed->copy_on(whole);
  BOOST_TEST(copied() == whole);
  const auto there = landed->hand_over(arrived(), first);
  BOOST_TEST(copied() == whole);
  BOOST_TEST((there.device() == first && there.sizes() == values.sizes() && there.strides() == values.strides()));
  BOOST_TEST(at::equal(there.cpu(), values));
}

BOOST_AUTO_TEST_CASE(is_copied_whole_if_nobody_has_copied_parts) {  // AL-2
  come(0, whole);
  BOOST_TEST(at::equal(twice(landed->hand_over(arrived(), first)), values * 2));
}

BOOST_AUTO_TEST_CASE(makes_the_current_stream_wait_and_no_thread) {  // AL-3
  come(0, whole);
  std::optional<simulated::gate> late(arrivals);
  landed->copy_on(part);
  const c10::StreamGuard on(stream);
  const auto doubled = landed->hand_over(arrived(), first) * 2;
  simulated::settle();
  late.reset();
  simulated::synchronize();
  BOOST_TEST(at::equal(doubled.cpu(), values * 2));
}

BOOST_AUTO_TEST_CASE(keeps_its_copy_as_long_as_the_current_stream_reads_it) {  // AL-3
  come(0, whole);
  at::Tensor doubled;
  std::optional<simulated::gate> late(stream);
  {
    const c10::StreamGuard on(stream);
    doubled = landed->hand_over(arrived(), first) * 2;
  }
  {
    const c10::StreamGuard on(arrivals);
    const auto other_tensor = at::zeros({static_cast<std::int64_t>(whole)}, at::device(first).dtype(at::kByte));
    simulated::settle();
  }
  late.reset();
  simulated::synchronize();
  BOOST_TEST(at::equal(doubled.cpu(), values * 2));
}

BOOST_AUTO_TEST_CASE(is_handed_over_once_and_to_its_device_only) {  // AL-3
  come(0, whole);
  BOOST_TEST(!landed->hand_over(arrived(), second).defined());
  BOOST_TEST(!landed->hand_over(arrived().slice(1, 0, 16), first).defined());
  BOOST_TEST(landed->hand_over(arrived(), first).defined());
  BOOST_TEST(!landed->hand_over(arrived(), first).defined());
  const auto copied = simulated::host_bytes();
  landed->copy_on(whole);
  simulated::synchronize();
  BOOST_TEST(simulated::host_bytes() == copied);
}

BOOST_AUTO_TEST_CASE(ends_if_the_device_has_no_memory_left) {  // AL-4
  come(0, whole);
  {
    const simulated::scarce_memory none(0);
    landed->copy_on(part);
    BOOST_TEST(none.refused());
  }
  BOOST_TEST(!landed->hand_over(arrived(), first).defined());
  BOOST_TEST(at::equal(arrived(), values));
  std::vector<at::Tensor> moved{arrived()};
  devices::move_to_devices(moved, {first}, "argument");
  BOOST_TEST(at::equal(moved[0].cpu(), values));
}

BOOST_AUTO_TEST_CASE(ends_if_the_device_fails) {  // AL-4
  come(0, whole);
  landed->copy_on(part);
  simulated::synchronize();
  {
    const simulated::no_events broken;
    landed->copy_on(2 * part);
  }
  BOOST_TEST(!landed->hand_over(arrived(), first).defined());
  BOOST_TEST(at::equal(arrived(), values));
  const auto* const memory = elements.data();
  elements = {};
  simulated::synchronize();
  std::vector<c10::Storage> others;  // AL-5: the device may still read this buffer
  for (auto next = landing::make(first, whole); next; next = landing::make(first, whole)) {
    BOOST_TEST(next.data() != memory);
    others.push_back(std::move(next));
  }
}

BOOST_AUTO_TEST_CASE(is_not_used_again_before_the_device_has_read_it) {  // AL-5
  come(0, whole);
  std::optional<simulated::gate> late(arrivals);
  const auto there = landed->hand_over(arrived(), first);
  const auto* const memory = elements.data();
  elements = {};
  std::vector<c10::Storage> others;
  for (auto next = landing::make(first, whole); next; next = landing::make(first, whole)) {
    BOOST_TEST(next.data() != memory);
    others.push_back(std::move(next));
  }
  late.reset();
  simulated::synchronize();
  BOOST_TEST(landing::make(first, whole).data() == memory);
  BOOST_TEST(at::equal(there.cpu(), values));
}

BOOST_AUTO_TEST_CASE(spares_a_copy_on_the_host) {
  come(0, whole);
  landed->copy_on(2 * part);
  simulated::synchronize();
  const auto before = simulated::host_bytes();
  std::vector<at::Tensor> moved{arrived()};
  devices::move_to_devices(moved, {first}, "argument");
  BOOST_TEST(at::equal(twice(moved[0]), values * 2));
  BOOST_TEST(simulated::host_bytes() - before == whole - 2 * part + whole);  // to the device, and twice() back
}

BOOST_AUTO_TEST_SUITE_END()
