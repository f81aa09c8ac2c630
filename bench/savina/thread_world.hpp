// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "any_message.hpp"
#include "outcome.hpp"

namespace troupe::bench::savina {

/// A program whose actors are threads, each with a queue that blocks. See caf_world for what a program is.
template <class Program>
class thread_world {
 public:
  class mailbox;
  using ref = std::shared_ptr<mailbox>;

  struct envelope {
    ref sender;
    any_message<Program, ref> message;
  };

  class mailbox {
   public:
    void put(envelope what) {
      {
        const std::lock_guard lock(mutex_);
        if (is_closed_) return;
        queue_.push_back(std::move(what));
        if (queue_.size() > 1) return;  // who takes all has been woken, or will look again
      }
      filled_.notify_one();
    }
    /// Waits until there is an envelope. `into` gets all, in their order. Pre: `into` is empty.
    void take_all(std::vector<envelope>& into) {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [&] { return !queue_.empty(); });
      into.swap(queue_);
    }
    void close() {
      std::vector<envelope> unread;  // released after the lock: it may hold the last handle of a mailbox
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      unread.swap(queue_);
    }

   private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::vector<envelope> queue_;
    bool is_closed_ = false;
  };

  /// The actor that handles a message, as the handler sees it.
  class self {
   public:
    using ref = thread_world::ref;

    self(thread_world& in, ref own) : in_(in), own_(std::move(own)) {}

    const ref& me() const { return own_; }
    const ref& sender() const { return sender_; }
    template <class Message>
    void send(const ref& to, Message message) {
      to->put({own_, std::move(message)});
    }
    template <template <class> class Actor, class... Arguments>
    ref spawn(Arguments&&... arguments) {
      return in_.spawn<Actor>(std::forward<Arguments>(arguments)...);
    }
    /// No message is handled after this one.
    void end() { is_over_ = true; }

   private:
    friend class thread_world;

    thread_world& in_;
    ref own_;
    ref sender_;
    bool is_over_ = false;
  };

  thread_world() = default;
  /// Waits until each actor has ended.
  ~thread_world() {
    for (auto& each : threads_) each.join();
  }
  thread_world(const thread_world&) = delete;
  thread_world& operator=(const thread_world&) = delete;

  template <class Message>
  void send(const ref& to, Message message) {
    to->put({nullptr, std::move(message)});
  }
  template <template <class> class Actor, class... Arguments>
  ref spawn(Arguments&&... arguments) {
    auto own = std::make_shared<mailbox>();
    std::thread thread([this, own, actor = Actor<self>{std::forward<Arguments>(arguments)...}]() mutable {
      self me(*this, own);
      std::vector<envelope> taken;
      while (!me.is_over_) {
        own->take_all(taken);
        for (auto& each : taken) {
          if (me.is_over_) break;
          me.sender_ = std::move(each.sender);
          std::visit([&](const auto& message) { handle(actor, me, message); }, each.message);
        }
        taken.clear();
      }
      own->close();
    });
    const std::lock_guard lock(mutex_);
    threads_.push_back(std::move(thread));
    return own;
  }

  static result wait(outcome& found) { return found.wait(); }

 private:
  template <class Actor, class Message>
  static void handle(Actor& actor, self& me, const Message& message) {
    if constexpr (requires { actor.on(me, message); }) actor.on(me, message);
  }

  std::mutex mutex_;
  std::list<std::thread> threads_;
};

}  // namespace troupe::bench::savina
