// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/status_survey.hpp>

#include <cstdint>
#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/support/atoms.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

namespace {

/// A survey that is under way.
struct running_survey {
  status_survey_ptr survey;
  caf::typed_response_promise<status_survey_ptr> promise;
  caf::actor_clock::time_point until;
  std::size_t next = 0;
  std::size_t open = 0;
};

void ask(status_survey_actor::pointer self, const std::shared_ptr<running_survey>& all);

void ask_one(status_survey_actor::pointer self, const std::shared_ptr<running_survey>& all, std::size_t index) {
  const auto& survey = *all->survey;
  const auto each = survey.limit_of_each();
  const std::chrono::nanoseconds left = all->until - self->clock().now();
  auto& answer = all->survey->answers[index];
  if (left < each / 4) {
    answer.problem =
      make_error(errc::deadline_passed, "it was not asked: nodes that do not answer took the time of " +
                                          support::seconds_text(std::chrono::ceil<std::chrono::milliseconds>(survey.limit)) +
                                          "; raise the deadline");
    return;
  }
  const auto limit = std::min(left, each);
  // The gateway gets less time for its question to the member. So the answer of the gateway, which names the member, comes
  // within `limit`.
  const auto limit_there = std::int64_t{limit.count() / 10 * 8};
  const auto over = [self, all] {
    --all->open;
    ask(self, all);
  };
  ++all->open;
  self->request(survey.gateway, caf::duration{limit}, support::status_atom::value, survey.members[index].value, limit_there)
    .then(
      [=](node_status& status) {
        all->survey->answers[index].status = std::move(status);
        over();
      },
      [=](caf::error& problem) {
        all->survey->answers[index].problem = std::move(problem);
        over();
      });
}

void ask(status_survey_actor::pointer self, const std::shared_ptr<running_survey>& all) {
  while (all->open < status_survey::most_at_once && all->next < all->survey->members.size()) ask_one(self, all, all->next++);
  if (all->open == 0 && all->promise.pending()) all->promise.deliver(all->survey);
}

status_survey_actor::behavior_type make_survey(status_survey_actor::pointer self) {
  return {
    [self](status_survey_ptr& survey) {
      auto all = std::make_shared<running_survey>();
      all->survey = std::move(survey);
      all->survey->answers.resize(all->survey->members.size());
      all->promise = self->make_response_promise<status_survey_ptr>();
      all->until = self->clock().now() + all->survey->limit;
      ask(self, all);
      return all->promise;
    },
  };
}

}  // namespace

status_survey_actor spawn_status_survey(caf::actor_system& system) { return system.spawn(make_survey); }

}  // namespace troupe::nodes
