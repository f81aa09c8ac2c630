// SPDX-License-Identifier: BSD-3-Clause
// Rows of `troupe train` with its stages on other hosts.
#include "rows.hpp"

#include <cstdio>

#include "host_training.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;

/// The bytes over the driver's link in a step of the same model when each activation and each gradient passed through the
/// driver: 4 times 3.15 MB of hidden values (96 windows of 64 characters, width 128, float), twice 2.1 MB of values for each of
/// the 86 characters of the alphabet, tokens, and 3 % for the heads of packets.
constexpr double bytes_through_the_driver = 17.39e6;

/// Tokens per second with the stages on hosts of their own, by those of the same three processes on one host that talk by
/// loopback TCP.
row training(const std::string& rate, bool quick) {
  testbed all({"driver", "h1", "h2", "local"});
  if (!rate.empty())
    for (const auto* each : {"driver", "h1", "h2"}) all.limit_rate(each, rate);
  std::vector<double> apart;
  std::vector<double> together;
  const auto steps = quick ? 5 : 9;
  for (int turn = 1; turn <= (quick ? 1 : 3); ++turn) {
    std::fprintf(stderr, "   turn %d\n", turn);
    // The processes of a turn exist during that turn alone.
    together.push_back(host_training(all, "local", "local", "local").tokens_per_second(steps, quick));
    apart.push_back(host_training(all, "driver", "h1", "h2").tokens_per_second(steps, quick));
  }
  const auto on_hosts = middle(apart);
  const auto on_loopback = middle(together);
  return {{on_loopback, on_hosts, 0}, on_hosts / on_loopback};
}

/// What a long run sends more than a short one: what happens once in a run does not count.
row driver_bytes(bool quick) {
  const testbed all({"driver", "h1", "h2"});
  host_training runs(all, "driver", "h1", "h2");
  const auto bytes_of = [&](int steps) {
    const auto before = link_bytes(all["driver"]);
    runs.tokens_per_second(steps, quick);
    return link_bytes(all["driver"]) - before;
  };
  constexpr int few = 5;
  const int many = quick ? 15 : 45;
  const auto of_few = bytes_of(few);
  const auto a_step = (bytes_of(many) - of_few) / (many - few);
  return {{bytes_through_the_driver / 1e6, a_step / 1e6, 0}, a_step / bytes_through_the_driver};
}

}  // namespace

std::vector<row_definition> training_rows() {
  return {{"train_hosts", "tokens/s", at_least(0.95), "The example with its stages on hosts of their own; peer: on one host.",
           [](bool quick) { return training("", quick); }},
          {"train_100mbit", "tokens/s", at_least(0.8),
           "The example with its stages on hosts with links of 100 Mbit/s; peer: on one host.",
           [](bool quick) { return training("100mbit", quick); }},
          {"driver_bytes", "MB a step", at_most(0.1),
           "Bytes of a step on the driver's link; peer: if all values passed through the driver.", driver_bytes}};
}

}  // namespace troupe::bench
