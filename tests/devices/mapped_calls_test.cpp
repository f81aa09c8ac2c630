// SPDX-License-Identifier: BSD-3-Clause
// Device maps that fit: calls, results, gradients, modules, own actors, status.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/script.h>

#include <troupe/actors/joined_message.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/script_module.hpp>
#include <troupe/devices/present_devices.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "devices/mapped_nodes.hpp"

using namespace troupe;
using namespace troupe::test;

BOOST_FIXTURE_TEST_SUITE(a_device_map_of_the_settings, mapped_nodes)

BOOST_AUTO_TEST_CASE(leads_arguments_to_the_peer_and_results_back) {  // DV-1
  const auto reply = to_b().call("echo", {here({1, 2}), at::ones({2}), at::Tensor()}).get();
  BOOST_TEST(get<std::string>(reply.values, "devices") == "simulated:1 simulated:0 none ");
  BOOST_TEST(devices_of(reply.tensors) == "simulated:0 cpu none ");
  BOOST_TEST(has_values(reply.tensors.at(0), at::tensor({1.0, 2.0})));
  BOOST_TEST(has_values(reply.tensors.at(1), at::ones({2})));
}

BOOST_AUTO_TEST_CASE(leads_what_the_peer_has_made_back) {
  for (const auto& [there, back] :
       std::map<std::string, std::string>{{"simulated:1", "simulated:0 "},
                                          {"simulated:0", "cpu "},
                                          {"cpu", "cpu "}}) {  // the CPU is the CPU unless the map says otherwise
    const auto made = to_b().call("on", {}, {{"device", there}}).get().tensors;
    BOOST_TEST(devices_of(made) == back);
    BOOST_TEST(has_values(made.at(0), at::full({2}, 3.0F)));
  }
}

BOOST_AUTO_TEST_CASE(leads_nothing_but_the_calls_of_its_own_node) {
  const auto x = at::ones({2}, at::device(first));
  BOOST_TEST(get<std::string>(a.self().call("echo", {x}).get().values, "devices") == "simulated:0 ");
  b.functions().add("ask_back",
                    [this](call_arguments& arguments) { return b.peer("a").call("echo", arguments.tensors).get(); });
  const auto reply = to_b().call("ask_back", {x}).get();
  BOOST_TEST(get<std::string>(reply.values, "devices") == "simulated:1 ");  // "b" has no map to "a"
  BOOST_TEST(devices_of(reply.tensors) == "simulated:0 ");
}

BOOST_AUTO_TEST_CASE(leads_gradients_back_on_both_nodes) {
  const auto x = here({1, 10}).requires_grad_();
  const auto on_cpu = at::tensor({1.0, 10.0}).requires_grad_();
  for (int i = 0; i < 5; ++i) {
    context pass(a);
    const auto y = to_b().call("times_weight", {x}).get().tensors.at(0);
    const auto z = to_b().call("times_weight", {on_cpu}).get().tensors.at(0);
    BOOST_TEST(devices_of({y, z}) == "simulated:0 cpu ");
    BOOST_TEST(has_values(y.detach(), at::tensor({4.0, 50.0})));
    BOOST_TEST(has_values(z.detach(), at::tensor({2.0, 30.0})));
    pass.backward({(y * 2).sum().cpu() + (z * 3).sum()}).get();
    BOOST_TEST(devices_of({pass.gradient(x), pass.gradient(on_cpu)}) == "simulated:0 cpu ");
    BOOST_TEST(has_values(pass.gradient(x), at::tensor({8.0, 10.0})));
    BOOST_TEST(has_values(pass.gradient(on_cpu), at::tensor({6.0, 9.0})));
    const auto of_b = to_b().call("gradients").get();
    BOOST_TEST(get<std::string>(of_b.values, "devices") == "simulated:0 simulated:1 ");
    BOOST_TEST(has_values(of_b.tensors.at(0), at::tensor({3.0, 30.0})));
    BOOST_TEST(has_values(of_b.tensors.at(1), at::tensor({2.0, 20.0})));
  }
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(to_b()));
}

