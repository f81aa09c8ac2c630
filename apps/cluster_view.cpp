// SPDX-License-Identifier: BSD-3-Clause
#include "apps/cluster_view.hpp"

#include <array>
#include <cmath>
#include <iterator>
#include <tuple>

#include <nlohmann/json.hpp>

#include "apps/text_table.hpp"

namespace troupe::apps {

namespace {

struct totals {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  explicit totals(const node_status& of) {
    for (const auto& each : of.peers) {
      sent += each.bytes_sent;
      received += each.bytes_received + each.bytes_read;
    }
  }
};

int rank(const std::string& state) { return state == "up" ? 0 : state == "unreachable" ? 1 : state == not_reached ? 2 : 3; }

cluster_view::row row_of(cluster_member from) {
  const auto& seen = from.seen;
  return {seen.who,
          state_of(seen),
          static_cast<double>(seen.since_ns) / 1e9,
          seen.up ? seen.transport : "",
          std::move(from.problem),
          std::move(from.status),
          {}};
}

const node_status* find(const cluster_status& in, node_id who) {
  if (in.asked.self.id == who) return &in.asked;
  for (const auto& each : in.others)
    if (each.seen.who.id == who && each.status) return &*each.status;
  return nullptr;
}

/// Returns the members to which the node of this row can't connect.
std::vector<peer_status> out_of_reach_of(const cluster_view::row& x) {
  std::vector<peer_status> result;
  if (x.status)
    std::copy_if(x.status->peers.begin(), x.status->peers.end(), std::back_inserter(result),
                 [](const auto& peer) { return !peer.up && peer.transport == not_reached; });
  return result;
}

std::vector<std::string> cells_of(const cluster_view::row& x) {
  std::vector<std::string> cells{x.who.name, address_of(x.who), x.state, or_dash(x.transport), charlm::clock_text(x.for_s)};
  if (x.status) {
    const auto& s = *x.status;
    for (auto& each : {bytes_text(static_cast<double>(s.resident_bytes)), number(s.calls_running), number(s.calls_queued),
                       number(s.calls_waiting), number(s.contexts)})
      cells.push_back(each);
  } else {
    cells.insert(cells.end(), 5, or_dash({}));
  }
  if (x.rates)
    for (auto& each :
         {charlm::grouped(x.rates->calls_run), bytes_text(x.rates->bytes_sent), bytes_text(x.rates->bytes_received)})
      cells.push_back(each);
  else
    cells.insert(cells.end(), 3, or_dash({}));
  cells.push_back(or_dash(x.status ? x.status->version : ""));
  return cells;
}

nlohmann::ordered_json json_of(const cluster_view::row& x) {
  nlohmann::ordered_json result{{"name", x.who.name}, {"address", address_of(x.who)}, {"state", x.state}, {"for_s", x.for_s}};
  if (!x.transport.empty()) result["transport"] = x.transport;
  if (!x.problem.empty()) result["problem"] = x.problem;
  if (x.status) {
    const auto& s = *x.status;
    result.update({{"version", s.version},
                   {"uptime_s", static_cast<double>(s.uptime_ns) / 1e9},
                   {"memory_bytes", s.resident_bytes},
                   {"calls_running", s.calls_running},
                   {"calls_queued", s.calls_queued},
                   {"calls_waiting", s.calls_waiting},
                   {"contexts", s.contexts},
                   {"passes_running", s.passes_running},
                   {"objects", s.objects},
                   {"members_up", s.members_up}});
  }
  for (const auto& peer : out_of_reach_of(x))
    result["does_not_reach"].push_back({{"name", peer.who.name}, {"reason", peer.reason}});
  if (x.rates)
    result["rates"] = {{"calls_run", x.rates->calls_run},
                       {"functions_run", x.rates->functions_run},
                       {"bytes_sent", x.rates->bytes_sent},
                       {"bytes_received", x.rates->bytes_received}};
  return result;
}

}  // namespace

std::optional<status_rates> status_rates::between(const node_status& before, const node_status& after) {
  const auto seconds = static_cast<double>(after.uptime_ns - before.uptime_ns) / 1e9;
  if (before.self.id != after.self.id || seconds <= 0) return std::nullopt;
  const totals old(before);
  const totals now(after);
  const auto rate = [&](std::uint64_t from, std::uint64_t to) {
    return to < from ? 0 : static_cast<double>(to - from) / seconds;
  };
  return status_rates{rate(before.calls_run, after.calls_run), rate(before.functions_run, after.functions_run),
                      rate(old.sent, now.sent), rate(old.received, now.received)};
}

std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < units.size(); ++unit) bytes /= 1000;
  return charlm::fixed(bytes, unit == 0 || bytes >= 99.95 ? 0 : 1) + " " + units[unit];
}

cluster_view::cluster_view(cluster_status now, const cluster_status* before) {
  const auto add_rates = [&](row& to) {
    const auto* old = before == nullptr ? nullptr : find(*before, to.who.id);
    if (old != nullptr && to.status) to.rates = status_rates::between(*old, *to.status);
  };
  remove_replaced(now.others, now.asked.self, [](const cluster_member& each) -> const peer_status& { return each.seen; });
  rows_.push_back({now.asked.self, "up", static_cast<double>(now.asked.uptime_ns) / 1e9, {}, {}, std::move(now.asked), {}});
  for (auto& each : now.others) rows_.push_back(row_of(std::move(each)));
  for (auto& each : rows_) add_rates(each);
  std::stable_sort(rows_.begin() + 1, rows_.end(), [](const row& a, const row& b) {
    return std::tuple(rank(a.state), a.who.name) < std::tuple(rank(b.state), b.who.name);
  });
}

std::string cluster_view::table() const {
  std::vector<std::vector<std::string>> cells{{"node", "address", "state", "transport", "for", "memory", "running", "queued",
                                               "waiting", "contexts", "calls/s", "sent/s", "received/s", "version"}};
  std::string problems;
  int counts[4] = {};
  for (const auto& each : rows_) {
    cells.push_back(cells_of(each));
    ++counts[rank(each.state)];
    if (!each.problem.empty() && each.state != not_reached) problems += each.who.name + ": " + each.problem + "\n";
    for (const auto& peer : out_of_reach_of(each))
      problems += each.who.name + " does not reach " + peer.who.name + ": " + peer.reason + "\n";
  }
  auto text = "cluster as " + rows_.front().who.name + " sees it: " + std::to_string(counts[0]) + " up, " +
              std::to_string(counts[1]) + " unreachable, " +
              (counts[2] > 0 ? std::to_string(counts[2]) + " " + not_reached + ", " : "") + std::to_string(counts[3]) +
              " gone\n\n" + text_table(cells, 4);
  return problems.empty() ? text : text + "\n" + problems;
}

nlohmann::ordered_json cluster_view::json() const {
  nlohmann::ordered_json result{{"asked", rows_.front().who.name}, {"nodes", nlohmann::ordered_json::array()}};
  for (const auto& each : rows_) result["nodes"].push_back(json_of(each));
  return result;
}

}  // namespace troupe::apps
