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

#include <troupe/actors/support/blocking_observer.hpp>
#include <troupe/engine/recordings.hpp>
#include <troupe/engine/surroundings.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/wire_format.hpp>

namespace troupe::passes {

struct burst;

}  // namespace troupe::passes

namespace troupe::support {

/// Facts about the call that a thread runs. The thread hands them on to the calls that it makes itself.
struct call_bounds {
  std::size_t depth = 0;      // how many calls, one inside the other, led to this work
  std::int64_t until_ns = 0;  // steady clock: when the caller gives up; 0: never
  bool for_peer = false;      // whether a call of another node led to this work
  bool autocast = false;      // whether the thread's calls carry its autocast: true if the call it runs came with autocast
};

/// The context and the place in its program to which the calls of a thread belong. A thread has one current scope; the end of a
/// nested scope restores the outer one. The threads on which functions of a pass run share the scope of the thread of the pass
/// (SR-1).
class call_scope : engine::surroundings {
 public:
  /// `here`: the node for which the thread works. `context`, `place`: those to which the calls of the thread belong. `calls`:
  /// in anomaly mode, a text about the calls that led to this work. `bounds`: those of the outer scope if not given. `format`:
  /// the wire format of the calls that the thread makes.
  call_scope(node_id here, context_id context, program_place place, std::string calls = {},
             std::optional<call_bounds> bounds = std::nullopt, wire_format format = wire_format::exact)
      : outer_(current_scope()),
        here_(here),
        context_(context),
        format_(format),
        bounds_(bounds.value_or(current_bounds())),
        recording_(engine::recording_from_now(std::move(place))) {
    recording_.calls = std::move(calls);
    current = this;
  }
  /// A scope in which no context is open.
  call_scope() : call_scope({}, {}, {}) {}
  /// Scopes of a thread may end in any order.
  ~call_scope() {
    if (current == this) {
      current = outer_;
      return;
    }
    auto* each = static_cast<call_scope*>(current);
    while (each != nullptr && each->outer_ != this) each = each->outer_;
    if (each != nullptr) each->outer_ = outer_;
  }
  /// Whether this thread made the scope. libtorch never gives the number of a thread to another thread.
  bool is_of_this_thread() const noexcept { return recording_.thread == engine::recording_from_now({}).thread; }
  /// Ends a scope that another thread made. After that the other thread is in the outer scope.
  static void leave_behind(std::unique_ptr<call_scope> scope) {
    scope.release()->is_left_ = true;  // not freed: the other thread may be reading it
  }
  /// Marks the scope as one in which functions of a pass run. `place_now` says where in the program the running function is.
  void run_pass(const passes::burst& of, std::function<program_place()> place_now) {
    burst_ = &of;
    observer_ = blocking_observer::current();
    place_now_ = std::move(place_now);
  }
  /// Whether functions of a pass run in this thread's scope.
  static bool runs_pass() noexcept { return current_scope() != nullptr && current_scope()->burst_ != nullptr; }
  /// The burst of a pass of the context that runs in this thread's scope, or in an outer scope. Null if there is none.
  static const passes::burst* burst_of(context_id context) noexcept {
    const auto* found = around([&](const call_scope& each) { return each.burst_ != nullptr && each.context_ == context; });
    return found == nullptr ? nullptr : found->burst_;
  }
  /// Whether functions of a pass of the node run in this thread's scope, or in an outer scope.
  static bool runs_pass_of(node_id here) noexcept {
    return around([&](const call_scope& each) { return each.burst_ != nullptr && each.here_ == here; }) != nullptr;
  }
  /// The observer to call when this thread waits: the observer of this thread, or of the thread for which this thread runs
  /// functions of a pass. Null if there is none.
  static blocking_observer* observer() noexcept {
    if (auto* own = blocking_observer::current()) return own;
    const auto* found = around([](const call_scope& each) { return each.burst_ != nullptr; });
    return found == nullptr ? nullptr : found->observer_;
  }

  /// The node for which the thread works; empty if the scope does not say.
  static node_id here() noexcept { return current_scope() == nullptr ? node_id{} : current_scope()->here_; }

  static context_id context() noexcept { return current_scope() == nullptr ? context_id{} : current_scope()->context_; }

  static wire_format format() noexcept { return current_scope() == nullptr ? wire_format::exact : current_scope()->format_; }

  static call_bounds current_bounds() noexcept { return current_scope() == nullptr ? call_bounds{} : current_scope()->bounds_; }

  /// The place of the next call. Each use returns another place.
  static program_place next_place() { return current_scope() == nullptr ? program_place{} : current_scope()->next(); }

  /// The functions that the innermost scope has recorded so far. None in a pass, which keeps its own recordings, and none on a
  /// thread that shares the scope of another thread.
  static engine::recording recorded() {
    auto result = current_scope() == nullptr ? engine::recording{} : current_scope()->recording_;
    const auto now = engine::recording_from_now({});
    result.to = now.from;
    if (runs_pass() || result.thread != now.thread) result.from = result.to;
    return result;
  }

  /// The recording that began with this scope.
  const engine::recording& recording() const noexcept { return recording_; }

  /// The text about the calls that led to this work; empty unless in anomaly mode.
  static const std::string& calls() noexcept {
    static const std::string none;
    return current_scope() == nullptr ? none : current_scope()->recording_.calls;
  }

  program_place next() {
    auto result = place_now_ ? place_now_() : recording_.place;
    result.insert(result.end(), {engine::recording_from_now({}).from, ++made_});
    return result;
  }

 private:
  /// The innermost scope, from the current one outwards, for which `is_it` is true; null if there is none.
  template <class Predicate>
  static call_scope* around(const Predicate& is_it) noexcept {
    auto* each = static_cast<call_scope*>(current);
    while (each != nullptr && (each->is_left_ || !is_it(*each))) each = each->outer_;
    return each;
  }
  static call_scope* current_scope() noexcept {
    return around([](const call_scope&) { return true; });
  }

  call_scope* outer_;
  node_id here_;
  context_id context_;
  wire_format format_;
  call_bounds bounds_;
  engine::recording recording_;
  std::atomic<std::uint64_t> made_{0};  // another thread may call context::backward
  std::atomic<bool> is_left_{false};
  const passes::burst* burst_ = nullptr;
  blocking_observer* observer_ = nullptr;  // of the thread that runs the burst
  std::function<program_place()> place_now_;
};

}  // namespace troupe::support
