// SPDX-License-Identifier: BSD-3-Clause
#include "apps/status_rates.hpp"

#include <array>
#include <cmath>

#include "apps/charlm/figures.hpp"

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

}  // namespace troupe::apps
