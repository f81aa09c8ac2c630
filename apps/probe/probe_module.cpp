// SPDX-License-Identifier: BSD-3-Clause
#include "apps/probe/probe_module.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include <ATen/ATen.h>

#include <troupe/actors/context.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/expect.hpp>

#include "apps/probe/savina.hpp"

namespace troupe::apps::probe {

namespace {

using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr std::int64_t bulk_bytes = std::int64_t{4} << 20;
constexpr std::size_t bulk_at_once = 4;
constexpr int warm_up = 20;
constexpr std::size_t fewest_runs = 10;
constexpr std::int64_t side_of_matrix = 512;

/// Calls `run` again and again for about `length`. Returns the microseconds of each call.
template <class Run>
std::vector<double> times_of(seconds length, Run run) {
  for (int i = 0; i < warm_up; ++i) run();
  std::vector<double> taken;
  const auto end = clock::now() + length;
  do {
    const auto begin = clock::now();
    run();
    taken.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  } while (clock::now() < end || taken.size() < fewest_runs);
  return taken;
}

double rate_of(const remote_module& there, seconds length) {
  const auto tensor = at::zeros({bulk_bytes}, at::kByte);
  std::deque<future<call_reply>> open;
  double answered = 0;
  auto begin = clock::now();
  bool warm = false;  // false during the first answers, which do not count because TCP's windows still grow
  const auto end = begin + std::chrono::duration_cast<clock::duration>(length * 1.3);
  const auto goes_on = [&] { return clock::now() < end || answered == 0; };
  while (goes_on() || !open.empty()) {
    while (goes_on() && open.size() < bulk_at_once) open.push_back(there.call("take", {tensor}));
    if (open.empty()) break;
    open.front().get();
    open.pop_front();
    if (!warm && clock::now() - begin > length * 0.3) {
      warm = true;
      begin = clock::now();
      answered = 0;
    } else {
      answered += static_cast<double>(bulk_bytes);
    }
  }
  return answered / (1 << 20) / seconds(clock::now() - begin).count();
}

double gigaflops(seconds length) {
  const auto x = at::ones({side_of_matrix, side_of_matrix});
  const auto taken = times_of(length, [&] { at::matmul(x, x); });
  const auto side = static_cast<double>(side_of_matrix);
  return 2 * side * side * side / percentile(taken, 0.5) / 1e3;
}

/// As percentile(), but returns 0 if there are too few values for this share.
double kept(const std::vector<double>& values, double share) {
  return static_cast<double>(values.size()) * (1 - share) < 1 - 1e-9 ? 0 : percentile(values, share);
}

class probe_module final : public module {
 public:
  call_reply call(const std::string& method, call_arguments& arguments) override {
    if (method == "echo") return {arguments.tensors};
    if (method == "take") return {};
    if (method == "twice") return {{arguments.tensors.at(0) * 2}};
    if (method.starts_with("savina")) return savina_.call(method, arguments);
    const auto length = within(seconds(get<double>(arguments.values, "seconds")));
    if (method == "compute") return {{}, {{"gigaflops", gigaflops(length)}}};
    if (method == "measure") {
      const auto to = arguments.here.peer(get<std::string>(arguments.values, "peer"), time_to_find);
      return {{}, values_of(measure(arguments.here, to, length))};
    }
    throw error(errc::misuse, "a probe has no method '" + method + "'");
  }
  named_tensors parameters() override { return {}; }

 private:
  savina_actor savina_;
};

}  // namespace

void add_type(node& here) {
  add_module_type(here, type, [](const attributes&) { return std::make_shared<probe_module>(); });
}

link measure(node& here, const peer& to, seconds length) {
  const auto there = to.create(type);
  const auto x = at::ones({1});
  link found;
  const auto calls = times_of(length * 0.4, [&] { there.call("echo", {x}).get(); });
  found.calls = static_cast<std::int64_t>(calls.size());
  found.call_us = percentile(calls, 0.5);
  found.call_p99_us = kept(calls, 0.99);
  found.call_p999_us = kept(calls, 0.999);
  const auto leaf = at::ones({1}).requires_grad_();
  found.pass_us = percentile(times_of(length * 0.2,
                                      [&] {
                                        context pass(here);
                                        pass.backward({there.call("twice", {leaf}).get().tensors.at(0)}).get();
                                      }),
                             0.5);
  found.mib_per_s = rate_of(there, length * 0.3);
  return found;
}

attributes values_of(const link& from) {
  return {{"calls", from.calls},
          {"call_us", from.call_us},
          {"call_p99_us", from.call_p99_us},
          {"call_p999_us", from.call_p999_us},
          {"mib_per_s", from.mib_per_s},
          {"pass_us", from.pass_us}};
}

link link_of(const attributes& values) {
  return {get<std::int64_t>(values, "calls"),  get<double>(values, "call_us"),   get<double>(values, "call_p99_us"),
          get<double>(values, "call_p999_us"), get<double>(values, "mib_per_s"), get<double>(values, "pass_us")};
}

double percentile(std::vector<double> values, double share) {
  TROUPE_EXPECT(!values.empty());
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto chosen = values.begin() + std::max<std::ptrdiff_t>(rank - 1, 0);
  std::nth_element(values.begin(), chosen, values.end());
  return *chosen;
}

}  // namespace troupe::apps::probe
