// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/receive_policy.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

#include "actors/network/broker_connection.hpp"
#include "actors/network/posted_work.hpp"

namespace troupe::test {

/// A broker that calls another broker.
class calling_broker {
 public:
  std::function<void(const std::string&)> on_data;  // runs in the broker

  explicit calling_broker(const settings& options) : config_(options) {}
  ~calling_broker() { caf::anon_send_exit(broker_, caf::exit_reason::user_shutdown); }

  void call(std::uint16_t port) {
    run_in(broker_, [&] {
      handle_ = *self_->add_tcp_scribe("127.0.0.1", port);
      self_->configure_read(handle_, caf::io::receive_policy::at_least(1));
    });
  }
  void write(const std::string& bytes) {
    run_in(broker_, [&] { write_in(self_, handle_, bytes); });
  }
  /// Returns when the broker has handled all messages that were sent to it before.
  void settle() {
    run_in(broker_, [] {});
  }

 private:
  nodes::system_config config_;
  caf::actor_system system_{config_};
  caf::io::connection_handle handle_;
  caf::io::broker* self_ = nullptr;  // used in the broker
  caf::actor broker_ = system_.middleman().spawn_broker([this](caf::io::broker* self) -> caf::behavior {
    self_ = self;
    return {
      [](const posted_work& what) { (*what.run)(); },
      [this](const caf::io::new_data_msg& came) { on_data(std::string(came.buf.begin(), came.buf.end())); },
      [](const caf::io::connection_closed_msg&) {},
    };
  });
};

}  // namespace troupe::test
