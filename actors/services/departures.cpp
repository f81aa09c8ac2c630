// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/departures.hpp>

#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/support/logger_release.hpp>

namespace troupe::services {

namespace {

// How long finish() waits for a courier beyond its time. A courier asks its device without waiting, so this time passes only if
// a call of the driver never returns.
constexpr std::chrono::seconds patience_with_driver{1};

}  // namespace

departures::departures(caf::actor_system& system, guard from_strangers) : system_(system), guard_(std::move(from_strangers)) {}

void departures::post(devices::staged what, std::function<void()> finish_contents,
                      std::function<void(std::exception_ptr failure)> send) {
  auto only_step = [finish_contents = std::move(finish_contents)] {
    finish_contents();
    return devices::staged();
  };
  post_in_steps(std::move(what), std::move(only_step), std::move(send));
}

void departures::post_in_steps(devices::staged what, std::function<devices::staged()> next_step,
                               std::function<void(std::exception_ptr failure)> send_finished) {
  auto send = [this, next_step = std::move(next_step), send_finished = std::move(send_finished),
               sending = sending_](std::exception_ptr failure) {
    if (failure) return send_finished(failure);
    const std::shared_lock inside(sending->mutex);
    try {
      if (sending->is_over) std::rethrow_exception(too_late());
      if (auto more = next_step(); !more.events.empty()) return post_in_steps(std::move(more), next_step, send_finished);
    } catch (...) {
      failure = std::current_exception();
    }
    send_finished(failure);
  };
  const line to{what.events.front()->device_index(), false};
  if (const auto failure = hand_over(to, std::move(what), send)) send(failure);
}

void departures::run_for_arrival(c10::Device device, std::function<void()> work) {
  auto run = [work = std::move(work), sending = sending_](const std::exception_ptr& failure) {
    const std::shared_lock inside(sending->mutex);
    if (failure || sending->is_over) return;
    try {
      work();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the move of the tensor fails later
    }
  };
  hand_over(line{device.index(), true}, {}, std::move(run));
}

/// Hands the parcel to a courier. Returns why there is none.
std::exception_ptr departures::hand_over(line to, devices::staged what, std::function<void(std::exception_ptr failure)> send) {
  const checked_lock lock(mutex_);
  if (finished_) return too_late();
  try {
    auto& [who, hold] = couriers_[to];
    if (!who) {
      who = spawn_courier(system_);
      hold = guard_(who.id());
    }
    caf::anon_send(who, std::make_shared<parcel>(parcel{std::move(what), std::move(send)}));
    return nullptr;
  } catch (const std::system_error&) {
    return std::current_exception();
  }
}

void departures::finish(std::chrono::steady_clock::time_point until) {
  checked_unique_lock lock(mutex_);
  finished_ = true;
  const auto all = std::exchange(couriers_, {});
  lock.unlock();
  const support::logger_release lets_go;
  caf::scoped_actor self{system_};
  const std::int64_t until_ns = until.time_since_epoch() / std::chrono::nanoseconds(1);
  const auto left = until - std::chrono::steady_clock::now() + patience_with_driver;
  const auto close = [&](const courier_actor& who) { return self->request(who, left, support::close_atom::value, until_ns); };
  std::vector<decltype(close(courier_actor()))> answers;  // all couriers are asked before the first answer is awaited
  for (const auto& [device, courier] : all)
    if (courier.who) answers.push_back(close(courier.who));
  for (auto& each : answers) each.receive([] {}, [](const caf::error&) {});
  for (const auto& [device, courier] : all)
    if (courier.who) self->send_exit(courier.who, caf::exit_reason::user_shutdown);
  sending_->is_over = true;
  const std::unique_lock nobody_sends(sending_->mutex);
}

}  // namespace troupe::services
