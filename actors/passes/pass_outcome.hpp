// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <troupe/actors/future.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::passes {

/// Decides once how a pass that this node started ends. A thread whose burst ends with the whole weight of the pass may decide
/// that the pass has succeeded. Otherwise the graph task decides, for success or failure.
///   PO-1  after succeed() has returned true, claim() returns false, and the other way round.
///   PO-2  the log has a line for the end of the pass before the user's future is complete.
class pass_outcome {
 public:
  using used_services = uses<with_log, with_self, with_directory>;

  pass_outcome(used_services here, contracts::context_record_ptr record, pass_number pass, future<done> result);

  /// To be called by the thread that ran the last burst. True if the pass has succeeded: the context record then knows it, and
  /// the caller has to call tell().
  bool succeed() {
    auto open = state::open;
    if (!state_.compare_exchange_strong(open, state::succeeded)) return false;
    record_->end(pass_, true);
    return true;
  }
  /// Reserves the decision for the graph task. False if the pass has succeeded already.
  bool claim() {
    auto open = state::open;
    return state_.compare_exchange_strong(open, state::taken_over) || open == state::taken_over;
  }
  /// Tells the context record what the graph task decided. To be called before the future is completed: the user may start
  /// another pass at once.
  void end(bool succeeded) { record_->end(pass_, succeeded); }
  /// Tells the user that the pass is complete, or why it failed. Only the first call has an effect.
  void tell();
  void fail(const error& reason);

  future<done>& result() noexcept { return result_; }

 private:
  enum class state { open, succeeded, taken_over };

  std::string description() const;
  std::int64_t age_ns() const;

  const used_services here_;
  std::atomic<state> state_ = state::open;
  std::atomic<bool> told_ = false;
  contracts::context_record_ptr record_;
  pass_number pass_;
  std::int64_t begin_ns_;  // 0 if the log needs no times
  future<done> result_;
};

}  // namespace troupe::passes
