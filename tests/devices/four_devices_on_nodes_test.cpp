// SPDX-License-Identifier: BSD-3-Clause
// Nodes of one process with four devices: device maps, a node that uses two devices and a node that uses the other two, passes
// within passes, errors of one device.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/engine/gradient_table.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "devices/four_devices.hpp"
#include "devices/mapped_nodes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

settings of_node(std::string name, std::size_t workers, std::map<std::string, device_names> maps = {}) {
  auto result = mapped(std::move(name), std::move(maps));
  result.pass_workers = workers;
  return result;
}

/// Node "a" leads each of its devices to another device of node "b": the first to the second, ..., the fourth to the first.
struct nodes_of_four : four_devices {
  explicit nodes_of_four(std::size_t workers = 0)
      : b(of_node("b", workers)), a(of_node("a", workers, {{"b", names_of({1, 2, 3, 0})}})) {
    for (std::size_t i = 0; i < 4; ++i)
      weights.push_back(at::full({2}, 2.0 + static_cast<double>(i), at::device(all[i]).dtype(at::kDouble)).requires_grad_());
    b.functions().add("times_weights", [this](call_arguments& arguments) {
      call_reply reply{{}, {{"devices", devices_of(arguments.tensors)}}};
      for (const auto& x : arguments.tensors) reply.tensors.push_back(x * weights.at(index_of(x.device())));
      return reply;
    });
    b.functions().add("gradients", [this](call_arguments& arguments) {
      std::vector<at::Tensor> found;
      for (const auto& each : weights) found.push_back(arguments.gradients->find(each));
      const auto devices = devices_of(found);
      for (auto& each : found) each = each.cpu();
      return call_reply{found, {{"devices", devices}}};
    });
    a.join("127.0.0.1", b.port());
  }

  static device_names names_of(const std::vector<int>& to) {
    device_names result;
    for (std::size_t i = 0; i < to.size(); ++i) result["simulated:" + std::to_string(i)] = "simulated:" + std::to_string(to[i]);
    return result;
  }

  /// A leaf on each device, with the values 1, 2, 3 and 4.
  std::vector<at::Tensor> leaves() const {
    std::vector<at::Tensor> result;
    for (std::size_t i = 0; i < 4; ++i)
      result.push_back(at::full({2}, 1.0 + static_cast<double>(i), at::device(all[i]).dtype(at::kDouble)).requires_grad_());
    return result;
  }

  static at::Tensor sum_on_cpu(const std::vector<at::Tensor>& tensors) {
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (const auto& each : tensors) sum = sum + each.sum().cpu();
    return sum;
  }

  peer to_b() { return a.peer("b"); }

  std::vector<at::Tensor> weights;
  node b;
  node a;
};

bool is_full_of(const at::Tensor& x, double value) { return has_values(x, at::full({2}, value, at::kDouble)); }

const std::string four_names = "simulated:0 simulated:1 simulated:2 simulated:3 ";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(nodes_with_four_devices, nodes_of_four)

// A map of two devices is its own inverse. A map of four devices shows in which direction it was used.
BOOST_AUTO_TEST_CASE(lead_calls_and_gradients_there_and_back_by_each_permutation) {  // DV-1
  std::vector<int> to{0, 1, 2, 3};
  do {
    context pass(a);
    auto x = leaves();
    for (const auto& each : leaves()) x.push_back(each);  // small tensors for one device are copied together
    const auto reply = to_b().with_devices(device_map::of(names_of(to))).call("times_weights", x).get();
    std::string there;
    for (const int each : to) there += "simulated:" + std::to_string(each) + ' ';
    BOOST_TEST(get<std::string>(reply.values, "devices") == there + there);
    BOOST_TEST(devices_of(reply.tensors) == four_names + four_names);
    pass.backward({sum_on_cpu(reply.tensors)}).get();
    const auto at_b = to_b().call("gradients").get();
    BOOST_TEST(get<std::string>(at_b.values, "devices") == four_names);
    for (std::size_t i = 0; i < 8; ++i) {
      const auto gradient = pass.gradient(x[i]);
      BOOST_TEST((gradient.device() == all[i % 4]), there);
      BOOST_TEST(is_full_of(gradient, 2.0 + to[i % 4]), there);
    }
    for (std::size_t i = 0; i < 4; ++i)
      BOOST_TEST(is_full_of(at_b.tensors.at(static_cast<std::size_t>(to[i])), 2 * (1.0 + static_cast<double>(i))), there);
  } while (std::next_permutation(to.begin(), to.end()));
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(to_b()));
}

// By the map of the settings each call leads x to the next device, and its result back.
BOOST_AUTO_TEST_CASE(order_gradients_after_each_device_of_both_nodes) {
  for (std::size_t i = 0; i < 4; ++i) {
    const auto x = leaves()[i];
    context pass(a);
    at::Tensor y = x;
    for (std::size_t j = 0; j < 4; ++j) {
      y = y.to(all[(i + j) % 4]);
      y = to_b().call("times_weights", {y}).get().tensors.at(0);
      BOOST_TEST((y.device() == all[(i + j) % 4]));
    }
    const auto root = y.sum();
    auto late = std::make_unique<simulated::gate>(defaults[(i + 2) % 4]);
    auto done = pass.backward({root});
    simulated::settle();
    BOOST_TEST(!done.ready());
    late.reset();
    done.get();
    BOOST_TEST((pass.gradient(x).device() == all[i]));
    BOOST_TEST(is_full_of(pass.gradient(x), 2 * 3 * 4 * 5));
  }
}