// The steps of a program, each a function of one tensor: on the accelerator, on the CPU and on the other node.
BOOST_AUTO_TEST_CASE(fits_to_steps_on_the_accelerator_the_cpu_and_the_peer_in_any_order) {
  b.functions().add("square", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0).square()}}; });
  const auto run = [&](const std::string& order, at::Tensor x, bool is_local) {
    for (const char step : order) {
      if (step == 'g') x = (is_local ? x : x.to(first)) * 3;
      if (step == 'c') x = (is_local ? x : x.cpu()) + 2;
      if (step == 'r') x = is_local ? x.square() : to_b().call("square", {x}).get().tensors.at(0);
    }
    return x.sum();
  };
  std::string order = "cgrr";
  do {
    const auto local = at::tensor({1.0, 2.0}).requires_grad_();
    const auto expected = at::Tensor(run(order, local, true));
    expected.backward();
    for (const bool from_device : {false, true}) {
      const auto x = (from_device ? here({1, 2}) : at::tensor({1.0, 2.0})).requires_grad_();
      context pass(a);
      const auto root = run(order, x, false);
      BOOST_TEST(has_values(root.detach(), expected.detach()), order);
      pass.backward({root}).get();
      const auto gradient = pass.gradient(x);
      BOOST_TEST(has_values(gradient, local.grad()), order);
      BOOST_CHECK(gradient.device() == x.device());
    }
  } while (std::next_permutation(order.begin(), order.end()));
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(to_b()));
}

BOOST_AUTO_TEST_CASE(leads_gradients_of_gradients_back) {
  b.functions().add("cube", [](call_arguments& arguments) {
    const auto& x = arguments.tensors.at(0);
    return call_reply{{x * x * x}};
  });
  backward_options recorded;
  recorded.create_graph = true;
  for (const auto& x : {here({1, 2}).requires_grad_(), at::tensor({1.0, 2.0}).requires_grad_()}) {
    context pass(a);
    pass.backward({to_b().call("cube", {x}).get().tensors.at(0).sum()}, recorded).get();
    const auto slope = pass.gradient(x);
    BOOST_CHECK(slope.device() == x.device());
    BOOST_TEST(has_values(slope.detach(), at::tensor({3.0, 12.0})));
    pass.backward({slope.sum()}).get();
    BOOST_CHECK(pass.gradient(x).device() == x.device());
    BOOST_TEST(has_values(pass.gradient(x).detach(), at::tensor({9.0, 24.0})));  // the sum of both passes
  }
}

BOOST_AUTO_TEST_CASE(leads_a_late_argument_and_a_late_result) {
  const auto x = here({1, 2});
  simulated::gate late(default_stream);
  auto reply = to_b().call("echo", {x * 2});
  simulated::settle();
  BOOST_TEST(!reply.ready());
  late.open();
  BOOST_TEST(devices_of(reply.get().tensors) == "simulated:0 ");
  BOOST_TEST(has_values(reply.get().tensors.at(0), at::tensor({2.0, 4.0})));
}

BOOST_AUTO_TEST_CASE(is_used_by_modules_on_the_peer) {
  const auto module = to_b().create("layer");
  const auto x = here({1, 10}).requires_grad_();
  {
    context pass(a);
    const auto reply = module.call("forward", {x}).get();
    BOOST_TEST(get<std::string>(reply.values, "devices") == "simulated:1 ");
    const auto weight = module.parameter("weight");
    BOOST_TEST(devices_of({reply.tensors.at(0), weight}) == "simulated:0 simulated:0 ");
    pass.backward({(reply.tensors.at(0) + weight * 7).sum()}).get();
    BOOST_TEST(has_values(pass.gradient(x), at::tensor({4.0, 5.0})));
    const auto gradient = module.gradients(pass).at(0).second;
    BOOST_TEST(devices_of({gradient}) == "simulated:0 ");
    BOOST_TEST(has_values(gradient, at::tensor({8.0, 17.0})));
  }
  module.set_parameters({{"weight", here({6, 7})}});
  BOOST_TEST(devices_of({module.parameters().at(0).second}) == "simulated:0 ");
  BOOST_TEST(has_values(module.parameters().at(0).second, at::tensor({6.0, 7.0})));
}

