// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/desk_actor_test.cpp
#pragma once

#include <utility>

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_message.hpp>
#include <caf/message_id.hpp>

#include <troupe/actors/support/desk_actor.hpp>

namespace troupe::support {

/// Where the answer to a request goes. A promise of CAF belongs to the thread of its actor. An answer_way may be used by one
/// thread after another.
///   AY-1  the first deliver() sends the answer, later ones do nothing. After the first deliver() the way holds no actor.
class answer_way {
 public:
  answer_way() = default;
  /// The way for the message that the actor handles now. The actor has to make a promise for the message afterwards, so that
  /// CAF does not answer the message itself.
  explicit answer_way(const desk_actor& self) : asked_(self.ctrl()) {
    const auto& came = *self.get()->current_mailbox_element();
    if (came.mid.is_request()) to_ = came.sender;
    which_ = came.mid.response_id();
  }

  /// The actor that was asked; null if the answer has left.
  const caf::strong_actor_ptr& asked() const noexcept { return asked_; }

  /// False if nobody waits for the answer any more.
  explicit operator bool() const noexcept { return to_ != nullptr; }

  template <class Answer>
  void deliver(Answer answer) {
    const auto asked = std::exchange(asked_, nullptr);
    if (const auto to = std::exchange(to_, nullptr)) to->enqueue(asked, which_, caf::make_message(std::move(answer)), nullptr);
  }

 private:
  caf::strong_actor_ptr asked_;
  caf::strong_actor_ptr to_;
  caf::message_id which_;
};

}  // namespace troupe::support