BOOST_AUTO_TEST_CASE(say_which_device_is_broken_and_go_on_with_the_others) {
  const auto x = leaves();
  const auto plain = to_b().with_devices({});
  const auto gradient = [&](std::size_t i) {
    context pass(a);
    pass.backward({plain.call("times_weights", {x[i]}).get().tensors.at(0).sum()}).get();
    return pass.gradient(x[i]);
  };
  {
    const simulated::broken_device broken(2);
    BOOST_CHECK_EXCEPTION(
      gradient(2), error,
      says(errc::function_failed, {"simulated:2, could not be made ready to leave: the simulated device is broken"}));
    for (const std::size_t i : {0U, 1U, 3U}) BOOST_TEST(is_full_of(gradient(i), 2.0 + static_cast<double>(i)), all[i]);
  }
  BOOST_TEST(is_full_of(gradient(2), 4));
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// "a" uses the first two devices, "b" the other two.
struct halves : nodes_of_four {
  explicit halves(std::size_t workers) : nodes_of_four(workers) {
    value_of_next_device::streams = {own[2], own[3]};
    b.functions().add("cross", [this](call_arguments& arguments) {
      return call_reply{{at::tanh(arguments.tensors.at(0) * weight).to(fourth) * 0.5},
                        {{"devices", devices_of(arguments.tensors)}}};
    });
    b.functions().add("round", [](call_arguments& arguments) {
      return call_reply{{pass_on_next_device::on(arguments.tensors.at(0), 7, nullptr)}};
    });
  }

  peer other_half() { return to_b().with_devices({{first, third}, {second, fourth}}); }

  at::Tensor weight = at::tensor({1.5, -0.5}).to(third).requires_grad_();
};

}  // namespace

BOOST_AUTO_TEST_SUITE(two_nodes_with_two_devices_each)

BOOST_AUTO_TEST_CASE(give_a_pass_over_all_of_them_the_bits_of_the_cpu) {
  const auto here = at::tensor({0.5, 2.0}).requires_grad_();
  const auto weight = at::tensor({1.5, -0.5}).requires_grad_();
  at::Tensor expected = here;
  for (int i = 0; i < 3; ++i) expected = at::tanh(expected * weight) * 0.5 * (here + 1);
  troupe::backward({expected.sum()});
  for (const std::size_t workers : {0U, 2U}) {
    halves both(workers);
    for (int round = 0; round < 5; ++round) {
      const auto x = here.detach().to(both.first).requires_grad_();
      context pass(both.a);
      at::Tensor y = x;
      for (int i = 0; i < 3; ++i) {
        const auto reply = both.other_half().call("cross", {y}).get();
        BOOST_TEST(get<std::string>(reply.values, "devices") == "simulated:2 ");
        BOOST_TEST(devices_of(reply.tensors) == "simulated:1 ");
        y = reply.tensors.at(0).to(both.first) * (x + 1);
      }
      BOOST_TEST(at::equal(y.detach().cpu(), expected.detach()));
      pass.backward({y.sum()}).get();
      BOOST_TEST((pass.gradient(x).device() == both.first));
      BOOST_TEST(at::equal(pass.gradient(x).cpu(), here.grad()));
    }
    BOOST_TEST(becomes_idle(both.a));
    BOOST_TEST(becomes_idle(both.to_b()));
  }
}

BOOST_AUTO_TEST_CASE(may_run_passes_over_their_devices_within_functions) {
  for (const std::size_t workers : {0U, 2U}) {
    halves both(workers);
    for (int round = 0; round < 5; ++round) {
      std::vector<at::Tensor> leaves;
      std::vector<at::Tensor> values;
      context pass(both.a);
      for (const auto& device : {both.first, both.second, both.first, both.second}) {
        leaves.push_back(at::ones({2}, at::device(device)).requires_grad_());
        values.push_back(both.other_half().call("round", {leaves.back()}).get().tensors.at(0));
      }
      pass.backward({nodes_of_four::sum_on_cpu(values)}).get();
      for (const auto& each : leaves) {
        BOOST_TEST((pass.gradient(each).device() == each.device()));
        BOOST_TEST(has_values(pass.gradient(each), at::full({2}, 9.0F)));
      }
    }
  }
}

// The second device is late when the function of the third device fails.
BOOST_AUTO_TEST_CASE(tell_the_caller_of_an_error_on_one_device_and_go_on) {
  for (const std::size_t workers : {0U, 2U}) {
    halves both(workers);
    bool fails = true;
    both.b.functions().add("may_fail", [&](call_arguments& arguments) {
      const auto y = arguments.tensors.at(0) * 3;
      y.register_hook([&](const at::Tensor&) {
        if (std::exchange(fails, false)) throw std::runtime_error("of the third device");
      });
      return call_reply{{(at::tanh(y.to(both.fourth)) + 1).to(both.third) + y}};
    });
    backward_options kept;
    kept.keep_graph = true;
    const auto x = at::ones({2}, at::device(both.first)).requires_grad_();
    const auto beside = at::ones({2}, at::device(both.second)).requires_grad_();
    {
      context pass(both.a);
      const auto y = both.other_half().call("may_fail", {x}).get().tensors.at(0);
      const std::vector<at::Tensor> roots{(y * 2).sum(), (beside * 5).sum()};
      simulated::gate late(both.defaults[1]);
      BOOST_CHECK_EXCEPTION(pass.backward(roots, kept).get(), error,
                            says(errc::function_failed, {"backward on node 'b' failed", "of the third device"}));
      late.open();
    }
    {
      context next(both.a);
      const auto again = both.other_half().call("may_fail", {x}).get().tensors.at(0);
      next.backward({(again * 2).sum()}).get();
      BOOST_TEST(at::allclose(next.gradient(x).cpu(), 6 * (2 - at::tanh(at::full({2}, 3.0F)).square())));
    }
    BOOST_TEST(becomes_idle(both.a));
    BOOST_TEST(becomes_idle(both.to_b()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