BOOST_AUTO_TEST_CASE(is_used_by_messages_of_own_actors) {
  const auto x = here({1, 2}).requires_grad_();
  context pass(a);
  const joined_scope there(b, join_graphs(to_b(), {x, at::ones({2})}));
  BOOST_TEST(devices_of(there.tensors()) == "simulated:1 simulated:0 ");
  // An answer is a message of the node that answers, which has no map to "a".
  BOOST_TEST(devices_of(joined_tensors(a, there.reply({there.tensor(0) * 2}))) == "simulated:1 ");
  BOOST_CHECK_EXCEPTION(join_graphs(to_b(), {at::ones({2}, at::device(second))}), error,
                        says(errc::unsupported_tensor, {"a message to an actor on node 'b': tensor 0 is on device simulated:1",
                                                        "(cpu=simulated:0, simulated:0=simulated:1)"}));
}

BOOST_AUTO_TEST_CASE(is_in_the_status_with_the_devices_of_the_node) {  // DV-3
  const auto now = a.status();
  BOOST_TEST(devices::names_of(now.self.devices) == "cpu, simulated:0, simulated:1");
  BOOST_TEST_REQUIRE(now.maps.size() == 1U);
  BOOST_TEST(now.maps.at(0).peer == "b");
  BOOST_TEST(now.maps.at(0).entries == "cpu=simulated:0, simulated:0=simulated:1");
  BOOST_TEST(now.maps.at(0).problem == "");
  const auto of_b = to_b().status();
  BOOST_TEST(devices::names_of(of_b.self.devices) == "cpu, simulated:0, simulated:1");
  BOOST_TEST(of_b.maps.empty());
}

BOOST_AUTO_TEST_CASE(is_in_the_way_of_a_device_that_it_lacks) {
  const auto x = here({1, 10}).requires_grad_();
  {
    context pass(a);
    const auto y = to_b().call("times_weight", {x}).get().tensors.at(0);
    const auto run_before = b.status().calls_run;
    BOOST_CHECK_EXCEPTION(to_b().call("echo", {x, at::ones({2}, at::device(second))}), error,
                          says(errc::unsupported_tensor,
                               {"the call of 'echo' on node 'b': tensor 1 is on device simulated:1",
                                "the device map to node 'b'", "(cpu=simulated:0, simulated:0=simulated:1)", "has no entry"}));
    BOOST_TEST(b.status().calls_run == run_before);  // nothing was sent
    pass.backward({y.sum()}).get();
    BOOST_TEST(has_values(pass.gradient(x), at::tensor({4.0, 5.0})));
  }
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(to_b()));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_CASE(two_device_maps_lead_a_call_within_a_call_and_its_gradients, nodes_with_two_maps) {  // DV-1
  a.functions().add("square", [](call_arguments& arguments) {
    return call_reply{{arguments.tensors.at(0).square()}, {{"devices", devices_of(arguments.tensors)}}};
  });
  b.functions().add("ask_back", [this](call_arguments& arguments) {
    auto reply = b.peer("a").call("square", {arguments.tensors.at(0) * 3}).get();
    reply.values["on b"] = devices_of(reply.tensors);
    return reply;
  });
  const auto on_cpu = at::tensor({1.0, 2.0}).requires_grad_();  // is on the first device of "b" and on the CPU of "a" then
  const auto on_device = here({1, 2}).requires_grad_();         // is on the second device of "b" and of "a" then
  for (const auto& x : {on_cpu, on_device}) {
    const bool is_on_cpu = x.is_cpu();
    context pass(a);
    const auto reply = to_b().call("ask_back", {x}).get();
    BOOST_TEST(get<std::string>(reply.values, "devices") == (is_on_cpu ? "cpu " : "simulated:1 "));
    BOOST_TEST(get<std::string>(reply.values, "on b") == (is_on_cpu ? "simulated:0 " : "simulated:1 "));
    BOOST_CHECK(reply.tensors.at(0).device() == x.device());
    BOOST_TEST(has_values(reply.tensors.at(0).detach(), at::tensor({9.0, 36.0})));
    pass.backward({reply.tensors.at(0).sum()}).get();
    BOOST_CHECK(pass.gradient(x).device() == x.device());
    BOOST_TEST(has_values(pass.gradient(x), at::tensor({18.0, 36.0})));
  }
}

