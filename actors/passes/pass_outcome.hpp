// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include <troupe/actors/future.hpp>
#include <troupe/actors/passes/context_record.hpp>

namespace troupe::passes {

/// Decides once how a pass that was started on this node ends. The thread whose burst ends with all of the pass's weight in its purse
/// may decide for success. Otherwise the control plane decides, for success or failure.
///   PO-1  after succeed() has returned true, claim() returns false, and the other way round.
class pass_outcome {
 public:
  pass_outcome(contracts::context_record_ptr record, pass_number pass, future<done> result)
      : record_(std::move(record)), pass_(pass), result_(std::move(result)) {}

  /// Says that this thread ran the last burst. True: the context's record knows of the success, and the caller has to call tell().
  bool succeed() {
    auto open = state::open;
    if (!state_.compare_exchange_strong(open, state::succeeded)) return false;
    record_->end(pass_, true);
    return true;
  }
  /// From now on the control plane decides. False if the pass has succeeded.
  bool claim() {
    auto open = state::open;
    return state_.compare_exchange_strong(open, state::taken_over) || open == state::taken_over;
  }
  void tell() { result_.set_value(done{}); }
  /// Says what the control plane decided. The context's record knows before the user does: the user may start another pass at once.
  void end(bool succeeded) { record_->end(pass_, succeeded); }

  future<done>& result() noexcept { return result_; }

 private:
  enum class state { open, succeeded, taken_over };
  std::atomic<state> state_ = state::open;
  contracts::context_record_ptr record_;
  pass_number pass_;
  future<done> result_;
};

}  // namespace troupe::passes
