// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

namespace troupe::bench {

/// Bare CAF with its own network: an actor that answers each text with the text. The actor listens at `address` (IPv4). Tells its port,
/// and returns after `until` has returned. Throws std::runtime_error if the actor can't listen.
void serve_caf_echo(const std::string& address, const std::function<void(std::uint16_t)>& tell_port,
                    const std::function<void()>& until);

/// The connection to serve_caf_echo() of another process. Throws std::runtime_error if there is none.
class caf_link {
 public:
  caf_link(const std::string& address, std::uint16_t port);

  caf::actor_system& system() noexcept { return system_; }
  const caf::actor& echo() const noexcept { return echo_; }

 private:
  struct config : caf::actor_system_config {
    config();
  };

  config config_;
  caf::actor_system system_{config_};
  caf::actor echo_;
};

/// Asks over a link, which has to live as long. For one thread at a time.
class caf_asker {
 public:
  explicit caf_asker(caf_link& by) : echo_(by.echo()), self_(by.system()) {}

  void send(const std::string& text) { open_.push_back(self_->request(echo_, answer_deadline, text)); }
  std::size_t in_flight() const { return open_.size(); }
  /// Waits for the answer to the oldest text that is under way. Throws std::runtime_error if none came within 20 s of send().
  void wait();
  /// Sends the text and waits for its answer. Pre: nothing is under way. Throws as wait().
  void ask(const std::string& text) {
    send(text);
    wait();
  }

 private:
  static constexpr std::chrono::seconds answer_deadline{20};

  caf::actor echo_;
  caf::scoped_actor self_;
  std::deque<decltype(std::declval<caf::scoped_actor&>()->request(std::declval<const caf::actor&>(), answer_deadline,
                                                                  std::declval<const std::string&>()))>
    open_;
};

}  // namespace troupe::bench
