// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe {

class company;

/// Elements to read out of another process's memory.
struct incoming_offer {
  tensor_offer offer;
  memory_mark given;
  caf::response_promise promise;  // delivered by `peer` only
  std::optional<error> failure;
};
using incoming_offer_ptr = std::shared_ptr<incoming_offer>;

/// The thread that reads offered elements, one offer after another, so that the network thread copies none of them.
///   MR-1  every offer goes back to `peer`, read or with a failure.
using memory_reader_actor = caf::typed_actor<caf::reacts_to<incoming_offer_ptr>>;

/// Throws std::system_error where the system gives no thread.
memory_reader_actor spawn_memory_reader(company& here);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::incoming_offer_ptr)
