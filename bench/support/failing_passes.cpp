// SPDX-License-Identifier: BSD-3-Clause
#include "failing_passes.hpp"

#include <stdexcept>

#include <ATen/ATen.h>

#include "runs.hpp"

namespace troupe::bench {

void add_throwing_function(node& to) {
  to.functions().add("throws", [](call_arguments& arguments) {
    const auto result = arguments.tensors.at(0) * 2;
    result.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("as the benchmark wants it"); });
    return call_reply{{result}};
  });
}

double microseconds_until_error(node& here, const peer& to) {
  context pass{here};
  const auto root = to.call("throws", {at::ones({1}).requires_grad_()}).get().tensors.at(0);
  const auto begin = std::chrono::steady_clock::now();
  try {
    pass.backward({root}).get();
  } catch (const error& failed) {
    if (failed.code() != errc::function_failed) throw;
    return microseconds_since(begin);
  }
  throw std::runtime_error("a pass whose function throws has succeeded");
}

}  // namespace troupe::bench
