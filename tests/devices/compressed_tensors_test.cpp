// SPDX-License-Identifier: BSD-3-Clause
// Compression of what travels between nodes, with tensors of an accelerator: the same bits as with tensors of the CPU.
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include "actors/loopback_nodes.hpp"
#include "devices/mapped_nodes.hpp"
#include "support/simulated_codec.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::array formats{wire_format::bfloat16, wire_format::float16, wire_format::int8};

struct nodes_that_compress : mapped_nodes {
  simulated::own_kernels kernels;

  nodes_that_compress() : mapped_nodes(no_maps) {
    for (const auto* name : {"square here", "square there"})  // residuals belong to a function
      b.functions().add(name, [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0).square()}}; });
  }

  peer_status traffic() {
    for (const auto& each : a.status().peers)
      if (each.who.name == "b") return each;
    throw std::runtime_error("expected node 'b' in the status of node 'a'");
  }

  // The gradients of some steps on one weight: with int8 each step adds what rounding took in the step before.
  std::vector<at::Tensor> gradients(const std::string& function, const at::Tensor& x, wire_format format) {
    std::vector<at::Tensor> all;
    for (int step = 0; step < 4; ++step) {
      context pass(a, format);
      const auto y = to_b().call(function, {x}).get().tensors.at(0);
      pass.backward({(y * x.detach()).sum()}).get();
      all.push_back(pass.gradient(x).cpu());
    }
    return all;
  }
};

bool same_bits(const at::Tensor& one, const at::Tensor& other) { return at::equal(one.cpu(), other.cpu()); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(compressed_tensors_of_accelerators, nodes_that_compress)

BOOST_AUTO_TEST_CASE(arguments_and_results_have_the_bits_of_those_of_the_cpu) {
  const auto x = at::randn({4096});
  for (const auto format : formats) {
    const auto expected = to_b().call("echo", {x}, {}, {}, {}, format).get().tensors.at(0);
    BOOST_TEST(!at::equal(expected, x));
    const auto before = traffic();
    const auto came = to_b().call("echo", {x.to(first)}, {}, {}, {}, format).get().tensors.at(0);
    BOOST_CHECK(came.device() == first);
    BOOST_TEST(same_bits(came, expected));
    const auto after = traffic();
    BOOST_TEST(after.plain_bytes_sent - before.plain_bytes_sent == 4 * 4096U);
    BOOST_TEST(after.bytes_sent - before.bytes_sent < 4 * 4096U * 0.51);
    BOOST_TEST(after.bytes_received + after.bytes_read - before.bytes_received - before.bytes_read < 4 * 4096U * 0.51);
  }
}

BOOST_AUTO_TEST_CASE(tensors_of_the_cpu_in_the_same_message_are_compressed_too) {
  const auto x = at::randn({4096});
  const auto before = traffic();
  const auto came = to_b().call("echo", {x, x.to(first)}, {}, {}, {}, wire_format::bfloat16).get().tensors;
  BOOST_TEST(same_bits(came.at(0), x.to(at::kBFloat16).to(at::kFloat)));
  BOOST_TEST(same_bits(came.at(1), came.at(0)));
  BOOST_TEST(traffic().bytes_sent - before.bytes_sent < 2 * 4 * 4096U * 0.51);
}

BOOST_AUTO_TEST_CASE(gradients_have_the_bits_of_those_of_the_cpu_also_with_error_feedback) {
  const auto values = at::randn({4096});
  for (const auto format : formats) {
    const auto expected = gradients("square here", values.clone().requires_grad_(), format);
    const auto came = gradients("square there", values.to(first).requires_grad_(), format);
    for (std::size_t step = 0; step < came.size(); ++step) BOOST_TEST(same_bits(came[step], expected[step]), "step " << step);
    if (format == wire_format::int8) BOOST_TEST(!same_bits(came[0], came[1]));  // what rounding took was added
  }
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(to_b()));
}

BOOST_AUTO_TEST_CASE(messages_of_own_actors_have_the_bits_of_those_of_the_cpu) {
  const auto x = at::randn({4096});
  context pass(a, wire_format::bfloat16);
  const auto message = join_graphs(to_b(), {x.to(first)});
  BOOST_TEST(message.tensors.at(0).nbytes() < 4 * 4096U * 0.51);
  const joined_scope there(b, message);
  BOOST_CHECK(there.tensor(0).device() == first);
  BOOST_TEST(same_bits(there.tensor(0), x.to(at::kBFloat16).to(at::kFloat)));
}

BOOST_AUTO_TEST_CASE(a_late_device_delays_the_compressed_message_and_changes_no_bit) {
  const auto x = at::randn({4096});
  const auto there = x.to(first);
  simulated::gate late(default_stream);
  auto reply = to_b().call("echo", {there * 2}, {}, {}, {}, wire_format::bfloat16);
  simulated::settle();
  BOOST_TEST(!reply.ready());
  late.open();
  BOOST_TEST(same_bits(reply.get().tensors.at(0), (x * 2).to(at::kBFloat16).to(at::kFloat)));
}

BOOST_AUTO_TEST_CASE(what_a_format_can_not_hold_travels_exactly_and_late) {
  auto x = at::randn({4096});
  x[7] = std::numeric_limits<float>::quiet_NaN();
  for (const auto format : {wire_format::float16, wire_format::int8}) {
    const c10::StreamGuard on(stream);
    auto there = x.to(first);
    simulated::synchronize();
    simulated::gate late(stream);
    auto reply = to_b().call("echo", {there, x + 1}, {}, {}, {}, format);
    there.zero_();
    late.open();
    const auto came = reply.get().tensors;
    BOOST_TEST(at::equal(came.at(0).cpu().view(at::kInt), x.view(at::kInt)), to_text(format));
  }
}

BOOST_AUTO_TEST_SUITE_END()
