// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/membership/dialer.hpp>
#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

namespace troupe::test {

/// An actor system with the kit of node 'mallory', which speaks to nodes as it likes.
struct liar {
  static constexpr std::chrono::seconds patience{20};

  troupe::settings with;
  troupe::nodes::system_config config;
  caf::actor_system system{config};

  explicit liar(const std::string& kit) : with(settings_of(kit)), config(with) {}

  static troupe::settings settings_of(const std::string& kit) {
    troupe::settings result;
    result.name = "mallory";
    result.certificates = kit;
    return result;
  }

  /// The gateway of the node that listens there. Throws std::runtime_error if none answers.
  caf::actor gateway_at(std::uint16_t port, const std::string& host = "127.0.0.1") {
    caf::scoped_actor self{system};
    const auto dialer = troupe::membership::spawn_dialer(system);
    caf::actor result;
    self
      ->request(dialer, patience, caf::connect_atom::value, host, port,
                std::int64_t{std::chrono::nanoseconds(patience).count()})
      .receive([&](const caf::node_id&, caf::strong_actor_ptr& gateway,
                   const std::set<std::string>&) { result = caf::actor_cast<caf::actor>(gateway); },
               [&](const caf::error& problem) { throw std::runtime_error(caf::to_string(problem)); });
    self->send_exit(dialer, caf::exit_reason::user_shutdown);
    return result;
  }
};

}  // namespace troupe::test
