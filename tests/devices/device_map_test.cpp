// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/device_map.hpp>

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/messages/errors.hpp>

#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const c10::Device cpu(at::kCPU);

c10::Device cuda(int index) { return c10::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index)); }

/// Whether the error has this code and all of the parts.
auto says(errc code, std::vector<std::string> parts) {
  return [code, parts](const error& refused) {
    bool has_all = refused.code() == code;
    for (const auto& part : parts) has_all = has_all && std::string(refused.what()).find(part) != std::string::npos;
    BOOST_TEST(has_all, refused.what());
    return has_all;
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(a_device_map)

BOOST_AUTO_TEST_CASE(leads_to_devices_and_back) {  // MP-1
  const device_map map{{"cuda:0", "cuda:1"}, {"cpu", "cuda:0"}};
  BOOST_CHECK(map.at(cuda(0)) == cuda(1));
  BOOST_CHECK(map.at(cpu) == cuda(0));
  BOOST_CHECK(!map.at(cuda(1)));
  const auto back = map.inverse();
  BOOST_CHECK(back.at(cuda(1)) == cuda(0));
  BOOST_CHECK(back.at(cuda(0)) == cpu);
  BOOST_CHECK(!back.at(cpu));
  BOOST_CHECK(back.inverse() == map);
  BOOST_TEST(device_map().empty());
  BOOST_TEST(device_map().inverse().empty());
}

BOOST_AUTO_TEST_CASE(refuses_a_device_twice_on_the_same_side) {  // MP-1
  BOOST_CHECK_EXCEPTION((device_map{{"cuda:0", "cuda:1"}, {"cuda:0", "cuda:2"}}), error,
                        says(errc::misuse, {"cuda:0=cuda:1", "cuda:0=cuda:2", "device cuda:0 leads to two devices"}));
  BOOST_CHECK_EXCEPTION((device_map{{"cuda:0", "cuda:1"}, {"cpu", "cuda:1"}}), error,
                        says(errc::misuse, {"cuda:0=cuda:1", "cpu=cuda:1", "device cuda:1 is the end of two devices"}));
  BOOST_CHECK_THROW(device_map::parse("cuda=cpu,cuda:0=cuda:1"), error);
}

BOOST_AUTO_TEST_CASE(takes_a_device_without_an_index_for_the_first) {  // MP-2
  const auto map = device_map::parse("cuda=cuda:1,cpu:0=cuda");
  BOOST_TEST(map.text() == "cpu=cuda:0, cuda:0=cuda:1");
  BOOST_CHECK(map.at(c10::Device(at::kCUDA)) == cuda(1));
  BOOST_CHECK(map.at(c10::Device(at::kCPU, 0)) == cuda(0));
}

BOOST_AUTO_TEST_CASE(refuses_devices_whose_tensors_do_not_travel) {  // MP-3
  BOOST_CHECK_EXCEPTION(device_map::parse("meta=cpu"), error, says(errc::misuse, {"meta:0=cpu", "do not travel"}));
  BOOST_CHECK_EXCEPTION(device_map::parse("cpu=meta"), error, says(errc::misuse, {"cpu=meta:0", "do not travel"}));
}

BOOST_AUTO_TEST_CASE(is_read_as_it_is_written) {  // MP-4
  for (const auto* text : {"cpu=cuda:0, cuda:0=cuda:1", "cpu=cpu", "cuda:2=cuda:0, cuda:10=cuda:1", "cuda:127=cuda:0"}) {
    const auto map = device_map::parse(text);
    BOOST_TEST(map.text() == text);
    BOOST_CHECK(device_map::of(map.names()) == map);
  }
  BOOST_CHECK(device_map::parse("cuda:10=cuda:1,cpu=cuda:0,cuda:2=cpu") ==
              device_map::parse("cuda:2=cpu,cuda:10=cuda:1,cpu=cuda:0"));
}

BOOST_AUTO_TEST_CASE(names_the_text_that_it_can_not_read) {
  for (const std::string text : {"", " ", "cuda:0", "cuda:0=", "=cuda:0", "cuda:0=cuda:1,", ",cuda:0=cuda:1",
                                 "cuda:0=cuda:1=cuda:2", "cuda:0=gpu:1", "cuda:-1=cpu", "cuda:300=cpu", "cuda:99999999999=cpu",
                                 "cuda:1x=cpu", "Cuda:0=cpu", "cuda:0:cuda:1", "cuda:0=cuda:1;cpu=cuda:0"})
    BOOST_CHECK_EXCEPTION(device_map::parse(text), error, says(errc::misuse, {"expected"}));
  BOOST_CHECK_EXCEPTION(device_map::parse("cuda:0=gpu:1"), error, says(errc::misuse, {"'gpu:1'", "'cuda:0'"}));
  BOOST_CHECK_EXCEPTION(device_map::parse("cpu=cuda:0,cuda:1"), error, says(errc::misuse, {"'cpu=cuda:0,cuda:1'", "'cuda:1'"}));
}

BOOST_FIXTURE_TEST_CASE(knows_devices_with_a_name_of_their_own, simulated::fixture) {
  const auto map = device_map::parse("simulated:0=simulated:1");
  BOOST_CHECK(map.at(first) == second);
  BOOST_TEST(map.text() == "simulated:0=simulated:1");
}

BOOST_AUTO_TEST_CASE(is_impossible_if_a_device_is_missing_on_either_node) {
  const device_map map{{"cuda:1", "cuda:2"}};
  BOOST_TEST(devices::why_impossible(map, {cpu, cuda(0), cuda(1)}, {cpu, cuda(2)}, "b").empty());
  BOOST_TEST(devices::why_impossible(map, {cpu, cuda(0)}, {cpu, cuda(2)}, "b") ==
             "the device map to node 'b' (cuda:1=cuda:2) leads from device cuda:1, and this node has only cpu, cuda:0");
  BOOST_TEST(devices::why_impossible(map, {cpu, cuda(1)}, {cpu, cuda(1)}, "b") ==
             "the device map to node 'b' (cuda:1=cuda:2) leads to device cuda:2, and node 'b' has only cpu, cuda:1");
  BOOST_TEST(devices::why_impossible(map, {cpu, cuda(1)}, {}, "b").empty());  // it has not told its devices
}

BOOST_FIXTURE_TEST_CASE(leads_tensors_and_results, simulated::fixture) {
  const device_map map{{first, second}, {cpu, first}};
  const std::vector<at::Tensor> tensors{at::ones({1}), at::Tensor(), at::ones({1}, at::device(first))};
  const std::vector<c10::Device> expected{first, cpu, second};
  BOOST_CHECK(devices::destinations(tensors, map, "the call", "b") == expected);
  const std::vector<at::Tensor> on_host{at::ones({1}), at::Tensor(), at::ones({1})};
  const std::vector<c10::Device> back{cpu, cpu, first};
  BOOST_CHECK(devices::way_back(on_host, expected, map, "the result", "b") == back);
  const device_map to_cpu{{first, cpu}};
  BOOST_TEST(devices::destinations({tensors[2]}, to_cpu, "the call", "b").empty());
  BOOST_CHECK(devices::way_back({on_host[0]}, {}, to_cpu, "the result", "b") == std::vector<c10::Device>{first});
}

BOOST_FIXTURE_TEST_CASE(leaves_the_cpu_alone_and_refuses_other_devices_that_it_lacks, simulated::fixture) {
  const device_map map{{first, second}};
  BOOST_TEST(devices::destinations({at::ones({1})}, map, "the call", "b").empty());
  BOOST_TEST(devices::way_back({at::ones({1})}, {}, map, "the result", "b").empty());
  BOOST_CHECK_EXCEPTION(
    devices::destinations({at::ones({1}), at::ones({1}, at::device(second))}, map, "the call of 'f'", "b"), error,
    says(errc::unsupported_tensor,
         {"the call of 'f': tensor 1 is on device simulated:1", "to node 'b'", "(simulated:0=simulated:1)", "has no entry"}));
  BOOST_CHECK_EXCEPTION(devices::way_back({at::ones({1})}, {first}, map, "the result of 'f'", "b"), error,
                        says(errc::unsupported_tensor, {"the result of 'f': tensor 0 is on device simulated:0 of node 'b'",
                                                        "(simulated:0=simulated:1)", "leads from no device of this node"}));
}

BOOST_AUTO_TEST_SUITE_END()
