// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/courier.hpp>

#include <memory>
#include <tuple>
#include <utility>

#include <caf/send.hpp>

#include <troupe/actors/services/device_wait.hpp>
#include <troupe/actors/services/parcel_line.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::services {

namespace {

void pause(const parcel_line& line) { pause_after(line.waited_ns(support::steady_ns())); }

}  // namespace

std::exception_ptr too_late() {
  return std::make_exception_ptr(error(errc::stopping, "the node stopped before the device had made the elements"));
}

courier_actor spawn_courier(caf::actor_system& system) {
  auto make_handlers = [](const courier_actor& self) {
    sleep_precisely();
    auto line = std::make_shared<parcel_line>();
    auto closed = std::make_shared<bool>(false);
    return std::tuple{[=](parcel_ptr& next) {
                        if (*closed) return next->send(too_late());
                        if (line->empty()) caf::anon_send(self, support::tick_atom::value);
                        line->add(std::exchange(next, nullptr), support::steady_ns());
                      },
                      [=](support::tick_atom) {
                        line->send_ready(support::steady_ns());
                        if (line->empty()) return;
                        pause(*line);
                        caf::anon_send(self, support::tick_atom::value);
                      },
                      [=](support::close_atom, std::int64_t until_ns) {
                        while (!line->empty() && support::steady_ns() < until_ns)
                          if (!line->send_one_if_ready(support::steady_ns())) pause(*line);
                        *closed = true;
                        line->send_rest(too_late());
                      }};
  };
  return support::spawn_handlers_with_thread<courier_actor>(system, "troupe.courier", std::move(make_handlers));
}

}  // namespace troupe::services
