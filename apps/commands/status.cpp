// SPDX-License-Identifier: BSD-3-Clause
#include "apps/commands/status.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/status_client.hpp>

#include "apps/charlm/figures.hpp"
#include "apps/command_line.hpp"
#include "apps/ready_line.hpp"
#include "apps/signals.hpp"

namespace troupe::apps {

namespace {

struct status_options {
  std::string address;
  bool json = false;
  double watch = 0;
  int deadline_ms = 3000;
};

std::string number(std::uint64_t value) { return charlm::grouped(std::to_string(value)); }

std::string address_of(const member& who) { return ready_line{who.name, who.host, who.port}.address(); }

nlohmann::ordered_json json_of(const peer_status& x) {
  return {{"name", x.who.name},         {"address", address_of(x.who)},       {"up", x.up},
          {"contexts", x.contexts},     {"messages_sent", x.messages_sent},   {"messages_received", x.messages_received},
          {"bytes_sent", x.bytes_sent}, {"bytes_received", x.bytes_received}, {"bytes_read", x.bytes_read}};
}

nlohmann::ordered_json json_of(const node_status& x) {
  nlohmann::ordered_json result = {
    {"name", x.self.name},
    {"address", address_of(x.self)},
    {"uptime_s", static_cast<double>(x.uptime_ns) / 1e9},
    {"contexts", {{"open", x.contexts}, {"opened", x.contexts_opened}}},
    {"passes",
     {{"running", x.passes_running}, {"completed", x.passes_completed}, {"failed", x.passes_failed}, {"parts", x.pass_parts}}},
    {"calls_made", {{"all", x.calls_made}, {"waiting", x.calls_waiting}, {"failed", x.calls_failed}}},
    {"calls_run", {{"all", x.calls_run}, {"running", x.calls_running}, {"queued", x.calls_queued}}},
    {"functions_run", x.functions_run},
    {"objects", x.objects},
    {"peers", nlohmann::ordered_json::array()}};
  for (const auto& each : x.peers) result["peers"].push_back(json_of(each));
  return result;
}

/// Prints rows of cells: the first column aligned to the left, numbers to the right.
void print_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto width = static_cast<int>(widths[i]);
      std::printf(i < 3 ? "%s%-*s" : "%s%*s", i == 0 ? "" : "  ", width, row[i].c_str());
    }
    std::printf("\n");
  }
}

void print_table(const node_status& x) {
  std::printf("%s at %s, up for %s\n\n", x.self.name.c_str(), address_of(x.self).c_str(),
              charlm::clock_text(static_cast<double>(x.uptime_ns) / 1e9).c_str());
  std::printf("contexts   %s open, %s so far\n", number(x.contexts).c_str(), number(x.contexts_opened).c_str());
  std::printf("passes     %s running, %s completed, %s failed of those begun here; parts held in any: %s\n",
              number(x.passes_running).c_str(), number(x.passes_completed).c_str(), number(x.passes_failed).c_str(),
              number(x.pass_parts).c_str());
  std::printf("calls      %s made: %s waiting, %s failed; %s run here: %s running, %s queued\n", number(x.calls_made).c_str(),
              number(x.calls_waiting).c_str(), number(x.calls_failed).c_str(), number(x.calls_run).c_str(),
              number(x.calls_running).c_str(), number(x.calls_queued).c_str());
  std::printf("functions  %s run in backward\n", number(x.functions_run).c_str());
  std::printf("objects    %s\n", number(x.objects).c_str());
  if (x.peers.empty()) return;
  std::vector<std::vector<std::string>> rows{
    {"peer", "address", "state", "contexts", "messages sent", "messages received", "bytes sent", "bytes received"}};
  for (const auto& each : x.peers)
    rows.push_back({each.who.name, address_of(each.who), each.up ? "up" : "down", number(each.contexts),
                    number(each.messages_sent), number(each.messages_received), number(each.bytes_sent),
                    number(each.bytes_received)});
  std::printf("\n");
  print_columns(rows);
}

void show_status(const status_options& options) {
  const auto deadline = std::chrono::milliseconds(options.deadline_ms);
  const auto [host, port] = parse_address(options.address);
  stop_signal stop;
  status_client client(host, port, deadline);
  for (;;) {
    const auto status = client.ask(deadline);
    if (options.json)
      std::printf(
        "%s\n", json_of(status).dump(options.watch > 0 ? -1 : 2, ' ', true, nlohmann::json::error_handler_t::replace).c_str());
    else
      print_table(status);
    std::fflush(stdout);
    if (options.watch <= 0) return;
    if (stop.wait_for(std::chrono::milliseconds(static_cast<int>(options.watch * 1000)))) return;
    if (!options.json) std::printf("\n");
  }
}

constexpr const char* status_examples =
  R"(Messages are calls, results and what passes send; bytes are those of their tensors. Contexts of a peer are
those that it opened. The node answers also while all its workers compute.

Example: what the node at port 4001 does, every two seconds
  troupe status 127.0.0.1:4001 --watch 2)";

}  // namespace

void add_status_command(CLI::App& app) {
  auto options = std::make_shared<status_options>();
  auto* command = app.add_subcommand("status", "Show what a node does: contexts, passes, calls, traffic by peer");
  command->option_defaults()->always_capture_default();
  command->add_option("HOST:PORT", options->address, "Address of the node")
    ->check(host_and_port())
    ->type_name("")
    ->default_str("")
    ->required();
  command->add_flag("--json", options->json, "Print JSON; with --watch one object a line");
  command->add_option("--watch", options->watch, "Seconds from one print to the next, until Ctrl-C; 0: print once")
    ->check(between(0.0, 86'400.0));
  command->add_option("--deadline-ms", options->deadline_ms, "Milliseconds to wait for an answer")
    ->check(between(1, 86'400'000));
  command->footer(status_examples);
  command->callback([options] { show_status(*options); });
}

}  // namespace troupe::apps
