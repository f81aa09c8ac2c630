// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/courier.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <tuple>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::services {

namespace {

class parcel_line {
 public:
  bool empty() const noexcept { return waiting_.empty(); }

  void add(parcel_ptr next) {
    if (waiting_.empty()) begin_ns_ = support::steady_ns();
    waiting_.push_back(std::move(next));
  }

  /// Sends parcels until one is not ready.
  void send_ready() {
    while (!waiting_.empty()) {
      std::exception_ptr failure;
      try {
        if (!waiting_.front()->what.ready()) return;
      } catch (...) {
        failure = std::current_exception();
      }
      send_front(failure);
      begin_ns_ = support::steady_ns();
    }
  }

  void send_rest(const std::exception_ptr& failure) {
    while (!waiting_.empty()) send_front(failure);
  }

  /// Lets some time pass before the device is asked again.
  void pause() const {
    constexpr std::int64_t patience_ns = 50'000;
    constexpr std::int64_t longest_ns = 500'000;
    const auto waited_ns = support::steady_ns() - begin_ns_;
    if (waited_ns < patience_ns) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(waited_ns / 8, longest_ns)));
  }

 private:
  void send_front(const std::exception_ptr& failure) {
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next->send(failure);
  }

  std::deque<parcel_ptr> waiting_;
  std::int64_t begin_ns_ = 0;  // since when the first parcel is waited for
};

}  // namespace

std::exception_ptr too_late() {
  return std::make_exception_ptr(error(errc::stopping, "the node stopped before the device had made the elements"));
}

courier_actor spawn_courier(caf::actor_system& system) {
  auto make_handlers = [](const caf::actor& self) {
    auto line = std::make_shared<parcel_line>();
    auto closed = std::make_shared<bool>(false);
    return std::tuple{[=](parcel_ptr& next) {
                        if (*closed) return next->send(too_late());
                        if (line->empty()) caf::anon_send(self, support::tick_atom::value);
                        line->add(std::exchange(next, nullptr));
                      },
                      [=](support::tick_atom) {
                        line->send_ready();
                        if (line->empty()) return;
                        line->pause();
                        caf::anon_send(self, support::tick_atom::value);
                      },
                      [=](support::close_atom, std::int64_t until_ns) {
                        for (line->send_ready(); !line->empty() && support::steady_ns() < until_ns; line->send_ready())
                          line->pause();
                        *closed = true;
                        line->send_rest(too_late());
                      }};
  };
  return caf::actor_cast<courier_actor>(
    support::spawn_handlers_with_thread(system, "troupe.courier", std::move(make_handlers)));
}

}  // namespace troupe::services
