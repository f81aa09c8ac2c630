// SPDX-License-Identifier: BSD-3-Clause
#include "scale_figures.hpp"

#include <cstdio>
#include <mutex>

#include <nlohmann/json.hpp>

#include "../support/real_cluster.hpp"

namespace troupe::bench {

namespace {

constexpr std::size_t most_all_to_all = 1'000;
constexpr std::int64_t hour_ns = 3'600'000'000'000;

template <class... Values>
std::string format(const char* how, Values... values) {
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(), how, values...);
  return text.data();
}

}  // namespace

pass_figures simulate_pass(const std::string& name, std::size_t nodes, const network_costs& network_how,
                           const pass_costs& costs, std::uint64_t seed) {
  event_queue clock;
  const auto shape = std::make_shared<const pass_shape>(shape_of(name, static_cast<pass_shape::number>(nodes)));
  simulated_network network(clock, nodes, network_how, seed);
  for (std::size_t node = 1; node < nodes; ++node) network.connect(0, node);
  for (std::size_t f = 0; f < shape->home.size(); ++f)
    for (const auto& each : shape->next[f])
      if (each.send != pass_shape::none) network.connect(shape->home[f], shape->home[each.to]);
  pass_model::terms how;
  how.costs = costs;
  how.deadline_ns = hour_ns;
  const auto pass = std::make_shared<pass_model>(network, shape, how);
  pass->start({});
  while (!pass->is_over() && clock.step()) {
  }
  if (!pass->is_over() || !pass->result().succeeded || !pass->wrong().empty())
    throw std::runtime_error("the simulated pass over " + name + " of " + std::to_string(nodes) +
                             " nodes failed: " + (pass->is_over() ? pass->result().error : "it never ends") + pass->wrong());
  pass_figures result;
  result.shape = name;
  result.nodes = nodes;
  result.time_ms = static_cast<double>(pass->result().time_ns) / 1e6;
  result.largest_weight = pass->result().largest_weight_bytes;
  for (std::size_t node = 0; node < nodes; ++node) {
    const auto& each = network.counts(node);
    const auto messages = each.sent + each.received;
    result.messages += static_cast<double>(messages) / static_cast<double>(nodes);
    result.largest_received = std::max(result.largest_received, each.bytes_received);
    if (messages <= result.busiest_messages) continue;
    result.busiest = node;
    result.busiest_messages = messages;
    result.busiest_cpu_ms = static_cast<double>(each.cpu_ns) / 1e6;
  }
  return result;
}

std::string scale_figures::too_large(const std::string& shape, std::size_t nodes) {
  if (shape != "all_to_all" || nodes <= most_all_to_all) return {};
  return format("not simulated: %.0f million messages", 2e-6 * static_cast<double>(nodes) * static_cast<double>(nodes));
}

const pass_figures& scale_figures::pass(const std::string& shape, std::size_t nodes) {
  const auto [at, is_new] = passes_.try_emplace({shape, nodes});
  if (is_new) {
    how_.tell("pass over " + shape + " of " + std::to_string(nodes) + " nodes");
    at->second = simulate_pass(shape, nodes, how_.network, how_.pass, how_.seed);
  }
  return at->second;
}

const membership_figures& scale_figures::membership(std::size_t nodes) {
  const auto [at, is_new] = memberships_.try_emplace(nodes);
  if (is_new) at->second = simulate_membership(nodes, how_.network, how_.seed, how_.tell);
  return at->second;
}

