// SPDX-License-Identifier: BSD-3-Clause
#include "wire_parts.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::int64_t elements = std::int64_t{4} << 20;  // of float32: 16 MiB

double median(std::vector<double> all) {
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), at, all.end());
  return *at;
}

/// Milliseconds that one pass takes.
double pass_ms(node& here, const peer& to, const at::Tensor& gradient, wire_format format) {
  context pass(here, format);
  const auto result = to.call("weights").get().tensor(0);
  backward_options options;
  options.gradients = {gradient};
  const auto begin = clock::now();
  pass.backward({result}, options).get();
  return std::chrono::duration<double>(clock::now() - begin).count() * 1e3;
}

}  // namespace

void serve_weights(const part_arguments& with) {
  node here(with.node);
  here.functions().add("weights",
                       [weights = at::rand({elements}).requires_grad_()](call_arguments&) { return call_reply{{weights}}; });
  tell("ready", here.port());
  here.serve();
}

void send_gradients(const part_arguments& with) {
  const auto format = wire_format_named(with.text("format"));
  if (!format) throw std::runtime_error("there is no wire format '" + with.text("format") + "'");
  node here(with.node);
  const auto to = here.peer("b");
  const auto gradient = at::randn({elements});
  std::vector<double> exact;
  std::vector<double> packed;
  constexpr int to_warm = 2;  // windows have grown, and memory is there
  const auto count = static_cast<int>(with.number("count")) + to_warm;
  for (int i = 0; i < count; ++i) {
    const auto plain_ms = pass_ms(here, to, gradient, wire_format::exact);
    const auto packed_ms = pass_ms(here, to, gradient, *format);
    if (i < to_warm) continue;
    exact.push_back(plain_ms);
    packed.push_back(packed_ms);
  }
  tell("exact_ms", median(std::move(exact)));
  tell("packed_ms", median(std::move(packed)));
}

}  // namespace troupe::bench
