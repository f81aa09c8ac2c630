// SPDX-License-Identifier: BSD-3-Clause
// The desk of the sender, with tensors on devices: what it offers, and what it copies to the host.
#include <troupe/actors/transfers/transfer_desk.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <caf/actor_cast.hpp>
#include <caf/after.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <troupe/devices/arrivals.hpp>
#include <troupe/devices/present_sharing.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/wire_format.hpp>

#include "actors/lone_services.hpp"
#include "actors/loopback_nodes.hpp"
#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_memory.hpp"
#include "support/simulated_sharing.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::test;
using transfers::transfer_desk;

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::function<void(troupe::transfers::transfer_desk&)>)

BOOST_AUTO_TEST_SUITE(transfers_of_tensors_on_devices)

namespace {

constexpr node_id there{7};
constexpr std::int64_t elements = 100'000;
constexpr auto bytes = static_cast<std::uint64_t>(elements) * sizeof(float);

struct desk_state {
  std::optional<transfer_desk> desk;
};
using task = std::function<void(transfer_desk&)>;

settings logged_to(const std::string& file) {
  auto result = lone_services::named();
  result.log_file = file;
  result.host = "192.0.2.2";
  return result;
}

struct folder_of_log {
  apps::test::temporary_folder folder;
  std::string file = folder.path() / "log";
};

/// A node that sends, and another one that notes what comes. The other node reads devices if `reads` is true.
struct fixture : simulated::fixture, folder_of_log, lone_services {
  fixture() : lone_services(true, logged_to(file)) {
    simulated::install_shared();
    const auto made = system.spawn([this](caf::event_based_actor*) -> caf::behavior {
      return {
        [](const request_mark&) {
          return memory_mark{{1, 2, 3, 4}};
        },
        [this](const tensor_offer& offer) -> caf::result<void> {
          offers.push_back(offer);
          if (fails) return make_error(errc::function_failed, "no memory there");
          if (reads) return caf::unit;
          return make_error(errc::refused, "no such device");
        },
        [this](const participant_failed& what) { failures.push_back(what.text); },
        [this](const tensor_piece& piece) {
          pieces.push_back(piece);
          return std::int64_t{5};
        },
      };
    });
    who.id = there;
    who.name = "there";
    who.host = "127.0.0.1";
    who.devices = {c10::Device(c10::kCPU), first};
    services.directory.add(who, caf::actor_cast<caf::strong_actor_ptr>(made), 1);
    sender = system.spawn([this](caf::stateful_actor<desk_state>* self) -> caf::behavior {
      self->state.desk.emplace(self, services, services.memory_readers);
      return {[self](const task& run) { run(*self->state.desk); }};
    });
  }
  ~fixture() { end(sender); }

  void with_desk(task run_it) {
    gateway->send(sender, std::move(run_it));
    run();
  }
  /// Ships a tensor that is made on the current stream.
  void ship(const at::Tensor& tensor) {
    auto staged = services.departures->stage.to_host({tensor}, true);
    BOOST_REQUIRE(staged.made.size() == 1U);
    with_desk([this, &staged](transfer_desk& desk) {
      sent_ahead ahead;
      ahead.made = staged.made;
      BOOST_TEST(desk.goes_ahead(there, staged.tensors));
      desk.ship(
        there, staged.tensors, staged.devices, ahead, [this] { ++messages; },
        [this](const error& why) { failures.emplace_back(why.what()); });
      BOOST_TEST(ahead.made.empty());
      staged = {};  // only the desk has the tensor now
    });
  }
  /// Gives the desk the news that a copy to the host is done. Returns whether it has come.
  bool is_copied() {
    contracts::host_copy_ptr done;
    gateway->receive([&](const contracts::host_copy_ptr& what) { done = what; }, caf::after(patience) >> [] {});
    if (done) with_desk([&](transfer_desk& desk) { desk.was_copied(*done); });
    return done && !done->failure;
  }
  /// The elements that have come in pieces.
  at::Tensor came() const {
    std::vector<at::Tensor> all;
    for (const auto& each : pieces) all.push_back(each.elements);
    return all.empty() ? at::Tensor() : at::cat(all).view(at::kFloat);
  }
  std::size_t lines_of_log(const std::string& with = "over the host") const {
    std::ifstream in(file);
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);) count += line.find(with) != std::string::npos ? 1 : 0;
    return count;
  }
  /// Makes the other node draw a mark.
  void meet() {
    with_desk([](transfer_desk& desk) {
      sent_ahead ahead;
      desk.ship(
        there, {}, {}, ahead, [] {}, [](const error&) {});
    });
  }

  member who;
  caf::actor sender;
  std::vector<tensor_offer> offers;
  std::vector<tensor_piece> pieces;
  bool reads = true;
  bool fails = false;
  int messages = 0;
  std::vector<std::string> failures;  // of messages
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(come_whole_if_the_node_may_not_read_the_format, fixture) {  // OP-8
  who = {"another", node_id{8}, "192.0.2.3", 0, 0, {c10::Device(c10::kCPU), first}};
  services.directory.add(who, caf::actor_cast<caf::strong_actor_ptr>(sender), 1);
  const auto x = at::ones({static_cast<std::int64_t>(devices::part_bytes)}, at::device(first));
  auto packed = services.outbox.pack({}, {x}, "the call", who.id, wire_format::bfloat16);
  auto& payload = packed.payload;
  for (int times = 0; times < 2; ++times) {
    BOOST_REQUIRE(payload.ahead.unfinished);
    BOOST_TEST((payload.ahead.unfinished->coming.size() == 1U && payload.packings.empty() && packed.arriving.events.empty()));
    const auto rest = services.outbox.compress(payload.tensors, payload.packings, payload.ahead, who.id, payload.format);
    BOOST_TEST(rest.events.empty());
  }
}

