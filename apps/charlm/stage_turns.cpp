// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/stage_turns.hpp"

#include <algorithm>
#include <tuple>

#include <troupe/actors/support/steady_clock.hpp>

namespace troupe::apps::charlm {

namespace {

constexpr auto index_of(stage_work what) { return static_cast<std::size_t>(what); }

}  // namespace

/// The waiting work that comes next; the end if there is none that may begin. Weights of the micro-batch that works come before
/// those of others.
std::vector<stage_turns::waiter>::iterator stage_turns::next() {
  const bool may_hold = forwards_ < limits_.forwards && held_ < limits_.micro_batches;
  const auto order = [may_hold, works_for = works_for_](const waiter& each) {
    return std::tuple(each.what == stage_work::forward && !may_hold, each.what, each.of != works_for, each.of->number_);
  };
  const auto first =
    std::min_element(waiting_.begin(), waiting_.end(), [&](const waiter& a, const waiter& b) { return order(a) < order(b); });
  return first != waiting_.end() && std::get<0>(order(*first)) ? waiting_.end() : first;
}

/// Gives the next turn, if the stage does not work.
void stage_turns::begin_next() {
  if (works_for_ == nullptr) begin(next());
}

void stage_turns::begin(std::vector<waiter>::iterator first) {
  if (first == waiting_.end()) {
    works_for_ = nullptr;
    return;
  }
  works_for_ = first->of;
  work_ = first->what;
  if (work_ == stage_work::forward) {
    works_for_->has_begun_ = true;
    ++forwards_;
    most_held_ = std::max(most_held_, ++held_);
  }
  turn_begun_ = support::steady_ns();
  if (first_begun_ == 0) first_begun_ = turn_begun_;
  auto turn = std::move(first->turn);
  waiting_.erase(first);
  turn.set_value({});
}

stage_turns::figures stage_turns::take() {
  const checked_lock lock(mutex_);
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  const figures result{{.forward = seconds(spent_[index_of(stage_work::forward)]),
                        .backward = seconds(spent_[index_of(stage_work::backward)]),
                        .weights = seconds(spent_[index_of(stage_work::weights)]),
                        .span = seconds(last_ended_ - first_begun_)},
                       most_held_};
  spent_ = {};
  first_begun_ = last_ended_ = 0;
  most_held_ = held_;
  return result;
}

stage_turns::micro_batch::~micro_batch() {
  const checked_lock lock(of_->mutex_);
  std::erase_if(of_->waiting_, [&](const waiter& each) { return each.of == this; });
  if (has_begun_ && !has_inputs_) --of_->forwards_;
  if (has_begun_ && parts_ > 0) --of_->held_;
  if (of_->works_for_ == this) of_->works_for_ = nullptr;
  of_->begin_next();
}

future<done> stage_turns::micro_batch::ask(stage_work what) {
  future<done> turn;
  const checked_lock lock(of_->mutex_);
  if (std::exchange(keeps_turn_, false)) {
    turn.set_value({});
    return turn;
  }
  of_->waiting_.push_back({what, this, turn});
  of_->begin_next();
  return turn;
}

void stage_turns::micro_batch::end(stage_work what) {
  const checked_lock lock(of_->mutex_);
  if (of_->works_for_ != this || of_->work_ != what || keeps_turn_) return;
  of_->last_ended_ = support::steady_ns();
  of_->spent_.at(index_of(what)) += of_->last_ended_ - of_->turn_begun_;
  if (what == stage_work::backward) {
    has_inputs_ = true;
    --of_->forwards_;
  }
  if (what != stage_work::forward && --parts_ == 0) --of_->held_;
  // Another micro-batch's weights would take a thread that has to wake.
  const auto next = of_->next();
  const bool has_rest = what == stage_work::weights && parts_ > 0;
  keeps_turn_ = has_rest && (next == of_->waiting_.end() || (next->what == stage_work::weights && next->of != this));
  if (keeps_turn_)
    of_->turn_begun_ = of_->last_ended_;
  else
    of_->begin(next);
}

void stage_turns::micro_batch::expect_weights() {
  const checked_lock lock(of_->mutex_);
  ++parts_;
}

}  // namespace troupe::apps::charlm
