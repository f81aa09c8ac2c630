// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/single_process_turns.hpp"

#include <memory>

#include "apps/charlm/corpus.hpp"

namespace troupe::apps::charlm {

namespace {

constexpr int turns_after_the_first = 4;

}  // namespace

void single_process_turns::begin(const run_state& state, const corpus& data, int threads, c10::Device device) {
  if (!measures()) return;
  process_ = std::make_unique<single_process>(state.shape, state.how, data, device);
  process_->compare(threads, first_half(), stop_);
  every_ = (1 - state.fraction()) / (turns_after_the_first + 1);
  next_ = state.fraction() + every_;
}

bool single_process_turns::run_due(double fraction) {
  if (!process_ || fraction < next_) return false;
  while (next_ <= fraction) next_ += every_;
  process_->train(seconds_ / 2 / turns_after_the_first, stop_);
  return true;
}

single_process_speed single_process_turns::speed() const { return process_ ? process_->speed() : single_process_speed{}; }

}  // namespace troupe::apps::charlm