BOOST_FIXTURE_TEST_CASE(stay_on_their_device_only_for_a_node_of_this_machine_that_may_have_devices, fixture) {
  const auto x = at::ones({elements}, at::device(first));
  const auto stays = [&](node_id to, wire_format format = wire_format::exact) {
    return !services.outbox.stage({x}, to, format).made.empty();
  };
  const auto meets = [&](node_id id, const std::string& host, const std::vector<c10::Device>& devices) {
    who = {"another", id, host, 0, ~0U, devices};
    services.directory.add(who, caf::actor_cast<caf::strong_actor_ptr>(sender), 1);
    return id;
  };
  BOOST_TEST(stays(there));
  BOOST_TEST(stays(services.self.id()));
  BOOST_TEST(!stays(node_id{99}));
  const auto all = who.devices;
  const auto reads_formats = meets(node_id{8}, "127.0.0.1", all);
  BOOST_TEST(stays(reads_formats));
  BOOST_TEST(!stays(reads_formats, wire_format::bfloat16));
  BOOST_TEST(!stays(meets(node_id{9}, "192.0.2.1", all)));
  BOOST_TEST(!stays(meets(node_id{10}, "127.0.0.1", {c10::Device(c10::kCPU)})));
  services.directory.traffic.note_over_the_host(there);
  BOOST_TEST(!stays(there));
}

BOOST_FIXTURE_TEST_CASE(that_are_never_offered_to_a_node_of_this_machine_are_said_to_go_over_the_host_once, fixture) {
  const auto x = at::ones({elements}, at::device(first));
  const auto says = [&](node_id id, const std::string& host, const std::string& why) {
    who.id = id;
    who.host = host;
    services.directory.add(who, caf::actor_cast<caf::strong_actor_ptr>(sender), 1);
    for (int i = 0; i < 2; ++i) BOOST_TEST(services.outbox.stage({x}, id, wire_format::exact).made.empty());
    BOOST_TEST(services.directory.traffic.is_over_the_host(id) == !why.empty());
    return why.empty() || becomes_true([&] { return lines_of_log("'there' over the host: " + why) == 1U; });
  };
  BOOST_TEST(says(node_id{20}, "192.0.2.1", ""));  // another machine
  BOOST_TEST(says(node_id{21}, "192.0.2.2", "it does not listen on loopback"));
  devices::set_sharing(at::kPrivateUse1, nullptr);
  BOOST_TEST(says(node_id{22}, "127.0.0.1", "this process can't share memory of its devices"));
  simulated::install_shared();
  {
    const simulated::watched_sharing none([] {}, [] { TORCH_CHECK(false, "no event today"); });
    BOOST_TEST(says(node_id{23}, "127.0.0.1", "simulated:0: no event today"));
  }
  BOOST_TEST(lines_of_log() == 3U);
}

