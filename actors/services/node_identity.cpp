// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/node_identity.hpp>

#include <random>

#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/devices/present_devices.hpp>

namespace troupe::services {

namespace {

node_id draw_id() {
  std::random_device device;
  std::uint64_t high = device();
  return {(high << 32 | device()) | 1};
}

}  // namespace

node_identity::node_identity(const settings& options)
    : started_ns_(support::steady_ns()),
      self_{options.name,
            draw_id(),
            options.advertise.empty() ? options.host : options.advertise,
            0,
            formats_read,
            devices::present_devices()} {}

std::int64_t node_identity::uptime_ns() const noexcept { return support::steady_ns() - started_ns_; }

}  // namespace troupe::services
