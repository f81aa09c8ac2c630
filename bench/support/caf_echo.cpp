// SPDX-License-Identifier: BSD-3-Clause
#include "caf_echo.hpp"

#include <stdexcept>
#include <utility>

#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>

namespace troupe::bench {

caf_link::config::config() { load<caf::io::middleman>(); }

void serve_caf_echo(const std::string& address, const std::function<void(std::uint16_t)>& tell_port,
                    const std::function<void()>& until) {
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  caf::actor_system system(config);
  const auto echo =
    system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](std::string& text) { return std::move(text); }}; });
  const auto port = system.middleman().publish(echo, 0, address.c_str());
  if (!port) throw std::runtime_error("CAF can't listen at " + address + ": " + system.render(port.error()));
  tell_port(*port);
  until();
  caf::anon_send_exit(echo, caf::exit_reason::user_shutdown);
}

caf_link::caf_link(const std::string& address, std::uint16_t port) {
  auto found = system_.middleman().remote_actor(address, port);
  if (!found) throw std::runtime_error("CAF does not reach the other process: " + system_.render(found.error()));
  echo_ = std::move(*found);
}

void caf_asker::wait() {
  open_.front().receive(
    [](const std::string&) {},
    [](const caf::error& reason) { throw std::runtime_error("a request of CAF failed: " + caf::to_string(reason)); });
  open_.pop_front();
}

}  // namespace troupe::bench
