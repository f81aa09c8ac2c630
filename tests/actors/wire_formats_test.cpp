// SPDX-License-Identifier: BSD-3-Clause
// Calls and passes between nodes whose tensors are compressed.
#include <boost/test/unit_test.hpp>

#include <array>
#include <functional>
#include <future>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/actors/node_access.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

BOOST_AUTO_TEST_SUITE(wire_formats)

namespace {

using namespace troupe;

constexpr std::array formats{wire_format::bfloat16, wire_format::float16, wire_format::int8};

constexpr std::int64_t large = 512;  // a side; 1 MiB of float32, so tensors leave in pieces ahead of their messages

/// Compressed elements of numbers up to 4 are off by less.
double tolerance(wire_format of) { return of == wire_format::int8 ? 0.04 : of == wire_format::bfloat16 ? 0.02 : 0.004; }

double largest_error(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

/// Multiplies by its weight. Methods: times; via (calls another module of this kind first).
class scale : public module {
 public:
  explicit scale(std::int64_t side) {
    at::manual_seed(side);
    weight = (at::rand({side, side}) + 1).requires_grad_();
  }
  call_reply call(const std::string& method, call_arguments& arguments) override {
    auto x = arguments.tensors.at(0);
    if (method == "via") {
      const auto next = remote_module::accept(arguments.here, get<std::string>(arguments.values, "next"));
      x = next.call("times", {x}).get().tensor(0);
    }
    return {{x * weight}};
  }
  named_tensors parameters() override { return {{"weight", weight}}; }

  at::Tensor weight;
};

/// Three nodes in this process, connected by TCP.
struct trio {
  node driver{test::loopback_settings("driver")};
  node one{test::loopback_settings("one")};
  node two{test::loopback_settings("two")};

  trio() {
    for (node* each : {&one, &two}) {
      add_module_type(*each, "scale",
                      [](const attributes& values) { return std::make_shared<scale>(get<std::int64_t>(values, "side")); });
      each->functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
      driver.join("127.0.0.1", each->port());
    }
    one.peer("two");
  }
  static attributes side(std::int64_t of) { return {{"side", of}}; }
  remote_module module_on(const std::string& name, std::int64_t of = large) {
    return driver.peer(name).create("scale", side(of));
  }
};

peer_status traffic(const node& of, const std::string& with) {
  for (const auto& each : of.status().peers)
    if (each.who.name == with) return each;
  throw std::runtime_error("no peer " + with);
}

/// Makes the directory of `here` believe that `other` reads no wire format, as a node of the previous version does.
void make_old(node& here, node& other) {
  auto& directory = services_of(here).directory;
  auto who = services_of(other).self.as_member();
  who.formats = 0;
  directory.add(who, caf::actor_cast<caf::strong_actor_ptr>(directory.gateway(other.id())), 1'000'000);
}

}  // namespace

BOOST_AUTO_TEST_CASE(activations_and_gradients_are_close_and_take_fewer_bytes) {
  for (const auto format : formats) BOOST_TEST_CONTEXT(to_text(format)) {
      trio all;
      const auto remote = all.module_on("one");
      const auto weight = remote.parameters().at(0).second;
      at::manual_seed(9);
      const auto x = at::randn({large, large}).clamp(-3, 3).requires_grad_();
      const auto target = at::randn({large, large}).clamp(-3, 3);
      const auto before = traffic(all.driver, "one");
      context pass(all.driver, format);
      const auto y = remote.call("times", {x}).get().tensor(0);
      BOOST_TEST(largest_error(y, x * weight) <= 2 * tolerance(format));
      pass.backward({(y * target).sum()}).get();
      BOOST_TEST(largest_error(pass.gradient(x), target * weight) <= 3 * tolerance(format));
      const auto of_weight = remote.gradients(pass).at(0).second;
      BOOST_TEST(largest_error(of_weight, target * x) <= 6 * tolerance(format));
      BOOST_TEST(largest_error(of_weight, target * x) > 0);  // it was compressed
      const auto after = traffic(all.driver, "one");
      // the activation and its gradient to the node, and back; the gradients of the parameters came exactly
      constexpr std::uint64_t plain = 4 * large * large;
      const double share = format == wire_format::int8 ? 0.26 : 0.51;
      const auto sent = after.bytes_sent - before.bytes_sent;
      const auto received = after.bytes_received + after.bytes_read - before.bytes_received - before.bytes_read;
      BOOST_TEST(after.plain_bytes_sent - before.plain_bytes_sent == 2 * plain);
      BOOST_TEST(static_cast<double>(sent) < share * 2 * plain);
      BOOST_TEST(after.plain_bytes_received - before.plain_bytes_received == 3 * plain);
      BOOST_TEST(static_cast<double>(received) < (share * 2 + 1) * plain + 1000);
      const auto there = traffic(all.one, "driver");
      BOOST_TEST(there.plain_bytes_received - there.bytes_received == after.plain_bytes_sent - after.bytes_sent);
    }
}

BOOST_AUTO_TEST_CASE(without_a_format_every_bit_travels) {
  trio all;
  const auto remote = all.module_on("one");
  const auto weight = remote.parameters().at(0).second;
  const auto x = at::randn({large, large}).requires_grad_();
  context pass(all.driver);
  const auto y = remote.call("times", {x}).get().tensor(0);
  BOOST_TEST(at::equal(y, x * weight));
  pass.backward({y.square().sum()}).get();
  BOOST_TEST(at::equal(pass.gradient(x), 2 * (x * weight) * weight));
  const auto seen = traffic(all.driver, "one");
  BOOST_TEST(seen.plain_bytes_sent == seen.bytes_sent);
  BOOST_TEST(seen.plain_bytes_received == seen.bytes_received);
}

BOOST_AUTO_TEST_CASE(a_single_call_has_a_format_of_its_own) {
  trio all;
  const auto x = at::randn({large, large});
  const auto to = all.driver.peer("one");
  const auto echo = [&](std::optional<wire_format> format) { return to.call("echo", {x}, {}, {}, {}, format).get().tensor(0); };
  BOOST_TEST(at::equal(echo({}), x));
  BOOST_TEST(at::equal(echo(wire_format::bfloat16), x.to(at::kBFloat16).to(at::kFloat)));
  const context pass(all.driver, wire_format::int8);
  BOOST_TEST(!at::equal(echo({}), x));
  BOOST_TEST(at::equal(echo(wire_format::exact), x));
}

BOOST_AUTO_TEST_CASE(other_tensors_are_exact_in_any_format) {
  trio all;
  at::manual_seed(4);
  auto infinite = at::randn({4000});
  infinite[7] = std::numeric_limits<float>::infinity();
  const std::vector<at::Tensor> given{at::arange(100'000),    at::randn({5000}, at::kDouble), at::randn({1000}), at::Tensor(),
                                      at::rand({5000}) > 0.5, at::eye(60).to_sparse(),        infinite};
  for (const auto format : formats) {
    const auto back = all.driver.peer("one").call("echo", given, {}, {}, {}, format).get().tensors;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].defined()) {
        BOOST_TEST(!back[i].defined());
        continue;
      }
      if (i == 6 && format == wire_format::bfloat16) continue;  // infinities fit
      BOOST_TEST(at::equal(back[i].to_dense(), given[i].to_dense()), to_text(format) << ", tensor " << i);
    }
    BOOST_TEST(back[6].isinf().sum().item<std::int64_t>() == 1);
  }
}

