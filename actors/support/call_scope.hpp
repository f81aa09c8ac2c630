// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <troupe/engine/recordings.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/wire_format.hpp>

namespace troupe::support {

/// What a thread that runs a call of another node hands on to the calls that it makes itself.
struct call_bounds {
  std::size_t depth = 0;      // how many calls led here
  std::int64_t until_ns = 0;  // steady clock: when the caller gives up; 0: never
  bool for_peer = false;      // whether a call of another node led here
  bool autocast = false;      // whether the autocast of the thread goes with its calls, because a call has brought it
};

/// The context and the place in its program that the calls of a thread belong to. A thread has one current scope; the end of a
/// nested scope restores the outer one.
class call_scope {
 public:
  /// `calls`: in anomaly mode, a text about the calls that led to this work. `bounds`: those of the outer scope if not given.
  /// `format`: of the calls that the thread makes.
  call_scope(context_id context, program_place place, std::string calls = {}, std::optional<call_bounds> bounds = std::nullopt,
             wire_format format = wire_format::exact)
      : outer_(current_),
        context_(context),
        format_(format),
        bounds_(bounds.value_or(current_bounds())),
        recording_(engine::recording_from_now(std::move(place))) {
    recording_.calls = std::move(calls);
    current_ = this;
  }
  ~call_scope() { current_ = outer_; }
  /// Whether the scope is the current scope of this thread, or one around it. A thread may have the id of a thread that has ended, so ids
  /// do not tell.
  bool is_of_this_thread() const noexcept {
    const auto* each = current_;
    while (each != nullptr && each != this) each = each->outer_;
    return each == this;
  }
  /// Ends a scope that is none of this thread. The thread that made the scope keeps it as its current scope,
  /// without a context.
  static void leave_behind(std::unique_ptr<call_scope> scope) {
    scope->context_ = {};
    static_cast<void>(scope.release());
  }
  /// Marks the scope as one in which functions of a pass run. `place_now` says where in the program the running function is.
  void run_pass(std::function<program_place()> place_now) { place_now_ = std::move(place_now); }
  /// Whether functions of a pass run in this thread's scope.
  static bool runs_pass() noexcept { return current_ != nullptr && current_->place_now_; }

  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

  static context_id context() noexcept { return current_ == nullptr ? context_id{} : current_->context_; }

  /// The wire format of the thread's calls.
  static wire_format format() noexcept { return current_ == nullptr ? wire_format::exact : current_->format_; }

  static call_bounds current_bounds() noexcept { return current_ == nullptr ? call_bounds{} : current_->bounds_; }

  /// The place of the next call. Each use returns another place.
  static program_place next_place() { return current_ == nullptr ? program_place{} : current_->next(); }

  /// What the innermost scope has recorded so far. Nothing in a pass, which notes what it records itself.
  static engine::recording recorded() {
    auto result = current_ == nullptr ? engine::recording{} : current_->recording_;
    result.to = engine::recording_from_now({}).from;
    if (runs_pass()) result.from = result.to;
    return result;
  }

  /// What this scope records from its beginning on.
  const engine::recording& recording() const noexcept { return recording_; }

  /// The text about the calls that led to this work; empty unless in anomaly mode.
  static const std::string& calls() noexcept {
    static const std::string none;
    return current_ == nullptr ? none : current_->recording_.calls;
  }

  program_place next() {
    auto result = place_now_ ? place_now_() : recording_.place;
    result.insert(result.end(), {engine::recording_from_now({}).from, ++made_});
    return result;
  }

 private:
  static inline thread_local call_scope* current_ = nullptr;
  call_scope* outer_;
  context_id context_;
  wire_format format_;
  call_bounds bounds_;
  engine::recording recording_;
  std::atomic<std::uint64_t> made_{0};  // context::backward may come from another thread
  std::function<program_place()> place_now_;
};

}  // namespace troupe::support