BOOST_FIXTURE_TEST_SUITE(a_device_map_of_a_call, mapped_nodes)

BOOST_AUTO_TEST_CASE(takes_the_place_of_the_settings_map) {  // DV-1
  const auto x = here({1, 10}).requires_grad_();
  context pass(a);
  const auto other_b = to_b().with_devices({{first, at::kCPU}});
  const auto reply = other_b.call("echo", {x}).get();
  BOOST_TEST(get<std::string>(reply.values, "devices") == "cpu ");
  BOOST_TEST(devices_of(reply.tensors) == "simulated:0 ");
  pass.backward({(reply.tensors.at(0) * 3).sum()}).get();
  BOOST_TEST(devices_of({pass.gradient(x)}) == "simulated:0 ");
  BOOST_TEST(has_values(pass.gradient(x), at::full({2}, 3.0, at::kDouble)));
  BOOST_TEST(get<std::string>(to_b().call("echo", {x}).get().values, "devices") == "simulated:1 ");  // as before
}

BOOST_AUTO_TEST_CASE(that_is_empty_leaves_each_tensor_on_its_device) {  // DV-1
  const std::vector<at::Tensor> all{here({1}), at::ones({1}), at::ones({1}, at::device(second))};
  const auto reply = to_b().with_devices({}).call("echo", all).get();
  BOOST_TEST(get<std::string>(reply.values, "devices") == "simulated:0 cpu simulated:1 ");
  BOOST_TEST(devices_of(reply.tensors) == "simulated:0 cpu simulated:1 ");
}

BOOST_AUTO_TEST_CASE(is_kept_by_a_handle_of_a_module) {
  auto module = to_b().with_devices({{second, second}}).create("layer");
  const auto on_cpu = at::tensor({1.0, 10.0});
  BOOST_TEST(get<std::string>(module.call("forward", {on_cpu.to(second)}).get().values, "devices") == "simulated:1 ");
  BOOST_CHECK_THROW(module.call("forward", {on_cpu.to(first)}), error);
  auto other = std::make_optional(module.with_devices({{"cpu", "simulated:1"}}));
  module = to_b().create("layer");  // the other handle owns the first module
  const auto reply = other->call("forward", {on_cpu}).get();
  BOOST_TEST(get<std::string>(reply.values, "devices") == "simulated:1 ");
  BOOST_TEST(devices_of(reply.tensors) == "cpu ");
  BOOST_TEST(b.status().objects == 2U);
  other.reset();
  to_b().call("echo").get();  // after the message that drops the module
  BOOST_TEST(b.status().objects == 1U);
}

// The map is impossible on both nodes, so whatever it leads anywhere fails.
BOOST_AUTO_TEST_CASE(does_not_move_what_optimizers_and_scripts_exchange) {
  const temporary_folder folder;
  const auto module = to_b().with_devices({}).create("layer");
  const auto useless = module.with_devices({{"simulated:2", "cpu"}, {"cpu", "simulated:2"}});
  optimizer steps(a, {"sgd", {{"lr", 0.5}}}, {useless});
  context pass(a);
  const auto x = at::ones({2}, at::device(second).dtype(at::kDouble));
  pass.backward({module.call("forward", {x}).get().tensors.at(0).sum()}).get();
  BOOST_TEST(steps.step(pass, 10.0).value() == std::sqrt(2.0));
  steps.save(folder / "run", {});
  steps.load(folder / "run");
  torch::jit::Module script("script");
  BOOST_CHECK_EXCEPTION(create_script(useless.where(), script), error, says(errc::refused, {"--allow-scripts"}));
}

BOOST_AUTO_TEST_SUITE_END()
