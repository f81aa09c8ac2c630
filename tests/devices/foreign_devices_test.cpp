// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/foreign_devices.hpp>

#include <boost/test/unit_test.hpp>

#include <barrier>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/devices/present_sharing.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/foreign_memory.hpp>
#include <troupe/messages/tensors_over_storages.hpp>

#include "devices/sharing_process.hpp"
#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_sharing.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(devices_of_other_processes)

namespace {

constexpr auto bytes = sharing_process::elements * sizeof(float);

struct fixture : simulated::fixture {
  fixture() { simulated::install_shared(); }

  static tensor_offer offer_of(const sharing_process& other) {
    const auto& shared = other.shared();
    return {node_id{7}, 1, bytes, 0, bytes, shared.offset, other.number(), 0, shared.allocation(), shared.event()};
  }
  static bool ends(troupe::devices::foreign_copy& copy) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!copy.is_done() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return copy.is_done();
  }
  /// The code of the error with which the copy does not begin.
  static errc why_not(const tensor_offer& offer) {
    try {
      troupe::devices::foreign_devices().copy(offer);
      return errc::none;
    } catch (const error& refused) {
      BOOST_TEST_MESSAGE(refused.what());
      return refused.code();
    }
  }
  static bool are_sevens(const c10::Storage& elements) {
    auto all = tensor_over(elements, at::kFloat);
    all.unsafeGetTensorImpl()->set_sizes_contiguous({sharing_process::elements});
    return at::equal(all.cpu(), at::full({sharing_process::elements}, 7.0F));
  }

  /// How much memory of other processes is open now, and was not before the test.
  std::size_t opened() const { return simulated::opened() - opened_before; }

