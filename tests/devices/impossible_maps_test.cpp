// SPDX-License-Identifier: BSD-3-Clause
// Device maps that do not fit: what is refused, when, and that the context can be used afterwards.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/actors/node_access.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "devices/mapped_nodes.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

BOOST_FIXTURE_TEST_SUITE(an_impossible_device_map, unmapped_nodes)

BOOST_AUTO_TEST_CASE(of_a_call_is_an_error_before_anything_is_sent) {  // DV-2
  const auto x = here({1, 10}).requires_grad_();
  {
    context pass(a);
    const auto y = to_b().call("times_weight", {x}).get().tensors.at(0);
    const auto too_high = to_b().with_devices({{"simulated:0", "simulated:2"}});
    const auto module = too_high.create("layer");  // troupe's own call without tensors
    const auto run_before = b.status().calls_run;
    for (const auto& tensors : {std::vector<at::Tensor>{x}, {at::ones({1})}, {}})
      BOOST_CHECK_EXCEPTION(too_high.call("echo", tensors), error,
                            says(errc::unsupported_tensor,
                                 {"the call of 'echo' on node 'b'", "the device map to node 'b'", "(simulated:0=simulated:2)",
                                  "leads to device simulated:2", "node 'b' has only cpu, simulated:0, simulated:1"}));
    for (const auto* absent : {"simulated:2", "cuda:0"})
      BOOST_CHECK_EXCEPTION(
        to_b().with_devices({{absent, "cpu"}}).call("echo", {x}), error,
        says(errc::unsupported_tensor, {"the call of 'echo' on node 'b'", std::string("leads from device ") + absent,
                                        "this node has only cpu, simulated:0, simulated:1"}));
    BOOST_CHECK_EXCEPTION(module.call("forward", {x}), error,
                          says(errc::unsupported_tensor, {"the call of 'forward' on node 'b'", "simulated:2"}));
    BOOST_TEST(b.status().calls_run == run_before);
    pass.backward({y.sum()}).get();
    BOOST_TEST(has_values(pass.gradient(x), at::tensor({2.0, 3.0})));
  }
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(to_b()));
}

BOOST_AUTO_TEST_CASE(for_a_result_is_an_error_that_leaves_the_context_usable) {
  const auto x = here({1, 10}).requires_grad_();
  b.functions().add("to_second",
                    [this](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0).to(second) * 2}}; });
  {
    context pass(a);
    const auto mapped_b = to_b().with_devices({{first, first}});
    const auto y = mapped_b.call("times_weight", {x}).get().tensors.at(0);
    BOOST_CHECK_EXCEPTION(
      mapped_b.call("to_second", {x}).get(), error,
      says(errc::unsupported_tensor,
           {"the result of 'to_second' from node 'b': tensor 0 is on device simulated:1 of node 'b'",
            "the device map to node 'b'", "(simulated:0=simulated:0)", "leads from no device of this node"}));
    pass.backward({y.sum()}).get();
    BOOST_TEST(has_values(pass.gradient(x), at::tensor({2.0, 3.0})));
  }
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(to_b()));
}

BOOST_AUTO_TEST_CASE(to_a_node_that_is_not_there_names_the_node) {
  const std::map<std::string, device_names> unknown{{"nobody", {{"simulated:0", "simulated:1"}}}};
  node c(mapped("c", unknown));
  c.join("127.0.0.1", b.port());
  BOOST_TEST_REQUIRE(c.status().maps.size() == 1U);
  BOOST_TEST(c.status().maps.at(0).peer == "nobody");
  BOOST_TEST(c.status().maps.at(0).problem == "no node 'nobody' is connected to this node");
  BOOST_CHECK_EXCEPTION(c.peer("nobody", 50ms), error, says(errc::unknown_peer, {"nobody"}));
  BOOST_TEST(devices_of(c.peer("b").call("echo", {here({1})}).get().tensors) == "simulated:0 ");
}

BOOST_AUTO_TEST_CASE(of_a_node_that_has_not_told_its_devices_is_refused_there) {
  to_b().call("echo").get();  // all news of the peer have come
  const auto b_of_old = [&] {
    auto who = troupe::services_of(b).self.as_member();
    who.devices.clear();  // as an older version
    return who;
  }();
  auto& directory = troupe::services_of(a).directory;
  const auto gateway = caf::actor_cast<caf::strong_actor_ptr>(directory.gateway(b.id()));
  directory.remove(b.id(), 1);
  directory.add(b_of_old, gateway, 2);
  BOOST_CHECK_EXCEPTION(
    to_b().with_devices({{"simulated:0", "simulated:2"}}).call("echo", {here({1})}).get(), error,
    says(errc::unsupported_tensor, {"call of 'echo' on node 'b' failed", "argument[0]: it is for device simulated:2",
                                    "this process has only cpu, simulated:0, simulated:1"}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(nodes_with_an_impossible_map, simulated::fixture)

BOOST_AUTO_TEST_CASE(do_not_start_if_their_own_device_is_missing) {
  for (const auto* absent : {"simulated:2", "cuda:0"})
    BOOST_CHECK_EXCEPTION(node(mapped("a", {{"b", {{absent, "cpu"}}}})), error,
                          says(errc::misuse, {"settings: the device map to node 'b'", std::string("(") + absent + "=cpu)",
                                              "this node has only cpu, simulated:0, simulated:1", "--device-map"}));
  BOOST_CHECK_EXCEPTION(node(mapped("a", {{"b", {{"simulated", "gpu:1"}}}})), error,
                        says(errc::misuse, {"settings: the device map to node 'b'", "'gpu:1'"}));
  BOOST_CHECK_EXCEPTION(node(mapped("a", {{"b", {{"simulated:0", "cpu"}, {"simulated:1", "cpu"}}}})), error,
                        says(errc::misuse, {"settings: the device map to node 'b'", "end of two devices"}));
  BOOST_CHECK_EXCEPTION(node(mapped("a", {{"no name", {}}})), error, says(errc::misuse, {"'no name'"}));
}

BOOST_AUTO_TEST_CASE(say_so_when_they_meet_the_peer_in_their_log_and_their_status) {  // DV-2, DV-3
  const temporary_folder folder;
  const std::string problem =
    "the device map to node 'b' (simulated:0=simulated:2) leads to device simulated:2, and node 'b' has only cpu, simulated:0, "
    "simulated:1";
  {
    auto options = mapped("a", {{"b", {{"simulated:0", "simulated:2"}}}});
    options.log_level = severity::warn;
    options.log_file = folder / "log";
    node b(mapped("b"));
    node a(options);
    BOOST_TEST(a.status().maps.at(0).problem == "no node 'b' is connected to this node");
    a.join("127.0.0.1", b.port());
    BOOST_TEST(a.status().maps.at(0).problem == problem);
    BOOST_CHECK_EXCEPTION(a.peer("b").call("echo", {at::ones({1})}), error,
                          says(errc::unsupported_tensor, {"the call of 'echo' on node 'b': " + problem}));
    a.peer("b").status();
  }
  const auto log = read_text(folder / "log");
  BOOST_TEST(contains(log, problem), log);
  BOOST_TEST(std::count(log.begin(), log.end(), '\n') == 1, log);
}

BOOST_AUTO_TEST_SUITE_END()
