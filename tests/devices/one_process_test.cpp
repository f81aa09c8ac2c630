// SPDX-License-Identifier: BSD-3-Clause
// Tensors on devices within one process: between its nodes, and of a node to itself. None of them visits the host.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_sharing.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t many = 1 << 18;  // elements; 1 MiB of float32

struct one_process : simulated::fixture {
  one_process() {
    simulated::install_shared();
    for (node* each : {&a, &b}) {
      each->functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
      each->functions().add("twice", [this](call_arguments& arguments) {
        came = arguments.tensors.at(0).detach();
        has_come = true;
        return call_reply{{arguments.tensors.at(0) * 2}};
      });
    }
    a.join("127.0.0.1", b.port());
    const auto tensor = at::ones({many}, at::device(first));
    constexpr int calls_to_agree = 4;
    for (int i = 0; i < calls_to_agree; ++i) a.peer("b").call("echo", {tensor}).get();
    simulated::synchronize();
    copies = simulated::host_copies();
  }
  bool no_copy_with_host() const {
    simulated::synchronize();
    return simulated::host_copies() == copies;
  }

  at::Tensor came;
  std::atomic<bool> has_come{false};
  std::size_t copies = 0;
  node a{loopback_settings("a")};
  node b{loopback_settings("b")};
};