BOOST_FIXTURE_TEST_CASE(are_offered_with_their_place_in_memory_and_held_until_the_answer, fixture) {  // OP-3, OP-6
  meet();
  auto whole = at::arange(elements + 50, at::kFloat).to(first);
  const auto part = whole.narrow(0, 50, elements);
  const auto place = simulated::sharing().share(part);
  const auto before = simulated::used_bytes();
  ship(part);
  BOOST_REQUIRE(offers.size() == 1U);
  BOOST_TEST(offers[0].bytes == bytes);
  BOOST_TEST(offers[0].total == bytes);
  BOOST_TEST(offers[0].address == 50 * sizeof(float));
  BOOST_TEST((offers[0].allocation == place.allocation));
  BOOST_TEST(!offers[0].event.empty());
  BOOST_TEST(messages == 1);
  BOOST_TEST(pieces.empty());
  BOOST_TEST(simulated::used_bytes() == before);
  BOOST_TEST(lines_of_log() == 0U);
}

BOOST_FIXTURE_TEST_CASE(go_over_the_host_until_the_node_has_drawn_a_mark, fixture) {
  const auto x = at::arange(elements, at::kFloat);
  ship(x.to(first));
  BOOST_TEST(offers.empty());
  BOOST_TEST(messages == 0);
  BOOST_TEST(is_copied());
  BOOST_TEST(messages == 1);
  ship(x.to(first));
  BOOST_REQUIRE(!offers.empty());
  BOOST_TEST(!offers.back().allocation.empty());
}

BOOST_FIXTURE_TEST_CASE(go_over_the_host_to_a_node_that_refuses_an_offer_which_is_said_once, fixture) {
  meet();
  reads = false;
  const auto x = at::arange(elements, at::kFloat);
  for (int i = 0; i < 2; ++i) {
    pieces.clear();
    ship((x + i).to(first));
    BOOST_TEST(is_copied());
    run();
    BOOST_REQUIRE(came().defined());
    BOOST_TEST(at::equal(came(), x + i));
  }
  BOOST_TEST(messages == 2);
  BOOST_TEST(services.directory.traffic.is_over_the_host(there));
  BOOST_TEST(lines_of_log() == 1U);
  services.directory.remove(there, 1);
  services.directory.add(who, caf::actor_cast<caf::strong_actor_ptr>(sender), 2);
  BOOST_TEST(!services.directory.traffic.is_over_the_host(there));  // it may be another process
}

BOOST_FIXTURE_TEST_CASE(which_the_other_device_can_not_copy_go_over_the_host_and_the_log_says_why, fixture) {
  meet();
  fails = true;
  ship(at::full({elements}, 2.0F, at::device(first)));
  BOOST_TEST(is_copied());
  fails = false;
  run();
  BOOST_TEST(messages == 1);
  BOOST_TEST(becomes_true([&] { return lines_of_log("over the host: no memory there") == 1U; }));
  BOOST_TEST(!services.directory.traffic.is_over_the_host(there));
}

BOOST_FIXTURE_TEST_CASE(are_copied_to_the_host_only_when_they_are_made, fixture) {
  meet();
  reads = false;
  const auto stream = simulated::new_stream();
  simulated::gate late(stream);
  {
    const c10::StreamGuard on(stream);
    ship(at::full({elements}, 3.0F, at::device(first)));
  }
  simulated::settle();
  run();
  BOOST_TEST(pieces.empty());
  late.open();
  BOOST_TEST(is_copied());
  run();
  BOOST_REQUIRE(came().defined());
  BOOST_TEST(at::equal(came(), at::full({elements}, 3.0F)));
}

BOOST_FIXTURE_TEST_CASE(whose_memory_is_not_shared_alone_go_over_the_host, fixture) {
  meet();
  std::vector<float> memory(elements, 4.0F);  // of no allocation of the device
  const auto tensor =
    at::for_blob(memory.data(), {elements}).options(at::device(first).dtype(at::kFloat)).target_device(first).make_tensor();
  const auto offered_from_devices = [&] {
    return std::count_if(offers.begin(), offers.end(), [](const auto& each) { return !each.allocation.empty(); });
  };
  ship(tensor);
  BOOST_TEST(offers.empty());
  BOOST_TEST(is_copied());
  run();
  BOOST_TEST(messages == 1);
  BOOST_TEST(offered_from_devices() == 0);
  BOOST_TEST(becomes_true([&] { return lines_of_log() == 1U; }));
  BOOST_TEST(!services.directory.traffic.is_over_the_host(there));
  ship(at::ones({elements}, at::device(first)));
  BOOST_TEST(offered_from_devices() == 1);
  BOOST_TEST(messages == 2);
}

