// SPDX-License-Identifier: BSD-3-Clause
// Large tensors of an accelerator that go over the host in parts, between nodes of one process whose accelerator shares nothing.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/actors/node_access.hpp>
#include <troupe/devices/arrivals.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t many = (devices::part_bytes * 7 / 2) / sizeof(float) + 3;

struct nodes_with_parts : simulated::fixture {
  nodes_with_parts() {
    b->functions().add("twice", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) * 2}}; });
    b->functions().add("ones", [this](call_arguments&) { return call_reply{{at::ones({many}, at::device(first))}}; });
    a.join("127.0.0.1", b->port());
  }
  peer to_b() { return a.peer("b"); }
  /// A tensor whose stream is held up by `late`.
  at::Tensor late_ones() {
    const c10::StreamGuard on(stream);
    return at::ones({many}, at::device(first));
  }
  future<call_reply> call_late(const at::Tensor& tensor, std::optional<std::chrono::milliseconds> deadline = {}) {
    const c10::StreamGuard on(stream);
    return to_b().call("twice", {tensor}, {}, {}, deadline);
  }
  /// Whether nothing of node a is in page-locked memory.
  bool is_let_go() {
    return becomes_true([this] { return troupe::services_of(a).departures->stage.used().in_use == 0; });
  }

  node a{loopback_settings("a")};
  std::optional<node> b{std::in_place, loopback_settings("b")};
};

auto has_code(errc code) {
  return [code](const error& failed) { return failed.code() == code; };
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(tensors_in_parts, nodes_with_parts)

BOOST_AUTO_TEST_CASE(arrive_whole_in_both_directions) {
  const auto values = at::arange(static_cast<double>(many));
  for (const auto& sent : {values.to(first), values.view({1, many}).t().to(first)}) {
    const auto back = to_b().call("twice", {sent}).get().tensors.at(0);
    BOOST_TEST((back.device() == first && back.sizes() == sent.sizes()));
    BOOST_TEST(at::equal(back.cpu().flatten(), values * 2));
  }
  BOOST_TEST(is_let_go());
}

BOOST_AUTO_TEST_CASE(leave_when_they_are_made_and_hold_up_no_other_call) {  // OP-1, OP-8
  simulated::gate late(stream);
  auto reply = call_late(late_ones());
  BOOST_TEST(to_b().call("twice", {at::ones({many})}).get().tensors.size() == 1U);
  simulated::settle();
  BOOST_TEST(!reply.ready());
  late.open();
  BOOST_TEST((reply.get().tensors.at(0) == 2).all().cpu().item<bool>());
}

BOOST_AUTO_TEST_CASE(have_the_elements_of_the_time_of_the_call) {  // ST-1
  simulated::gate late(stream);
  const auto sent = late_ones();
  auto reply = call_late(sent);
  {
    const c10::StreamGuard on(stream);
    sent.zero_();
  }
  late.open();
  BOOST_TEST((reply.get().tensors.at(0) == 2).all().cpu().item<bool>());
}

BOOST_AUTO_TEST_CASE(of_an_answer_and_of_gradients_are_late_too) {
  simulated::gate late(default_stream);
  auto reply = to_b().call("ones");
  BOOST_TEST(to_b().call("twice", {at::ones({2})}).get().tensors.size() == 1U);
  BOOST_TEST(!reply.ready());
  late.open();
  BOOST_TEST((reply.get().tensors.at(0) == 1).all().cpu().item<bool>());
  context pass(a);
  const auto x = at::full({many}, 3.0F, at::device(first)).requires_grad_();
  const auto y = to_b().call("twice", {x}).get().tensors.at(0);
  pass.backward({y}, {.gradients = {at::ones({many}, at::device(first))}}).get();
  BOOST_TEST((pass.gradient(x) == 2).all().cpu().item<bool>());
}

BOOST_AUTO_TEST_CASE(that_come_too_late_fail_their_call_at_its_deadline) {
  simulated::gate late(stream);
  auto reply = call_late(late_ones(), 50ms);
  BOOST_CHECK_EXCEPTION(reply.get(10s), error, has_code(errc::deadline_passed));
  late.open();
  BOOST_TEST(to_b().call("twice", {at::ones({2})}).get().tensors.size() == 1U);
  BOOST_TEST(is_let_go());
}

BOOST_AUTO_TEST_CASE(of_a_device_that_fails_fail_their_call) {  // OP-7
  simulated::gate late(stream);
  auto reply = call_late(late_ones());
  const simulated::broken_device broken;
  late.open();
  BOOST_CHECK_EXCEPTION(reply.get(10s), error, [](const error& failed) {
    return failed.code() == errc::function_failed && contains(failed.what(), "the simulated device is broken");
  });
  BOOST_TEST(to_b().call("twice", {at::ones({2})}).get().tensors.size() == 1U);
}

BOOST_AUTO_TEST_CASE(are_let_go_of_when_their_receiver_ends) {
  simulated::gate late(stream);
  auto reply = call_late(late_ones());
  b->stop();
  BOOST_CHECK_EXCEPTION(reply.get(10s), error, has_code(errc::peer_down));
  late.open();
  simulated::synchronize();
  BOOST_TEST(is_let_go());
}

BOOST_AUTO_TEST_SUITE_END()
