// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "any_message.hpp"
#include "outcome.hpp"

namespace troupe::bench::savina {

/// A program whose actors run on the thread that waits, in the order of their messages. One message gets lost, or none: tests see that
/// the check of a program notices. See caf_world for what a program is.
template <class Program>
class losing_world {
 public:
  struct mailbox;
  using ref = std::shared_ptr<mailbox>;
  using message = any_message<Program, ref>;
  struct mailbox {
    std::function<void(const message&, const ref& sender)> handle;
    bool is_over = false;
  };

  /// The actor that handles a message, as the handler sees it.
  class self {
   public:
    using ref = losing_world::ref;

    self(losing_world& in, ref own, ref sender) : in_(in), own_(std::move(own)), sender_(std::move(sender)) {}

    const ref& me() const { return own_; }
    const ref& sender() const { return sender_; }
    template <class Message>
    void send(const ref& to, Message what) {
      in_.put(to, std::move(what), own_);
    }
    template <template <class> class Actor, class... Arguments>
    ref spawn(Arguments&&... arguments) {
      return in_.spawn<Actor>(std::forward<Arguments>(arguments)...);
    }
    void end() { own_->is_over = true; }

   private:
    losing_world& in_;
    ref own_;
    ref sender_;
  };

  explicit losing_world(std::size_t lost) : lost_(lost) {}
  ~losing_world() {
    for (auto& each : actors_) each->handle = {};  // actors know each other
  }
  losing_world(const losing_world&) = delete;
  losing_world& operator=(const losing_world&) = delete;

  template <class Message>
  void send(const ref& to, Message what) {
    put(to, std::move(what), nullptr);
  }
  template <template <class> class Actor, class... Arguments>
  ref spawn(Arguments&&... arguments) {
    const auto made = actors_.emplace_back(std::make_shared<mailbox>());
    made->handle = [this, own = std::weak_ptr(made), actor = Actor<self>{std::forward<Arguments>(arguments)...}](
                     const message& what, const ref& sender) mutable {
      self me(*this, own.lock(), sender);
      std::visit(
        [&](const auto& each) {
          if constexpr (requires { actor.on(me, each); }) actor.on(me, each);
        },
        what);
    };
    return made;
  }
  /// Hands out messages until there is none, or `most_messages` were handed out. Throws std::runtime_error if there is no result then.
  result wait(outcome& found) {
    for (std::size_t i = 0; i < most_messages && !open_.empty(); ++i) {
      const auto next = std::move(open_.front());
      open_.pop_front();
      next();
    }
    return found.wait(std::chrono::seconds(0));
  }

 private:
  static constexpr std::size_t most_messages = 200'000;  // philosophers who are denied their forks ask for ever

  void put(const ref& to, message what, const ref& sender) {
    if (++sent_ == lost_) return;
    open_.push_back([=, what = std::move(what)] {
      if (!to->is_over) to->handle(what, sender);
    });
  }

  std::size_t lost_;
  std::size_t sent_ = 0;
  std::deque<std::function<void()>> open_;
  std::deque<ref> actors_;
};

}  // namespace troupe::bench::savina
