// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/status_command_test.cpp
#include "apps/commands/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/status_client.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>

#include "apps/charlm/figures.hpp"
#include "apps/cluster_view.hpp"
#include "apps/command_line.hpp"
#include "apps/signals.hpp"
#include "apps/text_table.hpp"

namespace troupe::apps {

namespace {

constexpr std::chrono::milliseconds time_for_rates{500};
constexpr double usual_watch = 2;  // seconds

struct status_options {
  std::string address;
  bool cluster = false;
  bool json = false;
  double watch = 0;
  int deadline_ms = 3000;
  settings how;
};

nlohmann::ordered_json json_of(const peer_status& x) {
  return {{"name", x.who.name},
          {"address", address_of(x.who)},
          {"up", x.up},
          {"contexts", x.contexts},
          {"messages_sent", x.messages_sent},
          {"messages_received", x.messages_received},
          {"bytes_sent", x.bytes_sent},
          {"bytes_received", x.bytes_received},
          {"bytes_sent_before_compression", x.plain_bytes_sent},
          {"bytes_received_before_compression", x.plain_bytes_received},
          {"bytes_read", x.bytes_read},
          {"state", state_of(x)},
          {"for_s", static_cast<double>(x.since_ns) / 1e9},
          {"transport", x.transport},
          {"reason", x.reason}};
}

/// Returns the peers of a node without those that were replaced, as by a restart (remove_replaced()).
std::vector<peer_status> listed_peers(const node_status& x) {
  auto peers = x.peers;
  remove_replaced(peers, x.self, [](const peer_status& each) -> const peer_status& { return each; });
  return peers;
}

nlohmann::ordered_json json_of(const node_status& x) {
  nlohmann::ordered_json result = {
    {"name", x.self.name},
    {"address", address_of(x.self)},
    {"version", x.version},
    {"uptime_s", static_cast<double>(x.uptime_ns) / 1e9},
    {"memory_bytes", x.resident_bytes},
    {"contexts", {{"open", x.contexts}, {"opened", x.contexts_opened}}},
    {"passes",
     {{"running", x.passes_running},
      {"completed", x.passes_completed},
      {"failed", x.passes_failed},
      {"graph_tasks", x.graph_tasks}}},
    {"calls_made", {{"all", x.calls_made}, {"waiting", x.calls_waiting}, {"failed", x.calls_failed}}},
    {"calls_run", {{"all", x.calls_run}, {"running", x.calls_running}, {"queued", x.calls_queued}}},
    {"functions_run", x.functions_run},
    {"objects", x.objects},
    {"refused", {{"connections", x.connections_refused}, {"requests", x.requests_refused}}},
    {"devices", nlohmann::ordered_json::array()},
    {"device_maps", nlohmann::ordered_json::array()},
    {"peers", nlohmann::ordered_json::array()}};
  for (const auto& device : x.self.devices) result["devices"].push_back(device.str());
  for (const auto& map : x.maps)
    result["device_maps"].push_back({{"peer", map.peer}, {"map", map.entries}, {"problem", map.problem}});
  for (const auto& each : listed_peers(x)) result["peers"].push_back(json_of(each));
  return result;
}

std::string rates_line(const status_rates& x) {
  return "rates      " + charlm::grouped(x.calls_run) + " calls/s and " + charlm::grouped(x.functions_run) +
         " functions/s run, " + bytes_text(x.bytes_sent) + "/s sent, " + bytes_text(x.bytes_received) + "/s received\n";
}

/// Whether tensors to or from the peer were compressed.
bool is_compressed(const peer_status& x) {
  return x.plain_bytes_sent != x.bytes_sent || x.plain_bytes_received != x.bytes_received;
}

std::string table_of(const node_status& x, const std::optional<status_rates>& rates) {
  auto text = x.self.name + " at " + address_of(x.self) + ", up for " +
              charlm::clock_text(static_cast<double>(x.uptime_ns) / 1e9) + ", " +
              bytes_text(static_cast<double>(x.resident_bytes)) + " of memory, troupe " +
              (x.version.empty() ? "of an older version" : x.version) + "\n\n";
  text += "contexts   " + number(x.contexts) + " open, " + number(x.contexts_opened) + " so far\n";
  text += "passes     " + number(x.passes_running) + " running, " + number(x.passes_completed) + " completed, " +
          number(x.passes_failed) + " failed of those begun here; graph tasks of any node: " + number(x.graph_tasks) + "\n";
  text += "calls      " + number(x.calls_made) + " made: " + number(x.calls_waiting) + " waiting, " + number(x.calls_failed) +
          " failed; " + number(x.calls_run) + " run here: " + number(x.calls_running) + " running, " + number(x.calls_queued) +
          " queued\n";
  text += "functions  " + number(x.functions_run) + " run in backward\n";
  text += "objects    " + number(x.objects) + "\n";
  if (!x.self.devices.empty()) text += "devices    " + devices::names_of(x.self.devices) + "\n";
  for (const auto& map : x.maps)
    text += "device map to " + map.peer + ": " + map.entries + (map.problem.empty() ? "" : "; " + map.problem) + "\n";
  if (x.connections_refused + x.requests_refused > 0)
    text += "refused    " + number(x.connections_refused) + " connections, " + number(x.requests_refused) + " requests\n";
  if (rates) text += rates_line(*rates);
  const auto peers = listed_peers(x);
  if (peers.empty()) return text;
  std::vector<std::vector<std::string>> rows{{"peer", "address", "state", "transport", "contexts", "messages sent",
                                              "messages received", "bytes sent", "bytes received"}};
  const bool any_compressed = std::any_of(peers.begin(), peers.end(), is_compressed);
  if (any_compressed) rows[0].insert(rows[0].end(), {"sent before compression", "received before compression"});
  for (const auto& each : peers) {
    rows.push_back({each.who.name, address_of(each.who), state_of(each), or_dash(each.transport), number(each.contexts),
                    number(each.messages_sent), number(each.messages_received), number(each.bytes_sent),
                    number(each.bytes_received)});
    if (any_compressed)
      rows.back().insert(rows.back().end(), {number(each.plain_bytes_sent), number(each.plain_bytes_received)});
  }
  text += "\n" + text_table(rows, 4);
  for (const auto& each : peers)
    if (!each.up && each.transport == not_reached) text += each.who.name + " is not reached from here: " + each.reason + "\n";
  return text;
}

/// Asks a node again and again, and shows each answer with the rates since the previous answer.
class watch_of_a_node {
 public:
  explicit watch_of_a_node(const status_options& options)
      : options_(options),
        client_(connect(options)),
        in_place_(options.watch > 0 && !options.json && ::isatty(STDOUT_FILENO) == 1) {}