BOOST_AUTO_TEST_CASE(nested_calls_inherit_the_format) {
  trio all;
  const auto first = all.module_on("one");
  const auto second = all.module_on("two");
  const auto product = (first.parameters().at(0).second * second.parameters().at(0).second);
  const auto x = at::randn({large, large}).clamp(-3, 3).requires_grad_();
  context pass(all.driver, wire_format::bfloat16);
  const auto y = first.call("via", {x}, {{"next", second.lend(all.driver.peer("one"))}}).get().tensor(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(at::allclose(y, x * product, 0.03, 0.03));
  BOOST_TEST(at::allclose(pass.gradient(x), product, 0.03, 0.03));
  const auto seen = traffic(all.one, "two");
  constexpr std::uint64_t plain = 4 * large * large;
  BOOST_TEST(seen.plain_bytes_sent == 2 * plain);  // x, and the gradient of the result
  BOOST_TEST(seen.bytes_sent == plain);
}

BOOST_AUTO_TEST_CASE(calls_of_continuations_have_the_format_of_their_context) {
  trio all;
  const auto x = at::randn({large, large});
  const auto to = all.driver.peer("one");
  const context pass(all.driver, wire_format::bfloat16);
  std::promise<future<call_reply>> made;
  to.call("echo", {at::ones({1})}).then([&](const future<call_reply>&) { made.set_value(to.call("echo", {x})); });
  const auto back = made.get_future().get().get().tensor(0);
  BOOST_TEST(at::equal(back, x.to(at::kBFloat16).to(at::kFloat)));
}

BOOST_AUTO_TEST_CASE(a_node_of_the_previous_version_gets_exact_tensors) {
  trio all;
  make_old(all.driver, all.one);
  const auto remote = all.module_on("one");
  const auto weight = remote.parameters().at(0).second;
  const auto x = at::randn({large, large}).requires_grad_();
  const auto target = at::randn({large, large});
  context pass(all.driver, wire_format::int8);
  const auto y = remote.call("times", {x}).get().tensor(0);
  pass.backward({(y * target).sum()}).get();
  const auto seen = traffic(all.driver, "one");
  BOOST_TEST(seen.plain_bytes_sent == seen.bytes_sent);
  BOOST_TEST(at::equal(remote.gradients(pass).at(0).second, target * x));
}

BOOST_AUTO_TEST_CASE(nodes_tell_each_other_which_formats_they_read) {
  trio all;
  for (const auto* other : {"one", "two"})
    BOOST_TEST(services_of(all.driver).directory.formats(all.driver.peer(other).id()) == formats_read);
  BOOST_TEST(services_of(all.one).directory.formats(all.driver.id()) == formats_read);
  BOOST_TEST(services_of(all.one).directory.formats(all.two.id()) == formats_read);
}

BOOST_AUTO_TEST_CASE(the_mean_of_repeated_gradients_is_exact_in_the_limit) {
  trio all;
  constexpr std::int64_t side = 64;
  const auto remote = all.module_on("one", side);
  at::manual_seed(6);
  const auto gradient = at::randn({side, side}) * at::logspace(-3, 0, side);
  backward_options options;
  options.gradients = {gradient};
  const auto ones = at::ones({side, side});
  auto sum = at::zeros({side, side}, at::kDouble);
  constexpr int steps = 60;
  double first = 0;
  for (int step = 0; step < steps; ++step) {
    context pass(all.driver, wire_format::int8);  // a new context in each step, as in a training
    const auto y = remote.call("times", {ones}).get().tensor(0);
    pass.backward({y}, options).get();
    sum += remote.gradients(pass).at(0).second;
    if (step == 0) first = largest_error(sum, gradient);
  }
  BOOST_TEST(first > 1e-3);
  BOOST_TEST(largest_error(sum / steps, gradient) < first / 15);
}

BOOST_AUTO_TEST_CASE(residuals_end_with_their_peer) {
  trio all;
  const auto weights = [&](const char* name) { return all.module_on(name, 64); };
  auto& kept = services_of(all.driver).outbox.residuals;
  for (int step = 0; step < 3; ++step)
    for (const auto* name : {"one", "two"}) {
      const auto remote = weights(name);
      context pass(all.driver, wire_format::int8);
      const auto y = remote.call("times", {at::ones({64, 64})}).get().tensor(0);
      pass.backward({y.square().sum()}).get();
    }
  BOOST_TEST(kept.bytes() > 0u);
  all.one.stop();
  all.two.stop();
  BOOST_TEST(test::becomes_true([&] { return kept.bytes() == 0; }));
}

BOOST_AUTO_TEST_CASE(residuals_have_the_limit_of_the_settings) {
  auto options = test::loopback_settings("few_residuals");
  options.feedback_limit = 64 * 64 * sizeof(float);
  node driver(options);
  trio all;
  driver.join("127.0.0.1", all.one.port());
  const auto remote = driver.peer("one").create("scale", trio::side(64));
  context pass(driver, wire_format::int8);
  const auto call = [&] { return remote.call("times", {at::ones({64, 64})}).get().tensor(0).square().sum(); };
  pass.backward({call() + call()}).get();
  BOOST_TEST(services_of(driver).outbox.residuals.bytes() == options.feedback_limit);
}

BOOST_AUTO_TEST_CASE(gradients_of_gradients_are_compressed_too) {
  trio all;
  const auto remote = all.module_on("one", 64);
  const auto weight = remote.parameters().at(0).second;
  at::manual_seed(8);
  const auto x = at::randn({64, 64}).clamp(-3, 3).requires_grad_();
  context pass(all.driver, wire_format::bfloat16);
  backward_options recorded;
  recorded.create_graph = true;
  const auto y = remote.call("times", {x}).get().tensor(0);
  pass.backward({y.pow(3).sum()}, recorded).get();
  const auto gradient = pass.gradient(x);
  pass.backward({gradient.sum()}).get();
  // both passes add up: 3 (xw)^2 w, and 6 x w^3
  const auto expected = 3 * x.square() * weight.pow(3) + 6 * x * weight.pow(3);
  BOOST_TEST(at::allclose(pass.gradient(x), expected, 0.05, 0.5));
  const auto seen = traffic(all.driver, "one");
  BOOST_TEST(seen.bytes_sent < seen.plain_bytes_sent * 6 / 10);
}

BOOST_AUTO_TEST_CASE(messages_of_own_actors_have_the_format_of_their_context) {
  trio all;
  const auto x = at::randn({100, 100}).requires_grad_();
  context pass(all.driver, wire_format::float16);
  auto message = join_graphs(all.driver.peer("one"), {x});
  BOOST_TEST(message.tensors.at(0).nbytes() == 2u * 100 * 100);
  joined_scope there(all.one, std::move(message));
  BOOST_TEST(at::allclose(there.tensor(0), x, 0x1p-11, 1e-9));
  const auto answer = there.reply({there.tensor(0)});
  BOOST_TEST(answer.tensors.at(0).nbytes() == 2u * 100 * 100);
}

BOOST_AUTO_TEST_CASE(a_message_whose_scales_are_no_scales_is_refused_and_the_node_goes_on) {  // PF-3
  trio all;
  const auto x = at::randn({100, 100}).requires_grad_();
  context pass(all.driver, wire_format::int8);
  auto message = join_graphs(all.driver.peer("one"), {x});
  auto hostile = message;
  hostile.tensors = {message.tensors.at(0).clone()};
  hostile.tensors[0].narrow(0, 100 * 100, 4).view(at::kFloat).fill_(std::numeric_limits<float>::quiet_NaN());
  BOOST_CHECK_EXCEPTION(joined_scope(all.one, std::move(hostile)), error, [](const error& refused) {
    return refused.code() == errc::malformed_message &&
           std::string(refused.what()).find("a scale that is") != std::string::npos;
  });
  BOOST_TEST(largest_error(joined_scope(all.one, std::move(message)).tensor(0), x) < 0.1);
}

BOOST_AUTO_TEST_SUITE_END()
