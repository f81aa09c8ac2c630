// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/membership/dialer.hpp>
#include <troupe/actors/network/system_config.hpp>
#include <troupe/actors/settings.hpp>

#include "actors/certificates/own_cluster.hpp"

namespace troupe::test {

/// An actor system with a kit of the cluster, which speaks to nodes as it likes.
struct liar {
  static constexpr std::chrono::seconds patience{20};

  troupe::settings with;
  troupe::network::system_config config;
  caf::actor_system system{config};

  explicit liar(const own_cluster& mine, const std::string& role = "member") : with(settings_of(mine, role)), config(with) {}

  static troupe::settings settings_of(const own_cluster& mine, const std::string& role) {
    troupe::settings result;
    result.name = "mallory";
    result.certificates = mine.kit("mallory", own_cluster::clock::now(), own_cluster::days(1), role);
    return result;
  }

  caf::actor gateway_at(std::uint16_t port) {
    caf::scoped_actor self{system};
    const auto dialer = troupe::membership::spawn_dialer(system);
    caf::actor result;
    self
      ->request(dialer, patience, caf::connect_atom::value, std::string("127.0.0.1"), port,
                std::int64_t{std::chrono::nanoseconds(patience).count()})
      .receive([&](const caf::node_id&, caf::strong_actor_ptr& gateway,
                   const std::set<std::string>&) { result = caf::actor_cast<caf::actor>(gateway); },
               [&](const caf::error& problem) { BOOST_FAIL(caf::to_string(problem)); });
    self->send_exit(dialer, caf::exit_reason::user_shutdown);
    return result;
  }
};

}  // namespace troupe::test
