// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/engine/gradient_table.hpp>
#include <troupe/troupe.hpp>

#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"

/// Two nodes of one process that talk over loopback, with device maps, and functions and modules that say where tensors are.
namespace troupe::test {

inline const std::map<std::string, device_names> crosswise{{"b", {{"simulated:0", "simulated:1"}, {"cpu", "simulated:0"}}}};

inline settings mapped(std::string name, std::map<std::string, device_names> maps = {}) {
  settings result;
  result.name = std::move(name);
  result.deadline = std::chrono::seconds(10);
  result.log_level = severity::off;
  result.device_maps = std::move(maps);
  return result;
}

inline std::string devices_of(const std::vector<at::Tensor>& tensors) {
  std::string result;
  for (const auto& each : tensors) result += (each.defined() ? each.device().str() : "none") + ' ';
  return result;
}

/// A layer on the second device of its node.
struct layer : module {
  at::Tensor weight = at::tensor({4.0, 5.0}).to(simulated::device(1)).requires_grad_();
  call_reply call(const std::string&, call_arguments& arguments) override {
    return {{arguments.tensors.at(0) * weight}, {{"devices", devices_of(arguments.tensors)}}};
  }
  named_tensors parameters() override { return {{"weight", weight}}; }
};

inline const std::map<std::string, device_names> no_maps;

/// Node "a" has a map to node "b": its first device is the second of "b", its CPU is the first device of "b".
struct mapped_nodes : simulated::fixture {
  explicit mapped_nodes(std::map<std::string, device_names> of_a = crosswise,
                        std::map<std::string, device_names> of_b = no_maps)
      : b(mapped("b", std::move(of_b))), a(mapped("a", std::move(of_a))) {
    for (node* here : {&a, &b}) {
      here->functions().add("echo", [](call_arguments& arguments) {
        return call_reply{arguments.tensors, {{"devices", devices_of(arguments.tensors)}}};
      });
      here->functions().add("on", [](call_arguments& arguments) {
        const c10::Device device(get<std::string>(arguments.values, "device"));
        return call_reply{{at::ones({2}, at::device(device)) * 3}};
      });
    }
    b.functions().add("times_weight", [this](call_arguments& arguments) {
      const auto& x = arguments.tensors.at(0);
      return call_reply{{x * (x.device() == first ? on_first : on_second)}};
    });
    b.functions().add("gradients", [this](call_arguments& arguments) {
      return call_reply{{arguments.gradients->find(on_first).cpu(), arguments.gradients->find(on_second).cpu()},
                        {{"devices", devices_of({arguments.gradients->find(on_first), arguments.gradients->find(on_second)})}}};
    });
    add_module_type(b, "layer", [](const attributes&) { return std::make_shared<layer>(); });
    a.join("127.0.0.1", b.port());
  }

  peer to_b() { return a.peer("b"); }
  at::Tensor here(std::vector<double> values) { return at::tensor(values).to(first); }

  at::Tensor on_first = at::tensor({2.0, 3.0}).to(first).requires_grad_();
  at::Tensor on_second = at::tensor({4.0, 5.0}).to(second).requires_grad_();
  node b;
  node a;
};

/// Two nodes without maps in their settings.
struct unmapped_nodes : mapped_nodes {
  unmapped_nodes() : mapped_nodes(no_maps) {}
};

/// Each of the two nodes has a map to the other one.
struct nodes_with_two_maps : mapped_nodes {
  nodes_with_two_maps() : mapped_nodes(crosswise, {{"a", {{"simulated:1", "simulated:1"}, {"simulated:0", "cpu"}}}}) {}
};

inline bool has_values(const at::Tensor& x, const at::Tensor& expected) { return x.defined() && at::equal(x.cpu(), expected); }

/// Whether the error has this code and all of the parts.
inline auto says(errc code, std::vector<std::string> parts) {
  return [code, parts](const error& refused) {
    bool has_all = refused.code() == code;
    for (const auto& part : parts) has_all = has_all && contains(refused.what(), part);
    BOOST_TEST(has_all, refused.what());
    return has_all;
  };
}

}  // namespace troupe::test
