// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/error.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/messages/messages.hpp>

namespace troupe::nodes {

/// The questions and answers of a survey: for a client that reaches only one node, this node asks other members for their
/// status.
struct status_survey {
  static constexpr std::size_t most_at_once = 64;
  static constexpr std::size_t most_rounds = 4;

  struct answer {
    std::optional<node_status> status;
    caf::error problem;  // why `status` is empty
  };

  caf::actor gateway;  // of the node that asks the members
  std::vector<node_id> members;
  std::chrono::nanoseconds limit{0};  // for all questions together
  std::vector<answer> answers;        // filled by the actor: one for each of `members`

  /// The limit of each question. If more than `most_at_once` members have to be asked, the rounds share the time.
  std::chrono::nanoseconds limit_of_each() const {
    const auto rounds = (members.size() + most_at_once - 1) / most_at_once;
    return limit / static_cast<std::int64_t>(std::clamp<std::size_t>(rounds, 1, most_rounds));
  }
};
using status_survey_ptr = std::shared_ptr<status_survey>;

/// Asks the questions of a survey and fills in the answers.
///   SY-1  each answer lets the next question leave, in any order of answers. So while fewer than `most_at_once` members do not
///         answer, all others are asked.
///   SY-2  a question may take limit_of_each(), and no longer than the survey. So a survey ends in time, whichever members do
///         not answer. A member for which no time is left is not asked, and its problem says so.
using status_survey_actor = caf::typed_actor<caf::replies_to<status_survey_ptr>::with<status_survey_ptr>>;

status_survey_actor spawn_status_survey(caf::actor_system& system);

}  // namespace troupe::nodes

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::nodes::status_survey_ptr)
