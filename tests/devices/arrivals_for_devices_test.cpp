// SPDX-License-Identifier: BSD-3-Clause
// The desk of the receiver, with pieces of tensors for devices: what it copies on while other pieces come.
#include <troupe/actors/transfers/transfer_desk.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/byte.hpp>
#include <caf/span.hpp>
#include <caf/stateful_actor.hpp>

#include <troupe/devices/arrivals.hpp>
#include <troupe/devices/host_buffers.hpp>
#include <troupe/devices/landing.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/messages/messages.hpp>

#include "actors/lone_services.hpp"
#include "actors/loopback_nodes.hpp"
#include "support/simulated_fixture.hpp"
#include "support/thread_count.hpp"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(arrivals_for_devices)

namespace {

constexpr node_id there{7};
constexpr std::uint64_t part = devices::part_bytes;
constexpr std::uint64_t whole = 2 * part + 4096;

struct desk_state {
  std::optional<transfers::transfer_desk> desk;
};

struct fixture : simulated::fixture, lone_services {
  fixture() : lone_services(true) {
    services.deadlines.stand_still();
    devices::arrival_stream(first);
    receiver = system.spawn([this](caf::stateful_actor<desk_state>* self) -> caf::behavior {
      self->state.desk.emplace(self, services, services.memory_readers);
      return {[self](const tensor_piece& piece) { self->state.desk->came(piece); }};
    });
  }
  ~fixture() { end(receiver); }

  /// Takes all idle buffers of this size.
  static std::vector<c10::Storage> all_idle(c10::Device device) {
    std::vector<c10::Storage> all;
    for (auto next = devices::landing::make(device, whole); next; next = devices::landing::make(device, whole))
      all.push_back(std::move(next));
    return all;
  }
  /// A piece of transfer 1 comes.
  void come(std::uint64_t begin, std::uint64_t end, c10::Device destination) {
    const tensor_piece piece{there, 1, whole, begin, {}, destination};
    const auto* const from = static_cast<const caf::byte*>(values.const_data_ptr());
    BOOST_TEST(arriving.add(piece, {from + begin, end - begin}) == nullptr);
    gateway->send(receiver, piece);
    run();
  }
  static std::size_t idle() { return devices::arrival_buffers(at::kPrivateUse1).used().idle; }

  at::Tensor values = at::arange(static_cast<std::int64_t>(whole / sizeof(float)), at::kFloat);
  caf::actor receiver;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(find_a_buffer_from_the_second_tensor_on, fixture) {  // AL-1
  const auto others = all_idle(first);
  const auto before = idle();
  come(0, part, first);
  BOOST_TEST((devices::landing::of(arriving.look_at(there, 1).first) == nullptr));
  BOOST_TEST(becomes_true([&] { return idle() > before; }));
  come(0, part, first);
  BOOST_TEST((devices::landing::of(arriving.look_at(there, 1).first) != nullptr));
}

BOOST_FIXTURE_TEST_CASE(are_copied_on_while_others_come, fixture) {  // AL-2
  devices::landing::prepare(first, whole);
  const auto before = simulated::host_bytes();
  const auto become = [&](std::uint64_t bytes) {
    return becomes_true([&] { return simulated::host_bytes() - before == bytes; });
  };
  come(0, 4096, first);
  come(4096, part + 4096, first);
  BOOST_TEST(become(part));
  come(part + 4096, whole, first);
  BOOST_TEST(become(whole));
  const auto elements = arriving.take(there, 1, whole);
  const auto host = at::empty({0}, at::kFloat).set_(elements, 0, values.sizes(), values.strides());
  const auto moved = devices::landing::of(elements)->hand_over(host, first);
  BOOST_TEST(at::equal(moved.cpu(), values));
}

BOOST_FIXTURE_TEST_CASE(are_copied_on_though_what_leaves_the_device_is_late, fixture) {  // DP-6
  devices::landing::prepare(first, whole);
  simulated::gate late(stream);
  {
    const c10::StreamGuard on(stream);
    services.departures->post(
      services.departures->stage.to_host({at::ones({9}, at::device(first))}), [] {}, [](const std::exception_ptr&) {});
  }
  const auto before = simulated::host_bytes();
  come(0, part, first);
  BOOST_TEST(becomes_true([&] { return simulated::host_bytes() - before == part; }));
  late.open();
  simulated::synchronize();
}

BOOST_FIXTURE_TEST_CASE(go_to_the_device_that_their_first_piece_named, fixture) {
  devices::landing::prepare(first, whole);
  const new_threads couriers;
  const auto before = simulated::host_bytes();
  come(0, part, first);
  come(part, 2 * part, c10::Device(at::kPrivateUse1, 100));
  BOOST_TEST(becomes_true([&] { return simulated::host_bytes() - before == 2 * part; }));
  BOOST_TEST(couriers.count() == 1U);
}

BOOST_FIXTURE_TEST_CASE(that_begin_anew_leave_nothing_of_the_first_try, fixture) {
  devices::landing::prepare(first, whole);
  std::promise<void> goes_on;
  services.departures->run_for_arrival(first, [until = goes_on.get_future().share()] { until.wait(); });
  come(0, part, first);
  const auto was = arriving.look_at(there, 1).first.getWeakStorageImpl();
  come(0, part, first);
  BOOST_TEST(was.expired());  // though the copy of its first part still waits
  goes_on.set_value();
  simulated::synchronize();
}

BOOST_FIXTURE_TEST_CASE(stay_on_the_host_if_this_process_lacks_their_device, fixture) {
  const new_threads couriers;
  const auto before = idle();
  for (const auto& other : {c10::Device(at::kPrivateUse1, 100), c10::Device(at::kCUDA, 0), c10::Device(at::kCPU)}) {
    come(0, part, other);
    come(part, whole, other);
    BOOST_TEST(arriving.take(there, 1, whole).nbytes() == whole);
  }
  BOOST_TEST(couriers.count() == 0U);
  BOOST_TEST(idle() == before);
}

BOOST_AUTO_TEST_SUITE_END()
