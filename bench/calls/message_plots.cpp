// SPDX-License-Identifier: BSD-3-Clause
// Plots of messages to another process, and what the machine allows.

#include "../support/peers.hpp"
#include "suite.hpp"

namespace troupe::bench {

namespace {

/// A way to send bytes to another process and back.
struct way {
  std::string name;
  role as = role::variant;
  std::function<std::vector<double>(int runs, std::size_t bytes)> run;
};

std::vector<way> ways() {
  const auto calls = [](carrier by) { return [by](int runs, std::size_t bytes) { return echo_calls(by, runs, bytes); }; };
  std::vector<way> all{
    {"bare TCP", role::floor, tcp_exchanges},
    {"a request of CAF", role::peer, [](int runs, std::size_t bytes) { return caf_requests(runs, bytes); }},
    {"a call of TensorPipe within a machine", role::peer,
     [](int runs, std::size_t bytes) { return tensorpipe_calls(carrier::shared_memory, runs, bytes); }},
    {"a call of troupe over TCP", role::variant, calls(carrier::tcp)},
    {"a call of troupe over TLS", role::variant, calls(carrier::tls)},
    {"a call of troupe within a machine", role::troupe, calls(carrier::shared_memory)},
  };
  if (has_grpc()) {
    const auto calls_of_grpc = [](carrier by) {
      return [by](int runs, std::size_t bytes) { return grpc_calls(by, runs, bytes); };
    };
    all.insert(all.begin() + 2, {{"a call of gRPC", role::peer, calls_of_grpc(carrier::tcp)},
                                 {"a call of gRPC over TLS", role::peer, calls_of_grpc(carrier::tls)}});
  }
  return all;
}

/// As many as take about a second.
int runs_for(std::size_t bytes, bool quick) {
  if (quick) return 3;
  return std::clamp(static_cast<int>((std::size_t{64} << 20) / (bytes + 1)), 8, 2'000);
}

/// The curves of some ways by the size of what they carry. The band of a point: the middle half of its runs.
plot by_size(const std::string& title, const std::string& how_to_read, const std::vector<way>& ways, bool quick) {
  plot made{title, how_to_read, {"size of the message", "bytes", true}, {"time until the answer", "us", true}};
  std::vector<std::size_t> sizes{0};
  for (std::size_t bytes = 64; bytes <= (quick ? std::size_t{1} << 12 : std::size_t{64} << 20); bytes *= quick ? 4 : 16)
    sizes.push_back(bytes);
  for (const auto& each : ways)
    made.curves.push_back(curve_over(sizes, each.name, each.as, [&](std::size_t bytes) {
      return in_own_process([&] { return each.run(runs_for(bytes, quick), bytes); });
    }));
  return made;
}

plot call_by_size(bool quick) {
  return by_size("Bytes to another process and back, by their number",
                 "Lower is better. Each point is the median of one process pair; the band is the middle half of its runs. A "
                 "bare exchange takes ten times as long where the system wakes the other process on a core that sleeps.",
                 ways(), quick);
}

plot floors_by_size(bool quick) {
  const auto within = [](int runs, std::size_t bytes) { return echo_calls(carrier::shared_memory, runs, bytes); };
  return by_size("What the machine allows within itself, there and back",
                 "Lower is better. Where processes sleep, each of them has to be woken, which takes ten times as long on a "
                 "core that sleeps than on their own.",
                 {{"a copy in one process (memcpy)", role::floor, copies},
                  {"shared memory, never asleep", role::variant, spinning_exchanges},
                  {"shared memory, asleep (futex)", role::variant, sleeping_exchanges},
                  {"bare TCP", role::variant, tcp_exchanges},
                  {"a call of troupe", role::troupe, within}},
                 quick);
}

plot calls_at_once(bool quick) {
  plot made{"Small calls a second, by those that are under way at once",
            "Higher is better. The answers of so many calls are awaited before the next ones begin.",
            {"calls under way at once", "", true},
            {"calls a second", "", true}};
  const auto add = [&](const char* name, role as, carrier by) {
    made.curves.push_back(
      curve_over(quick ? std::vector{1, 16} : std::vector{1, 4, 16, 64, 256, 1'024}, name, as, [=](int at_once) {
        const int runs = quick ? 3 : std::max(10, 4'000 / (at_once + 3));
        auto rates = in_own_process([&] { return calls_together({.by = by}, at_once, runs); });
        for (auto& us : rates) us = 1e6 / us;
        return rates;
      }));
  };
  add("CAF's network", role::peer, carrier::caf);
  add("TCP", role::variant, carrier::tcp);
  add("TLS", role::variant, carrier::tls);
  add("within a machine", role::troupe, carrier::shared_memory);
  return made;
}

plot call_percentiles(bool quick) {
  plot made{"200 bytes to another process and back: how long the slow ones take",
            "Lower is better. At 100: 99 of 100 calls are answered within this time.",
            {"calls of which one takes longer", "", true},
            {"time until the answer", "us", true}};
  const std::vector<double> one_of{2, 10, 100, 1'000};
  for (const auto& each : ways()) {
    const measured_turns found(quick ? 1 : 3, [&] { return late_ones(each.run(quick ? 20 : 5'000, small_message), one_of); });
    made.curves.push_back(curve_of_late_ones(each.name, each.as, found, one_of));
  }
  return made;
}

}  // namespace

std::vector<plot_definition> message_plots() {
  return joined<plot_definition>(
    {plots_of_group("messages",
                    {{"call_by_size", call_by_size}, {"calls_at_once", calls_at_once}, {"call_percentiles", call_percentiles}}),
     plots_of_group("floors", {{"floors_by_size", floors_by_size}})});
}

std::vector<double> late_ones(const std::vector<double>& times, const std::vector<double>& one_of) {
  std::vector<double> late;
  for (const double each : one_of) late.push_back(percentile(times, 1 - 1 / each));
  return late;
}

curve curve_of_late_ones(const std::string& name, role as, const measured_turns& found, const std::vector<double>& one_of) {
  std::size_t at = 0;
  return curve_over(one_of, name, as, [&](double) { return found.all(at++); });
}

}  // namespace troupe::bench