const soak_report& scale_figures::soaked() {
  if (soaked_.hours > 0) return soaked_;
  std::mutex guard;
  auto next = how_.seed;
  const auto run = [&] {
    for (;;) {
      std::uint64_t seed = 0;
      {
        const std::lock_guard lock(guard);
        if (!soaked_.wrong.empty() || soaked_.hours + 0.001 >= how_.hours) return;
        seed = next++;
      }
      auto report = soak(seed).run(how_.hours_a_seed);
      const std::lock_guard lock(guard);
      if (!soaked_.wrong.empty()) return;
      if (!report.wrong.empty()) {
        report.hours += soaked_.hours;
        soaked_ = std::move(report);
        return;
      }
      const auto tenths = [&] { return static_cast<int>(10 * soaked_.hours / how_.hours); };
      const auto before = tenths();
      soaked_ += report;
      if (tenths() > before)
        how_.tell(format("soak: %.0f of %.0f simulated hours, up to seed %llu", soaked_.hours, how_.hours,
                         static_cast<unsigned long long>(seed)));
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < how_.threads; ++i) others.emplace_back(run);
  run();
  for (auto& each : others) each.join();
  return soaked_;
}

namespace {

/// The median of runs, without the first one.
template <class Run>
double measure_ms(int runs, Run run) {
  std::vector<double> times;
  run();
  for (int i = 0; i < runs; ++i) times.push_back(run());
  return middle(times);
}

}  // namespace

const std::vector<compared_pass>& scale_figures::compared() {
  if (!compared_.empty()) return compared_;
  const std::vector<std::size_t> sizes = how_.quick ? std::vector<std::size_t>{2, 4} : std::vector<std::size_t>{2, 4, 8, 16};
  constexpr std::chrono::microseconds function{5'000};
  const int runs = how_.quick ? 3 : 11;
  real_cluster nodes(sizes.back());
  // Two processes tell what a function and a message take. While both are busy, each of them sends and receives a message a call. In a pipeline
  // two messages and three functions follow each other, and the threads sleep before each message.
  costs_of_comparison_.function_ns = static_cast<std::int64_t>(real_cluster::slept_ms(function) * 1e6);
  costs_of_comparison_.spread_percent = 0;
  costs_of_comparison_.payload_bytes = 4;
  constexpr std::int64_t calls = 64;
  const auto busy_ms = measure_ms(3 * runs, [&] { return nodes.busy_pass_ms(calls); });
  const auto two_ms = measure_ms(3 * runs, [&] { return nodes.pass_ms("pipeline", 2, function); });
  network_of_comparison_ = {};
  network_of_comparison_.cores = std::max(1U, std::thread::hardware_concurrency());
  network_of_comparison_.send_ns = network_of_comparison_.receive_ns = static_cast<std::int64_t>(busy_ms * 1e6 / (2 * calls));
  const auto without = simulate_pass("pipeline", 2, network_of_comparison_, costs_of_comparison_, how_.seed).time_ms;
  network_of_comparison_.latency_ns = std::max<std::int64_t>(0, static_cast<std::int64_t>((two_ms - without) * 1e6 / 2));
  for (const auto& shape : how_.shapes)
    for (const auto count : sizes) {
      how_.tell("real pass over " + shape + " of " + std::to_string(count) + " processes");
      compared_.push_back({shape, count, measure_ms(runs, [&] { return nodes.pass_ms(shape, count, function); }),
                           simulate_pass(shape, count, network_of_comparison_, costs_of_comparison_, how_.seed).time_ms});
    }
  return compared_;
}

std::string scale_figures::text() const {
  std::string result;
  if (!compared_.empty()) {
    result += "real passes in processes of this machine, functions sleep; measured with two processes: network: " +
              network_of_comparison_.text() + "; passes: " + costs_of_comparison_.text() + "\n\n";
    result += format("%-17s %9s  %9s  %13s  %6s\n", "shape", "processes", "real, ms", "simulated, ms", "error");
    for (const auto& each : compared_)
      result += format("%-17s %9zu  %9.3f  %13.3f  %6.2f\n", each.shape.c_str(), each.nodes, each.real_ms, each.simulated_ms,
                       each.error());
    result += "\n";
  }
  if (!passes_.empty()) {
    result += "network: " + how_.network.text() + "\npasses: " + how_.pass.text() + "\n\n";
    result += format("%-17s %7s  %10s  %9s %9s  %10s  %11s  %11s\n", "shape", "nodes", "pass, ms", "messages", "busiest",
                     "its CPU, ms", "weight, B", "received, B");
    for (const auto& name : how_.shapes)
      for (const auto& [key, each] : passes_)
        if (key.first == name)
          result += format("%-17s %7zu  %10.3f  %9.1f %9llu  %11.3f  %11llu  %11llu\n", name.c_str(), each.nodes, each.time_ms,
                           each.messages, static_cast<unsigned long long>(each.busiest_messages), each.busiest_cpu_ms,
                           static_cast<unsigned long long>(each.largest_weight),
                           static_cast<unsigned long long>(each.largest_received));
    result +=
      "(messages: sent and received by a node; busiest: by the node that has the most; received: by the node that gets the "
      "most bytes)\n\n";
  }
  if (!memberships_.empty()) {
    result += format("%-17s %7s  %10s  %9s %9s  %8s %8s %8s  %11s\n", "membership", "nodes", "messages/s", "busiest", "B/s",
                     "join, s", "crash, s", "freeze,s", "memory, B");
    for (const auto& [nodes, each] : memberships_)
      result += format("%-17s %7zu  %10.2f  %9.1f %9.0f  %8.2f %8.2f %8.2f  %11.0f\n", "", nodes, each.messages,
                       each.busiest_messages, each.bytes, each.join_s, each.crash_s, each.freeze_s, each.bytes_of_memory);
    result += "(messages and bytes that a node sends; the times until all nodes know; memory of the table of one node)\n\n";
  }
  if (soaked_.hours > 0) result += "soak: " + soaked_.text() + "\n\n";
  return result;
}

std::string scale_figures::json() const {
  nlohmann::json all{{"network", how_.network.text()}, {"pass", how_.pass.text()}, {"seed", how_.seed}};
  all["passes"] = nlohmann::json::array();
  for (const auto& [key, each] : passes_)
    all["passes"].push_back({{"shape", each.shape},
                             {"nodes", each.nodes},
                             {"time_ms", each.time_ms},
                             {"messages", each.messages},
                             {"busiest", each.busiest},
                             {"busiest_messages", each.busiest_messages},
                             {"busiest_cpu_ms", each.busiest_cpu_ms},
                             {"largest_weight_bytes", each.largest_weight},
                             {"largest_received_bytes", each.largest_received}});
  all["compared"] = nlohmann::json::array();
  for (const auto& each : compared_)
    all["compared"].push_back(
      {{"shape", each.shape}, {"processes", each.nodes}, {"real_ms", each.real_ms}, {"simulated_ms", each.simulated_ms}});
  all["membership"] = nlohmann::json::array();
  for (const auto& [nodes, each] : memberships_)
    all["membership"].push_back({{"nodes", nodes},
                                 {"messages_a_second", each.messages},
                                 {"busiest_messages_a_second", each.busiest_messages},
                                 {"bytes_a_second", each.bytes},
                                 {"cpu_share", each.cpu_share},
                                 {"join_s", each.join_s},
                                 {"crash_s", each.crash_s},
                                 {"freeze_s", each.freeze_s},
                                 {"memory_bytes", each.bytes_of_memory}});
  all["soak"] = {{"hours", soaked_.hours},
                 {"events", soaked_.events},
                 {"faults", soaked_.faults},
                 {"passes", soaked_.passes},
                 {"succeeded", soaked_.succeeded},
                 {"failed_by_faults", soaked_.by_trouble},
                 {"by_deadline", soaked_.by_deadline},
                 {"splits", soaked_.splits},
                 {"wrong", soaked_.wrong}};
  return all.dump(1) + "\n";
}

}  // namespace troupe::bench
