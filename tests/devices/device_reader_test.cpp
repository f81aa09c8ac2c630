// SPDX-License-Identifier: BSD-3-Clause
// The memory reader, with offers of other processes' devices.
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <caf/after.hpp>
#include <caf/send.hpp>

#include <troupe/actors/transfers/memory_reader.hpp>
#include <troupe/devices/foreign_devices.hpp>
#include <troupe/messages/tensors_over_storages.hpp>

#include "actors/lone_services.hpp"
#include "actors/loopback_nodes.hpp"
#include "devices/sharing_process.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_sharing.hpp"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(readers_of_devices)

namespace {

constexpr node_id sender{7};
constexpr node_id another{8};
constexpr auto bytes = sharing_process::elements * sizeof(float);

struct fixture : simulated::fixture, lone_services {
  fixture() : lone_services(true) { simulated::install_shared(); }
  ~fixture() {
    caf::anon_send_exit(reader, caf::exit_reason::user_shutdown);
    BOOST_TEST(becomes_true([&] { return memory.use_count() == 1; }));  // the reader has ended
  }

  std::optional<error> offer(node_id from, const sharing_process& other) {
    const auto& shared = other.shared();
    auto job = std::make_shared<contracts::incoming_offer>();
    job->offer = {from, 1, bytes, 0, bytes, shared.offset, other.number(), 0, shared.allocation(), shared.event()};
    arriving.take_offers(from, other.number(), memory_mark{});
    auto refused = arriving.prepare(job->offer, job->piece);
    if (!refused) caf::anon_send(reader, std::move(job));
    return refused;
  }
  /// The next offer that comes back to the gateway, or null.
  contracts::incoming_offer_ptr back() {
    contracts::incoming_offer_ptr result;
    gateway->receive([&](const contracts::incoming_offer_ptr& came) { result = came; }, caf::after(patience) >> [] {});
    BOOST_REQUIRE(result);
    return result;
  }
  bool sevens_came(node_id from) {
    auto elements = arriving.take(from, 1, bytes);
    if (!elements) return false;
    auto all = tensor_over(std::move(elements), at::kFloat);
    all.unsafeGetTensorImpl()->set_sizes_contiguous({sharing_process::elements});
    return at::equal(all.cpu(), at::full({sharing_process::elements}, 7.0F));
  }

  const std::shared_ptr<devices::foreign_devices> memory = std::make_shared<devices::foreign_devices>();
  contracts::memory_reader_actor reader = transfers::spawn_memory_reader(services, memory);
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(give_an_offer_back_when_its_own_copy_is_done, fixture) {  // MR-1, MR-2
  sharing_process late("late");
  const sharing_process other("at once");
  offer(sender, late);
  offer(another, other);
  const auto first_back = back();
  BOOST_TEST((first_back->offer.from == another));
  BOOST_TEST(!first_back->failure.has_value());
  BOOST_TEST(sevens_came(another));
  BOOST_TEST(!sevens_came(sender));
  BOOST_TEST(arriving.bytes() == 0U);  // the question above has ended the transfer
  offer(sender, late);
  late.go_on();
  for (int i = 0; i < 2; ++i) BOOST_TEST((back()->offer.from == sender));
  BOOST_TEST(sevens_came(sender));
}

BOOST_FIXTURE_TEST_CASE(give_an_offer_whose_transfer_has_ended_back_when_its_copy_is_done, fixture) {  // MR-2, MR-3
  const auto opened_before = simulated::opened();
  sharing_process late("late");
  offer(sender, late);
  const sharing_process other("at once");
  offer(another, other);
  BOOST_TEST((back()->offer.from == another));  // so the copy for `sender` runs
  BOOST_TEST(arriving.bytes() == bytes);
  arriving.drop(sender);
  offer(another, other);
  BOOST_TEST((back()->offer.from == another));  // and not that of the copy that still runs
  memory->forget(late.number());
  memory->forget(other.number());
  BOOST_TEST(simulated::opened() > opened_before);
  late.go_on();
  const auto dropped = back();
  BOOST_TEST((dropped->offer.from == sender));
  BOOST_REQUIRE(dropped->failure.has_value());
  BOOST_TEST((dropped->failure->code() == errc::malformed_message));
  BOOST_TEST(arriving.bytes() == bytes);
  BOOST_TEST(becomes_true([&] { return simulated::opened() == opened_before; }));
}

BOOST_FIXTURE_TEST_CASE(keep_nothing_of_an_offer_that_fails, fixture) {  // MR-1
  const sharing_process other("at once");
  {
    const simulated::out_of_reach all;
    offer(sender, other);
    const auto refused = back();
    BOOST_REQUIRE(refused->failure.has_value());
    BOOST_TEST((refused->failure->code() == errc::refused));
    BOOST_TEST(arriving.add(refused->offer, refused->piece, {}).has_value());
  }
  {
    const simulated::broken_device broken;
    offer(sender, other);
    const auto failed = back();
    BOOST_REQUIRE(failed->failure.has_value());
    BOOST_TEST((failed->failure->code() == errc::function_failed));
    BOOST_TEST(arriving.add(failed->offer, failed->piece, {}).has_value());
  }
  arriving.limit_sender(bytes - 1);
  const auto too_much = offer(sender, other);
  BOOST_REQUIRE(too_much.has_value());
  BOOST_TEST((too_much->code() == errc::malformed_message));
}

BOOST_AUTO_TEST_SUITE_END()
