// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <type_traits>
#include <utility>

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/detail/profiled_send.hpp>
#include <caf/duration.hpp>
#include <caf/response_handle.hpp>
#include <caf/response_type.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/support/deadline_clock.hpp>

namespace troupe::support {

/// The actor that a desk belongs to. A desk holds the handlers of one room for the messages of its actor. The desk is compiled
/// once, because a broker and an actor of CAF's scheduler look the same through desk_actor. A `desk_actor` is a pointer: cheap
/// to copy, and valid while the actor lives.
///   DK-1  request(), send(), delayed_send(), delegate() and response_promise() do what CAF's functions of the same names do
///         for the actor.
class desk_actor {
 public:
  desk_actor(caf::scheduled_actor* actor) noexcept : actor_(actor) {}

  desk_actor* operator->() noexcept { return this; }
  const desk_actor* operator->() const noexcept { return this; }

  template <class Handle, class... Values>
  void send(const Handle& to, Values&&... message) const {
    caf::detail::profiled_send(actor_, ctrl(), to, caf::make_message_id(), {}, context(), std::forward<Values>(message)...);
  }

  /// Sends the message after `delay`, by the clock of CAF.
  template <class Handle, class... Values>
  void delayed_send(const Handle& to, caf::timespan delay, Values&&... message) const {
    auto& clock = system().clock();
    caf::detail::profiled_send(actor_, ctrl(), to, clock, clock.now() + delay, caf::make_message_id(),
                               std::forward<Values>(message)...);
  }

  /// Sets an alarm that sends this actor the message. The alarm does not keep the actor alive.
  template <class... Values>
  deadline_clock::alarm send_later(deadline_clock& clock, std::chrono::nanoseconds delay, Values... message) const {
    return clock.set(delay, [weak = caf::weak_actor_ptr{ctrl()}, message...] {
      if (auto strong = weak.lock()) caf::anon_send(caf::actor_cast<caf::actor>(strong), message...);
    });
  }

  /// As `request` of CAF's actors. (CAF's typed_actor_view has a `request` that does not compile.)
  /// `limit`: a duration of CAF or of std::chrono.
  template <class Handle, class Limit, class... Values>
  auto request(const Handle& to, const Limit& limit, Values&&... question) const {
    using answer = caf::response_type_t<typename Handle::signatures,
                                        typename caf::detail::implicit_conversions<typename std::decay<Values>::type>::type...>;
    const auto id = actor_->new_request_id(caf::message_priority::normal);
    if (to) {
      caf::detail::profiled_send(actor_, ctrl(), to, id, {}, context(), std::forward<Values>(question)...);
      actor_->request_response_timeout(caf::duration{limit}, id);
    } else {
      actor_->eq_impl(id.response_id(), ctrl(), context(), caf::make_error(caf::sec::invalid_argument));
    }
    return caf::response_handle<caf::scheduled_actor, answer, false>(id.response_id(), actor_);
  }

  template <class Result>
  caf::typed_response_promise<Result> response_promise() const {
    return actor_->make_response_promise<caf::typed_response_promise<Result>>();
  }
  caf::response_promise response_promise() const { return actor_->make_response_promise(); }

  template <class Handle, class... Values>
  auto delegate(const Handle& to, Values&&... message) const {
    return actor_->delegate(to, std::forward<Values>(message)...);
  }

  template <class Handle>
  void monitor(const Handle& other) const {
    actor_->monitor(other);
  }
  void demonitor(const caf::actor_addr& other) const { actor_->demonitor(other); }
  void quit(caf::exit_reason why = caf::exit_reason::normal) const { actor_->quit(why); }

  const caf::strong_actor_ptr& current_sender() const { return actor_->current_sender(); }
  caf::actor_system& system() const { return actor_->system(); }
  caf::execution_unit* context() const { return actor_->context(); }
  caf::actor_control_block* ctrl() const { return actor_->ctrl(); }
  caf::scheduled_actor* get() const noexcept { return actor_; }
  /// A handle of this type to the actor. As with caf::actor_cast, nothing checks the interface.
  template <class Handle>
  Handle handle() const {
    return caf::actor_cast<Handle>(ctrl());
  }

 private:
  caf::scheduled_actor* actor_;
};

}  // namespace troupe::support
