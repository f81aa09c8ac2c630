// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <tuple>
#include <utility>

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <caf/serializer.hpp>

#include "outcome.hpp"

namespace troupe::bench::savina {

/// How actors run: on the threads of the scheduler, with a thread each, or as brokers, which share the thread of the network.
enum class spawn_mode { event_based, detached, brokers };

/// Found for each type of this namespace, by argument-dependent lookup.
template <class Message>
void stays_in_its_process(const Message&);

/// A program whose actors are CAF's. `Program::messages<ref>` lists the messages, where
/// `ref` is a handle of an actor. An actor of a program has a function `on(self, message)` for
/// each message that it handles.
template <class Program>
class caf_world {
 public:
  using ref = caf::actor;

  /// The actor that handles a message, as the handler sees it.
  template <class Base>
  class self {
   public:
    using ref = caf::actor;

    self(Base& who, spawn_mode how) : who_(who), how_(how) {}

    ref me() const { return caf::actor_cast<caf::actor>(&who_); }
    ref sender() const { return caf::actor_cast<caf::actor>(who_.current_sender()); }
    template <class Message>
    void send(const ref& to, Message message) {
      who_.send(to, std::move(message));
    }
    template <template <class> class Actor, class... Arguments>
    ref spawn(Arguments&&... arguments) {
      return spawn_in<Actor>(who_.system(), how_, std::forward<Arguments>(arguments)...);
    }
    /// No message is handled after this one.
    void end() { who_.quit(); }

   private:
    Base& who_;
    spawn_mode how_;
  };

  caf_world(caf::actor_system& in, spawn_mode how) : in_(in), how_(how) {}

  template <class Message>
  void send(const ref& to, Message message) {
    caf::anon_send(to, std::move(message));
  }
  template <template <class> class Actor, class... Arguments>
  ref spawn(Arguments&&... arguments) {
    return spawn_in<Actor>(in_, how_, std::forward<Arguments>(arguments)...);
  }

  static result wait(outcome& found) { return found.wait(); }

 private:
  template <class Actor, class Base>
  class host final : public Base {
   public:
    template <class... Arguments>
    explicit host(caf::actor_config& config, spawn_mode how, Arguments&&... arguments)
        : Base(config), how_(how), actor_(Actor{std::forward<Arguments>(arguments)...}) {}

   protected:
    caf::behavior make_behavior() override {
      return std::apply([this](const auto&... message) { return behavior_of(std::tuple_cat(this->handlers_of(message)...)); },
                        typename Program::template messages<ref>{});
    }
    void on_exit() override { actor_.reset(); }  // actors that hold each other's handles would stay in memory

   private:
    template <class Message>
    auto handlers_of(const Message&) {
      if constexpr (requires(Actor & actor, self<Base> & me, const Message& message) { actor.on(me, message); })
        return std::tuple{[this](const Message& message) {
          self<Base> me(*this, how_);
          actor_->on(me, message);
        }};
      else
        return std::tuple{};
    }
    template <class Handlers>
    static caf::behavior behavior_of(const Handlers& handlers) {
      return std::apply([](auto... each) { return caf::behavior{each...}; }, handlers);
    }

    spawn_mode how_;
    std::optional<Actor> actor_;
  };

  template <template <class> class Actor, class... Arguments>
  static ref spawn_in(caf::actor_system& in, spawn_mode how, Arguments&&... arguments) {
    using actor = host<Actor<self<caf::event_based_actor>>, caf::event_based_actor>;
    switch (how) {
      case spawn_mode::event_based:
        return in.spawn<actor>(how, std::forward<Arguments>(arguments)...);
      case spawn_mode::detached:
        return in.spawn<actor, caf::detached>(how, std::forward<Arguments>(arguments)...);
      case spawn_mode::brokers:
        break;
    }
    caf::actor_config config(&in.middleman().backend());
    return in.spawn_class<host<Actor<self<caf::io::broker>>, caf::io::broker>, caf::no_spawn_options>(
      config, how, std::forward<Arguments>(arguments)...);
  }

  caf::actor_system& in_;
  spawn_mode how_;
};

}  // namespace troupe::bench::savina

/// Messages of programs that run in one process alone have no `inspect`.
template <class Message>
requires requires(const Message& message) {
  stays_in_its_process(message);
} &&
  (!requires(caf::serializer & by, Message& message) { inspect(by, message); }) struct caf::allowed_unsafe_message_type<Message>
    : std::true_type {
};