BOOST_FIXTURE_TEST_CASE(whose_device_fails_make_their_message_fail_with_the_reason, fixture) {  // OP-7
  meet();
  reads = false;
  const auto x = at::ones({elements}, at::device(first));
  simulated::synchronize();
  const simulated::broken_device broken;
  ship(x);
  BOOST_TEST(!is_copied());
  run();
  BOOST_TEST(messages == 0);
  BOOST_REQUIRE(failures.size() == 1U);
  BOOST_TEST(contains(failures[0], "simulated:0"));
  BOOST_TEST(contains(failures[0], "the simulated device is broken"));
  BOOST_TEST(becomes_true(
    [&] { return lines_of_log("a message to node 'there' failed: its tensors, which come from simulated:0") == 1U; }));
  BOOST_REQUIRE(pieces.size() == 1U);  // calls the transfer off
  BOOST_TEST(pieces[0].total == 0U);
}

BOOST_FIXTURE_TEST_CASE(whose_device_fails_make_the_pass_of_their_gradients_fail_at_once, fixture) {  // OP-7
  meet();
  reads = false;
  const auto staged = services.departures->stage.to_host({at::ones({elements}, at::device(first))}, true);
  simulated::synchronize();
  const simulated::broken_device broken;
  const auto leaving = std::make_shared<contracts::outgoing_gradients>();
  leaving->to = there;
  leaving->message.context.node = there;
  leaving->message.from = "here";
  leaving->message.gradients = staged.tensors;
  leaving->message.ahead.made = staged.made;
  with_desk([&](transfer_desk& desk) { desk.send(leaving); });
  BOOST_TEST(!is_copied());
  run();
  BOOST_REQUIRE(failures.size() == 1U);
  BOOST_TEST(contains(failures[0], "backward on node 'here' failed: gradients for node 'there': its tensors"));
  BOOST_TEST(contains(failures[0], "the simulated device is broken"));
}

BOOST_FIXTURE_TEST_CASE(whose_copy_can_not_begin_make_their_message_fail, fixture) {  // OP-7
  meet();
  reads = false;
  auto staged = services.departures->stage.to_host({at::ones({elements}, at::device(first))}, true);
  simulated::synchronize();
  const simulated::no_events broken;
  with_desk([&](transfer_desk& desk) {
    sent_ahead ahead;
    ahead.made = staged.made;
    desk.ship(
      there, staged.tensors, staged.devices, ahead, [this] { ++messages; },
      [this](const error& why) { failures.emplace_back(why.what()); });
  });
  BOOST_TEST(!is_copied());
  BOOST_TEST(messages == 0);
  BOOST_TEST(failures.size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(that_are_late_do_not_hold_up_the_desk_when_no_page_locked_memory_is_left, fixture) {  // ST-1
  meet();
  reads = false;
  const auto all_locked = services.departures->stage.to_host(
    {at::empty({static_cast<std::int64_t>(devices::host_buffers::default_budget)}, at::device(first).dtype(at::kByte))});
  all_locked.wait();
  const auto stream = simulated::new_stream();
  simulated::gate late(stream);
  std::promise<void> has_answered;
  bool was_held_up = true;
  std::thread rescue([&] {  // so that a desk that waits fails the test
    was_held_up = has_answered.get_future().wait_for(std::chrono::seconds(3)) != std::future_status::ready;
    late.open();
  });
  {
    const c10::StreamGuard on(stream);
    ship(at::full({elements}, 3.0F, at::device(first)));
  }
  bool answers = false;
  with_desk([&](transfer_desk&) { answers = true; });
  BOOST_TEST(pieces.empty());
  has_answered.set_value();
  rescue.join();
  BOOST_TEST(answers);
  BOOST_TEST(!was_held_up);
  BOOST_TEST(is_copied());
  run();
  BOOST_REQUIRE(came().defined());
  BOOST_TEST(at::equal(came(), at::full({elements}, 3.0F)));
  BOOST_TEST(services.departures->stage.used().refused == 1U);
}

BOOST_FIXTURE_TEST_CASE(are_let_go_of_when_the_node_goes_down, fixture) {  // OP-5
  const auto before = simulated::used_bytes();
  ship(at::ones({elements}, at::device(first)));
  with_desk([](transfer_desk& desk) { desk.went_down(there); });
  BOOST_TEST(messages == 0);
  BOOST_TEST(is_copied());  // comes too late
  BOOST_TEST(becomes_true([&] { return simulated::used_bytes() == before; }));
  BOOST_TEST(pieces.empty());
}

BOOST_AUTO_TEST_SUITE_END()
