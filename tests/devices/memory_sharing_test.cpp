// SPDX-License-Identifier: BSD-3-Clause
// Two processes of one machine that use the same memory of a simulated device.
#include <troupe/devices/memory_sharing.hpp>

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/messages/foreign_memory.hpp>

#include "devices/sharing_process.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_memory.hpp"
#include "support/simulated_sharing.hpp"

using namespace troupe::test;
using troupe::devices::memory_sharing;

namespace {

/// A process that shares a tensor of `sharing_process::elements` sevens.
struct fixture : simulated::fixture {
  explicit fixture(const std::string& how = "at once") : other_process(how) { simulated::install_shared(); }

  /// The elements of the opened memory, as a tensor.
  at::Tensor seen(const memory_sharing::opened_memory& of) const {
    auto* first_element = static_cast<char*>(of.elements.get()) + other_process.shared().offset;
    return at::for_blob(first_element, {sharing_process::elements})
      .options(at::device(of.device).dtype(at::kFloat))
      .target_device(of.device)
      .make_tensor();
  }
  memory_sharing::opened_memory open(std::uint64_t process, const std::string& handle) const {
    return simulated::sharing().open(process, handle);
  }
  std::string handle() const { return other_process.shared().allocation(); }
  memory_sharing::opened_memory open() const { return open(other_process.number(), handle()); }
  std::shared_ptr<troupe::devices::shared_event> made() const {
    return simulated::sharing().open_event(other_process.number(), other_process.shared().event(), device(0));
  }
  static c10::Device device(int index) { return simulated::device(static_cast<c10::DeviceIndex>(index)); }

  sharing_process other_process;
};

struct late_fixture : fixture {
  late_fixture() : fixture("late") {}
};

/// The handle, after `change`.
template <class F>
std::string changed(const std::string& text, F change) {
  simulated::file_handle of{};
  std::memcpy(&of, text.data(), sizeof of);
  change(of);
  return {reinterpret_cast<const char*>(&of), sizeof of};
}

bool are_sevens(const at::Tensor& x) { return at::equal(x.cpu(), at::full({sharing_process::elements}, 7.0F)); }
bool are_not_there(const at::Tensor& x) { return at::isnan(x.cpu()).all().item<bool>(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_of_devices)

BOOST_FIXTURE_TEST_CASE(is_read_by_another_process_from_its_offset_on, fixture) {
  const auto of = open();
  made()->block(default_stream);
  BOOST_TEST(are_sevens(seen(of)));
  BOOST_TEST(of.bytes == (sharing_process::elements + sharing_process::before) * sizeof(float));
  BOOST_TEST(other_process.shared().offset == sharing_process::before * sizeof(float));
}

BOOST_FIXTURE_TEST_CASE(is_read_too_early_by_a_stream_that_does_not_wait_for_the_event, late_fixture) {  // MH-3
  const auto of = open();
  const auto from = seen(of);
  const auto copied_after = [&](bool waits) {
    if (waits) made()->block(stream);
    const c10::StreamGuard on(stream);
    return from * 1;
  };
  const auto early = copied_after(false);
  const auto late = copied_after(true);
  simulated::settle();
  BOOST_TEST(!c10::impl::VirtualGuardImpl(at::kPrivateUse1).queryStream(stream));
  other_process.go_on();
  simulated::synchronize();
  BOOST_TEST(are_sevens(late));
  BOOST_TEST(are_not_there(early));
}

BOOST_FIXTURE_TEST_CASE(stays_when_its_process_dies_and_no_stream_waits_for_the_dead, late_fixture) {  // MH-1, MH-3
  const auto of = open();
  made()->block(stream);
  simulated::settle();
  BOOST_TEST(!c10::impl::VirtualGuardImpl(at::kPrivateUse1).queryStream(stream));
  other_process.kill();
  simulated::synchronize();
  BOOST_TEST(are_not_there(seen(of)));
  BOOST_CHECK_THROW(open(), c10::Error);
}

BOOST_AUTO_TEST_CASE(is_opened_only_before_it_is_freed) {  // MH-1, MH-2
  fixture all("frees");
  const auto of = all.open();
  all.made()->block(all.default_stream);
  BOOST_TEST(are_sevens(all.seen(of)));
  all.other_process.go_on();
  BOOST_CHECK_THROW(all.open(), c10::Error);
  BOOST_CHECK_THROW(all.made(), c10::Error);
  BOOST_CHECK_THROW(all.open(all.other_process.number(), changed(all.handle(), [](auto& x) { x.number = 0; })), c10::Error);
  BOOST_TEST(are_not_there(all.seen(of)));  // of what was open, nobody else uses the memory
}

BOOST_FIXTURE_TEST_CASE(is_opened_on_no_device_out_of_reach, fixture) {  // MH-2
  BOOST_CHECK_NO_THROW(open());
  const simulated::out_of_reach from_here_on(0);
  BOOST_CHECK_THROW(open(), c10::Error);
}

BOOST_FIXTURE_TEST_CASE(is_opened_by_no_forged_handle, fixture) {  // MH-2
  const auto text = handle();
  const auto with = [&](auto change) { return changed(text, change); };
  BOOST_CHECK_NO_THROW(open(other_process.number(), with([](auto&) {})));
  BOOST_CHECK_THROW(open(troupe::this_process(), text), c10::Error);  // who offers it is another process
  BOOST_CHECK_THROW(open(other_process.number(), text.substr(1)), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), {}), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), other_process.shared().event()), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), with([](auto& x) { ++x.number; })), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), with([](auto& x) { x.number = 0; })), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), with([](auto& x) { x.bytes *= 2; })), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), with([](auto& x) { x.entry = ~0U; })), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), with([](auto& x) { x.file = 0; })), c10::Error);
  BOOST_CHECK_THROW(open(other_process.number(), with([](auto& x) { x.device = simulated::device_count(); })), c10::Error);
}

BOOST_FIXTURE_TEST_CASE(of_a_host_or_of_a_few_bytes_is_not_shared, fixture) {
  BOOST_CHECK_THROW(simulated::sharing().share(at::zeros({4096})), c10::Error);
  BOOST_CHECK_THROW(simulated::sharing().share(at::zeros({4}, at::device(first))), c10::Error);
  BOOST_CHECK_NO_THROW(simulated::sharing().share(at::zeros({4096}, at::device(first))));
}

BOOST_FIXTURE_TEST_CASE(events_of_one_process_order_its_own_streams, fixture) {
  simulated::gate late(stream);
  const auto event = simulated::sharing().record(stream);
  event->block(other);
  simulated::settle();
  BOOST_TEST(!c10::impl::VirtualGuardImpl(at::kPrivateUse1).queryStream(other));
  late.open();
  simulated::synchronize();
}

BOOST_AUTO_TEST_SUITE_END()