bool are(const at::Tensor& tensor, float expected) { return (tensor.cpu() == expected).all().item<bool>(); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(devices_of_one_process, one_process)

BOOST_AUTO_TEST_CASE(a_tensor_for_another_node_is_copied_on_its_device) {
  const auto sent = at::full({many}, 3.0F, at::device(first));
  const auto back = a.peer("b").call("twice", {sent}).get().tensors.at(0);
  BOOST_TEST(no_copy_with_host());
  sent.zero_();  // another node keeps what came
  BOOST_TEST((back.device() == first && came.device() == first));
  BOOST_TEST((are(back, 6) && are(came, 3)));
}

BOOST_AUTO_TEST_CASE(nothing_is_kept_of_a_tensor_that_another_node_has_got) {
  const auto before = simulated::used_bytes();
  a.peer("b").call("twice", {at::full({many}, 3.0F, at::device(first))}).get();
  came.reset();
  BOOST_TEST(becomes_true([&] { return simulated::used_bytes() <= before; }));
}

BOOST_AUTO_TEST_CASE(tensors_of_the_cpu_go_to_another_node_in_pieces) {
  const auto read = [this] {
    for (const auto& each : b.status().peers)
      if (each.who.name == "a") return each.bytes_read;
    return std::uint64_t{0};
  };
  const auto before = read();
  BOOST_TEST(before > 0U);  // of tensors of the device
  a.peer("b").call("twice", {at::ones({many})}).get();
  BOOST_TEST(read() == before);
}

BOOST_AUTO_TEST_CASE(a_tensor_for_another_device_of_another_node_does_not_visit_the_host) {
  const auto back =
    a.peer("b").with_devices({{first, second}}).call("twice", {at::full({many}, 3.0F, at::device(first))}).get();
  BOOST_TEST(no_copy_with_host());
  BOOST_TEST((came.device() == second && back.tensors.at(0).device() == first && are(back.tensors.at(0), 6)));
}

BOOST_AUTO_TEST_CASE(a_part_of_a_tensor_for_another_node_is_copied_alone) {
  const auto whole = at::cat({at::full({many}, 3.0F), at::full({many}, 5.0F)}).to(first);
  copies = simulated::host_copies();
  const auto back = a.peer("b").call("twice", {whole.slice(0, many, 2 * many)}).get().tensors.at(0);
  BOOST_TEST(no_copy_with_host());
  BOOST_TEST((are(back, 10) && came.storage().nbytes() == many * sizeof(float)));
}

BOOST_AUTO_TEST_CASE(another_node_gets_a_late_tensor_when_it_is_made) {
  auto late = simulated::gate(stream);
  at::Tensor sent;
  future<call_reply> reply;
  {
    const c10::StreamGuard on(stream);
    sent = at::full({many}, 3.0F, at::device(first));
    reply = a.peer("b").call("twice", {sent});
  }
  sent.reset();
  a.peer("b").call("echo", {at::ones({1})}).get();
  BOOST_TEST(!reply.ready());
  late.open();
  BOOST_TEST(are(reply.get().tensors.at(0), 6));
}

BOOST_AUTO_TEST_CASE(gradients_for_another_node_stay_on_their_device) {
  context pass(a);
  const auto x = at::full({many}, 3.0F, at::device(first)).requires_grad_();
  const auto y = a.peer("b").call("twice", {x}).get().tensors.at(0);
  const auto ones = at::ones({many}, at::device(first));
  pass.backward({y}, {.gradients = {ones}}).get();
  BOOST_TEST(no_copy_with_host());
  BOOST_TEST(are(pass.gradient(x), 2));
}

BOOST_AUTO_TEST_CASE(a_node_gives_itself_the_tensor_itself) {
  const auto small = at::full({2}, 3.0F, at::device(first));
  const auto large = at::full({many}, 3.0F, at::device(first));
  for (const auto& each : {small, large}) {
    const auto back = a.self().call("twice", {each, at::Tensor(), at::ones({1})}).get().tensors.at(0);
    BOOST_TEST(no_copy_with_host());
    BOOST_TEST((came.is_alias_of(each) && back.device() == first && are(back, 6)));
    copies = simulated::host_copies();
  }
}

BOOST_AUTO_TEST_CASE(a_node_copies_for_itself_from_one_device_to_another) {
  const auto sent = at::full({2}, 3.0F, at::device(first));
  const auto back = a.self().with_devices({{first, second}}).call("twice", {sent}).get().tensors.at(0);
  BOOST_TEST(no_copy_with_host());
  BOOST_TEST((came.device() == second && back.device() == first && are(back, 6)));
}

BOOST_AUTO_TEST_CASE(the_streams_of_a_call_to_itself_wait_for_its_tensors_and_no_thread_does) {
  auto late = simulated::gate(stream);
  future<call_reply> reply;
  {
    const c10::StreamGuard on(stream);
    reply = a.self().call("twice", {at::full({2}, 3.0F, at::device(first))});
  }
  BOOST_TEST(becomes_true([&] { return has_come.load(); }));
  const c10::StreamGuard on(other);
  const auto back = reply.get().tensors.at(0);
  const auto four_times = back * 2;
  simulated::settle();
  late.open();
  BOOST_TEST(are(four_times, 12));
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_tensor_to_itself_is_not_used_again_too_early) {
  auto late = simulated::gate(default_stream);  // of the call
  at::Tensor sent;
  {
    const c10::StreamGuard on(stream);
    sent = at::full({2}, 3.0F, at::device(first));
  }
  auto reply = a.self().call("twice", {sent});
  BOOST_TEST(becomes_true([&] { return has_come.load(); }));
  const auto back = reply.get().tensors.at(0);
  sent.reset();
  came.reset();
  {
    const c10::StreamGuard on(stream);
    at::full({2}, 7.0F, at::device(first));
    simulated::settle();
  }
  late.open();
  BOOST_TEST(are(back, 6));
}

BOOST_AUTO_TEST_CASE(gradients_of_a_node_for_itself_stay_on_their_device) {
  context pass(a);
  const auto x = at::full({2}, 3.0F, at::device(first)).requires_grad_();
  at::Tensor y;
  {
    const c10::StreamGuard on(stream);
    y = a.self().call("twice", {x}).get().tensors.at(0) * 2;
  }
  const auto ones = at::ones({2}, at::device(first));
  auto late = simulated::gate(stream);
  auto done = pass.backward({y}, {.gradients = {ones}});
  simulated::settle();
  late.open();
  done.get();
  BOOST_TEST(no_copy_with_host());
  BOOST_TEST((pass.gradient(x).device() == first && are(pass.gradient(x), 4)));
}

BOOST_AUTO_TEST_SUITE_END()