  void run(const stop_signal& stop) {
    if (options_.cluster && options_.watch <= 0) {  // rates need two answers
      answer();
      if (stop.wait_for(time_for_rates)) return;
    }
    for (bool first = true;; first = false) {
      show(first ? answer() : answer_or_problem(), first);
      if (options_.watch <= 0 || stop.wait_for(std::chrono::milliseconds(static_cast<int>(options_.watch * 1000)))) return;
    }
  }

 private:
  static std::unique_ptr<status_client> connect(const status_options& options) {
    const auto [host, port] = parse_address(options.address);
    return std::make_unique<status_client>(host, port, std::chrono::milliseconds(options.deadline_ms), options.how);
  }

  std::string text(const nlohmann::ordered_json& of) const {
    return of.dump(options_.watch > 0 ? -1 : 2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  }

  std::string answer() {
    const std::chrono::milliseconds deadline(options_.deadline_ms);
    if (options_.cluster) {
      auto now = client_->ask_cluster(deadline);
      const cluster_view view(now, cluster_ ? &*cluster_ : nullptr);
      cluster_ = std::move(now);
      return options_.json ? text(view.json()) : view.table();
    }
    auto now = client_->ask(deadline);
    const auto rates = node_ ? status_rates::between(*node_, now) : std::nullopt;
    node_ = std::move(now);
    return options_.json ? text(json_of(*node_)) : table_of(*node_, rates);
  }

  /// As answer(), but returns the text of the problem if the node does not answer. The next question then uses a new
  /// connection, because the node may be restarted.
  std::string answer_or_problem() {
    try {
      if (!client_) client_ = connect(options_);
      return answer();
    } catch (const error& problem) {
      client_.reset();
      node_.reset();
      cluster_.reset();
      return options_.json ? text({{"problem", problem.what()}}) : problem.what() + std::string("\n");
    }
  }

  /// Prints an answer. In a terminal, each answer of --watch replaces the previous one.
  void show(const std::string& what, bool first) const {
    constexpr const char* home_and_clear = "\033[H\033[2J";
    std::printf("%s%s", in_place_ ? home_and_clear : first || options_.json ? "" : "\n", what.c_str());
    std::fflush(stdout);
  }

  const status_options& options_;
  std::unique_ptr<status_client> client_;
  bool in_place_;
  std::optional<node_status> node_;
  std::optional<cluster_status> cluster_;
};

void show_status(const status_options& options) {
  stop_signal stop;
  watch_of_a_node(options).run(stop);
}

constexpr const char* status_examples =
  R"(Messages are calls, results and what passes send; bytes are those of their tensors. Contexts of a peer are
those that it opened. Bytes before compression are shown if a context or call has a wire format. The node
answers also while all its workers compute. With --cluster the node asks its peers: memory is what each
process has in RAM, "waiting" are calls made that have no answer yet.

Example: what the node at port 4001 does, every two seconds
  troupe status 127.0.0.1:4001 --watch

Example: every node of the cluster that the node at port 4001 belongs to, every five seconds
  troupe status 127.0.0.1:4001 --cluster --watch 5)";

}  // namespace

void add_status_command(CLI::App& app) {
  auto options = std::make_shared<status_options>();
  auto* command = app.add_subcommand("status", "Show what a node or its whole cluster does: passes, calls, traffic, memory");
  command->option_defaults()->always_capture_default();
  command->add_option("NODE", options->address, "Address of the node, as HOST:PORT")
    ->check(host_and_port())
    ->type_name("")
    ->required();
  command->add_flag("--cluster", options->cluster,
                    "Show every node that this node knows: state, transport, memory, queues, rates");
  command->add_flag("--json", options->json,
                    "Print JSON; with --watch one object a line: {\"problem\": ...} while the node does not answer");
  auto* watch = command->add_option("--watch", options->watch,
                                    "Seconds from one print to the next, until Ctrl-C (2 if no number follows); 0: print once");
  watch->check(between(0.0, 86'400.0))->expected(0, 1)->default_str("");
  command->add_option("--deadline-ms", options->deadline_ms, "Milliseconds to wait for an answer")
    ->check(between(1, 86'400'000));
  add_node_options(*command, options->how, proof);
  command->footer(status_examples);
  command->callback([options, watch] {
    if (watch->count() > 0 && watch->reduced_results() == std::vector<std::string>{""}) options->watch = usual_watch;
    show_status(*options);
  });
}

}  // namespace troupe::apps
