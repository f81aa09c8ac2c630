// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/stage_turns_test.cpp
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/actors/future.hpp>
#include <troupe/messages/mutex.hpp>

#include "apps/charlm/model.hpp"
#include "apps/charlm/schedule.hpp"

namespace troupe::apps::charlm {

/// What a stage may hold at a time.
struct stage_limits {
  std::int64_t forwards;       // micro-batches between the beginning of their forward and the end of their backward for inputs
  std::int64_t micro_batches;  // micro-batches between the beginning of their forward and the end of their backward
};
constexpr stage_limits limits_of(schedule how, stage_position position) {
  if (how == schedule::dataflow || how == schedule::gpipe) return {INT64_MAX, INT64_MAX};
  return {position.count - position.index, position.count};
}

/// In the order in which waiting work gets its turn.
enum class stage_work : std::uint8_t { backward, forward, weights };

/// Decides which work a stage does next. Work asks for a turn and waits as for a future. So other calls and bursts of the node
/// go on meanwhile.
///   TG-1  a stage does one piece of work at a time.
///   TG-2  of the work that waits, a backward for inputs comes first, then the forward of the lowest micro-batch if the stage
///         may hold another one, then gradients of weights, all of a micro-batch unless other work comes. Gradients of several
///         weights of a micro-batch may wait at once.
///   TG-3  a stage holds at most as many micro-batches as limits_of() says.
///   TG-4  a micro-batch that ends early, for example with its graph after an error, gives back its turn and its place.
class stage_turns {
 public:
  class micro_batch;

  stage_turns(schedule how, stage_position position) : limits_(limits_of(how, position)) {}

  /// What the stage has done since the last call of take().
  struct figures {
    work_times times;
    std::int64_t most_held = 0;
  };
  figures take();

 private:
  struct waiter {
    stage_work what;
    micro_batch* of;
    future<done> turn;
  };

  std::vector<waiter>::iterator next() TROUPE_REQUIRES(mutex_);
  void begin_next() TROUPE_REQUIRES(mutex_);
  void begin(std::vector<waiter>::iterator first) TROUPE_REQUIRES(mutex_);

  const stage_limits limits_;
  checked_mutex mutex_;
  std::vector<waiter> waiting_ TROUPE_GUARDED_BY(mutex_);
  micro_batch* works_for_ TROUPE_GUARDED_BY(mutex_) = nullptr;
  stage_work work_ TROUPE_GUARDED_BY(mutex_){};          // while works_for_ is set
  std::int64_t forwards_ TROUPE_GUARDED_BY(mutex_) = 0;  // as in stage_limits
  std::int64_t held_ TROUPE_GUARDED_BY(mutex_) = 0;      // as stage_limits::micro_batches
  std::int64_t most_held_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::int64_t turn_begun_ TROUPE_GUARDED_BY(mutex_) = 0;  // nanoseconds of steady_ns()
  std::int64_t first_begun_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::int64_t last_ended_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::array<std::int64_t, 3> spent_ TROUPE_GUARDED_BY(mutex_){};  // nanoseconds, by work
};

/// A micro-batch in a stage, from its forward to the end of its backward. The functions of its graph share it.
class stage_turns::micro_batch {
 public:
  micro_batch(std::shared_ptr<stage_turns> of, std::int64_t number) : of_(std::move(of)), number_(number) {}
  ~micro_batch();
  micro_batch(const micro_batch&) = delete;
  micro_batch& operator=(const micro_batch&) = delete;

  /// Is complete when the work has its turn, which end() ends.
  future<done> ask(stage_work what);
  /// Ends the turn of this work. Does nothing if the work has none.
  void end(stage_work what);
  /// To be called in the forward, once for each turn for weights that the backward will need.
  void expect_weights();

 private:
  friend class stage_turns;

  const std::shared_ptr<stage_turns> of_;
  const std::int64_t number_;
  // Used with the mutex of stage_turns alone.
  bool has_begun_ = false;
  bool has_inputs_ = false;  // the backward for inputs has ended
  bool keeps_turn_ = false;  // between the weights of two layers
  int parts_ = 1;            // turns of the backward that are still to end
};

}  // namespace troupe::apps::charlm