  troupe::devices::foreign_devices devices;
  const std::size_t opened_before = simulated::opened();
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(give_a_copy_of_their_elements, fixture) {
  const sharing_process other("at once");
  const auto copy = devices.copy(offer_of(other));
  BOOST_TEST(ends(*copy));
  BOOST_TEST(copy->elements().device().str() == "simulated:0");
  BOOST_TEST(copy->elements().nbytes() == bytes);
  BOOST_TEST(are_sevens(copy->elements()));
}

BOOST_FIXTURE_TEST_CASE(are_opened_once_as_long_as_they_are_used, fixture) {  // FD-1
  const sharing_process first("at once");
  const sharing_process second("at once");
  devices::foreign_devices few(1);
  const auto before = simulated::openings();
  const auto read = [&](const sharing_process& other) {
    const auto copy = few.copy(offer_of(other));
    BOOST_TEST(ends(*copy));
  };
  read(first);
  read(first);
  BOOST_TEST(simulated::openings() - before == 1U);
  BOOST_TEST(opened() == 1U);
  read(second);
  BOOST_TEST(simulated::openings() - before == 2U);
  BOOST_TEST(opened() == 1U);
  read(first);
  BOOST_TEST(simulated::openings() - before == 3U);
  few.forget(second.number());
  BOOST_TEST(opened() == 1U);
  few.forget(first.number());
  BOOST_TEST(opened() == 0U);
}

BOOST_FIXTURE_TEST_CASE(that_were_used_last_stay_open, fixture) {  // FD-1
  const sharing_process first("at once");
  const sharing_process second("at once");
  const sharing_process third("at once");
  devices::foreign_devices two(2);
  for (const auto* each : {&first, &second, &first, &third}) BOOST_TEST(ends(*two.copy(offer_of(*each))));
  const auto before = simulated::openings();
  BOOST_TEST(ends(*two.copy(offer_of(first))));
  BOOST_TEST(simulated::openings() == before);
  BOOST_TEST(ends(*two.copy(offer_of(second))));
  BOOST_TEST(simulated::openings() == before + 1);
}

BOOST_FIXTURE_TEST_CASE(that_two_threads_open_at_once_stay_open_once, fixture) {  // FD-1
  const sharing_process other("at once");
  std::barrier both(2);
  {
    const simulated::watched_sharing together([&] { both.arrive_and_wait(); });
    const auto read = [&] { return ends(*devices.copy(offer_of(other))); };
    auto elsewhere = std::async(std::launch::async, read);
    BOOST_TEST(read());
    BOOST_TEST(elsewhere.get());
  }
  BOOST_TEST(opened() == 1U);
  devices.forget(other.number());
  BOOST_TEST(opened() == 0U);
}

BOOST_FIXTURE_TEST_CASE(stay_open_under_a_copy_whose_end_nobody_can_see, fixture) {  // FD-1
  {
    sharing_process late("late");
    {
      const simulated::no_events none;
      BOOST_TEST((why_not(offer_of(late)) == errc::function_failed));
    }
    BOOST_TEST(opened() == 1U);
  }
  simulated::synchronize();
}

BOOST_FIXTURE_TEST_CASE(stay_open_while_a_copy_runs_and_make_no_thread_wait, fixture) {  // FD-1, FD-4
  sharing_process late("late");
  auto copy = devices.copy(offer_of(late));
  BOOST_TEST(!copy->is_done());
  devices.forget(late.number());
  BOOST_TEST(opened() == 1U);
  late.go_on();
  BOOST_TEST(ends(*copy));
  BOOST_TEST(are_sevens(copy->elements()));
  copy.reset();
  BOOST_TEST(opened() == 0U);
}

BOOST_FIXTURE_TEST_CASE(are_not_closed_under_a_copy_that_nobody_waits_for, fixture) {  // FD-1
  {
    sharing_process late("late");
    auto copy = devices.copy(offer_of(late));
    devices.forget(late.number());
    copy.reset();
    BOOST_TEST(opened() == 1U);
  }
  simulated::synchronize();
}

BOOST_FIXTURE_TEST_CASE(of_one_process_do_not_hold_up_those_of_another_one, fixture) {  // FD-2
  sharing_process late("late");
  const sharing_process other("at once");
  const auto waits = devices.copy(offer_of(late));
  const auto copy = devices.copy(offer_of(other));
  const auto own = at::full({2}, 3.0F, at::device(first));
  BOOST_TEST(ends(*copy));
  BOOST_TEST(at::equal(own.cpu(), at::full({2}, 3.0F)));
  BOOST_TEST(!waits->is_done());
  late.go_on();
  BOOST_TEST(ends(*waits));
  BOOST_TEST(are_sevens(waits->elements()));
}

BOOST_FIXTURE_TEST_CASE(end_with_their_process, fixture) {
  sharing_process late("late");
  const auto copy = devices.copy(offer_of(late));
  late.kill();
  BOOST_TEST(ends(*copy));
}

BOOST_FIXTURE_TEST_CASE(are_not_read_beyond_their_end, fixture) {  // FD-3
  const sharing_process other("at once");
  const auto with = [&](auto change) {
    auto result = offer_of(other);
    change(result);
    return result;
  };
  BOOST_TEST((why_not(with([](auto&) {})) == errc::none));
  BOOST_TEST((why_not(with([](auto& x) { x.address += 1; })) == errc::malformed_message));
  BOOST_TEST(
    (why_not(with([](auto& x) { x.bytes += sharing_process::before * sizeof(float) + 1; })) == errc::malformed_message));
  BOOST_TEST((why_not(with([](auto& x) { x.address = ~std::uint64_t{0}; })) == errc::malformed_message));
}

BOOST_FIXTURE_TEST_CASE(are_refused_if_they_can_not_be_opened, fixture) {
  const sharing_process other("at once");
  const auto good = offer_of(other);
  auto wrong = good;
  wrong.process = this_process();
  BOOST_TEST((why_not(wrong) == errc::refused));
  wrong = good;
  wrong.event = "no event";
  BOOST_TEST((why_not(wrong) == errc::refused));
  {
    const simulated::out_of_reach all;
    BOOST_TEST((why_not(good) == errc::refused));
  }
  devices::set_sharing(at::kPrivateUse1, nullptr);
  BOOST_TEST((why_not(good) == errc::refused));
  simulated::install_shared();
  BOOST_TEST((why_not(good) == errc::none));
}

BOOST_FIXTURE_TEST_CASE(are_not_read_if_this_process_has_no_memory_left, fixture) {
  const sharing_process other("at once");
  {
    const simulated::scarce_memory none(0);
    BOOST_TEST((why_not(offer_of(other)) == errc::function_failed));
  }
  BOOST_TEST((why_not(offer_of(other)) == errc::none));
}

BOOST_AUTO_TEST_SUITE_END()
