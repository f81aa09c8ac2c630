// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/metrics/metrics_text.hpp>

#include <cstdint>
#include <map>
#include <string_view>

#include <troupe/messages/plain_text.hpp>

namespace troupe::metrics {

namespace {

/// The value of a label in quotes.
std::string label_value(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result + '"';
}

std::string seconds(std::int64_t ns) { return fixed_text(static_cast<double>(ns) / 1e9, 3); }

class exposition {
 public:
  void metric(const char* name, const char* type, const char* help) {
    name_ = std::string("troupe_") + name;
    text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
  }
  void sample(const std::string& labels, const std::string& value) {
    text_ += name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
  void sample(const std::string& labels, std::uint64_t value) { sample(labels, std::to_string(value)); }

  void gauge(const char* name, const char* help, std::uint64_t value) {
    metric(name, "gauge", help);
    sample({}, value);
  }
  void counter(const char* name, const char* help, std::uint64_t value) {
    metric(name, "counter", help);
    sample({}, value);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

/// For each name of a peer: the sum of its traffic, and whether the peer is up.
std::map<std::string, peer_status> by_name(const std::vector<peer_status>& all) {
  std::map<std::string, peer_status> result;
  for (const auto& each : all) {
    auto& sum = result[each.who.name];
    sum.up = sum.up || each.up;
    sum.messages_sent += each.messages_sent;
    sum.messages_received += each.messages_received;
    sum.bytes_sent += each.bytes_sent;
    sum.bytes_received += each.bytes_received;
    sum.bytes_read += each.bytes_read;
    sum.plain_bytes_sent += each.plain_bytes_sent;
    sum.plain_bytes_received += each.plain_bytes_received;
  }
  return result;
}

void add_own(exposition& to, const node_status& x) {
  to.metric("build_info", "gauge", "The node and its version of troupe; the value is always 1.");
  to.sample("node=" + label_value(x.self.name) + ",version=" + label_value(x.version), 1);
  to.metric("uptime_seconds", "gauge", "Seconds since the node started.");
  to.sample({}, seconds(x.uptime_ns));
  to.gauge("resident_memory_bytes", "Memory of the node's process that is in RAM.", x.resident_bytes);
  to.gauge("contexts", "Contexts that the node holds, whichever node opened them.", x.contexts);
  to.counter("contexts_opened_total", "Contexts that the node has opened.", x.contexts_opened);
  to.gauge("passes_running", "Passes begun on this node that run.", x.passes_running);
  to.counter("passes_completed_total", "Passes begun on this node that have completed.", x.passes_completed);
  to.counter("passes_failed_total", "Passes begun on this node that have failed.", x.passes_failed);
  to.gauge("graph_tasks", "Graph tasks of passes of any node that the node holds.", x.graph_tasks);
  to.counter("calls_made_total", "Calls that the node has made.", x.calls_made);
  to.gauge("calls_waiting", "Calls made that are not answered yet.", x.calls_waiting);
  to.counter("calls_failed_total", "Calls made that ended with an error, a deadline or a peer that is down.", x.calls_failed);
  to.counter("calls_run_total", "Calls that the node has run, for other nodes or for itself.", x.calls_run);
  to.gauge("calls_running", "Calls that run.", x.calls_running);
  to.gauge("calls_queued", "Calls that wait for a worker.", x.calls_queued);
  to.counter("functions_run_total", "Autograd functions that the node has run in distributed passes.", x.functions_run);
  to.counter("connections_refused_total", "Connections of programs that did not prove that they may talk to the node.",
             x.connections_refused);
  to.counter("requests_refused_total", "What peers asked for that the node does not let them do.", x.requests_refused);
  to.gauge("objects", "Modules and optimizers that live on the node.", x.objects);
}

void add_peers(exposition& to, const node_status& x) {
  std::uint64_t up = 0;
  std::uint64_t unreachable = 0;
  std::uint64_t out_of_reach = 0;
  for (const auto& each : x.peers) {
    if (each.up) ++up;
    if (!each.up && !each.gone) ++(each.transport == not_reached ? out_of_reach : unreachable);
  }
  to.metric("peers", "gauge",
            "Peers by state. Peers that are gone do not count. not_reached: members that this node can't connect to.");
  to.sample("state=\"up\"", up);
  to.sample("state=\"unreachable\"", unreachable);
  to.sample("state=\"not_reached\"", out_of_reach);
  const auto peers = by_name(x.peers);
  if (peers.empty()) return;
  const auto of_each = [&](const char* name, const char* type, const char* help, auto value) {
    to.metric(name, type, help);
    for (const auto& [peer, sum] : peers) to.sample("peer=" + label_value(peer), static_cast<std::uint64_t>(value(sum)));
  };
  of_each("peer_up", "gauge", "Whether the peer is up (1) or not (0).", [](auto& sum) { return sum.up; });
  of_each("peer_messages_sent_total", "counter", "Messages of calls and passes to the peer.",
          [](auto& sum) { return sum.messages_sent; });
  of_each("peer_messages_received_total", "counter", "Messages of calls and passes from the peer.",
          [](auto& sum) { return sum.messages_received; });
  of_each("peer_sent_bytes_total", "counter", "Bytes of tensors sent to the peer.", [](auto& sum) { return sum.bytes_sent; });
  of_each("peer_received_bytes_total", "counter", "Bytes of tensors that came from the peer.",
          [](auto& sum) { return sum.bytes_received; });
  of_each("peer_sent_bytes_before_compression_total", "counter", "Bytes that the tensors sent to the peer have uncompressed.",
          [](auto& sum) { return sum.plain_bytes_sent; });
  of_each("peer_received_bytes_before_compression_total", "counter",
          "Bytes that the tensors that came from the peer have uncompressed.",
          [](auto& sum) { return sum.plain_bytes_received; });
  of_each("peer_read_bytes_total", "counter", "Bytes of tensors that the node read out of the peer's memory.",
          [](auto& sum) { return sum.bytes_read; });
}

}  // namespace

std::string metrics_text(const node_status& of) {
  exposition result;
  add_own(result, of);
  add_peers(result, of);
  return result.take();
}

}  // namespace troupe::metrics
