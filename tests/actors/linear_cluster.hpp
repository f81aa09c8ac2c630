// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/actors/node.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/remote_module.hpp>

namespace troupe::test {

/// A linear layer with tanh. The attribute `seed` seeds the generator that makes its parameters. Methods: forward.
class linear : public module {
 public:
  explicit linear(const attributes& values) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(get<std::int64_t>(values, "seed")));
    const auto in = get<std::int64_t>(values, "in");
    const auto out = get<std::int64_t>(values, "out");
    weight = at::randn({out, in}, generator).requires_grad_();
    bias = at::randn({out}, generator).requires_grad_();
  }

  at::Tensor forward(const at::Tensor& input) const { return at::tanh(at::linear(input, weight, bias)); }

  call_reply call(const std::string& method, call_arguments& arguments) override {
    if (method != "forward")
      throw error(errc::unknown_function, "a linear layer has no method '" + method + "'; it has forward");
    return {{forward(arguments.tensors.at(0))}, std::move(arguments.values)};
  }
  named_tensors parameters() override { return {{"weight", weight}, {"bias", bias}}; }

  at::Tensor weight;
  at::Tensor bias;
};

inline attributes layer(int in, int out, int seed) { return {{"in", in}, {"out", out}, {"seed", seed}}; }

inline settings named_settings(const std::string& name) {
  settings result;
  result.name = name;
  result.deadline = std::chrono::seconds(30);
  return result;
}

/// Completes once every call that this node has made so far on the peer has run there.
inline future<call_reply> after_others(const peer& to) { return node_access::ask(to, requests::drop{}); }

/// A driver and two stages in this process, connected over loopback. Each of the three nodes can make linear layers.
struct linear_cluster {
  node stage1;
  node stage2;
  node driver;

  /// `change`: changes the settings of each node before the node starts.
  explicit linear_cluster(const std::function<void(settings&)>& change = [](settings&) {})
      : stage1(changed("stage1", change)), stage2(changed("stage2", change)), driver(changed("driver", change)) {
    for (node* one : {&stage1, &stage2, &driver})
      add_module_type(*one, "linear", [](const attributes& values) { return std::make_shared<linear>(values); });
    driver.join("127.0.0.1", stage1.port());
    driver.join("127.0.0.1", stage2.port());
  }

  static settings changed(const std::string& name, const std::function<void(settings&)>& change) {
    auto result = named_settings(name);
    change(result);
    return result;
  }

  /// Returns once every call made so far on the stages has run there.
  void settle() {
    for (const auto* name : {"stage1", "stage2"}) after_others(driver.peer(name)).get();
  }
};

}  // namespace troupe::test
