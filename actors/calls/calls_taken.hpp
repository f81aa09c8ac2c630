// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

#include <boost/container/small_vector.hpp>

#include <troupe/actors/calls/answers_under_way.hpp>
#include <troupe/actors/calls/call_pool.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// For the calls that a node has accepted from other nodes: decides which calls wait and which worker runs which call, and
/// counts the answers under way. Sends no message and reads no clock. call_pool decides which call starts next, and
/// answers_under_way which caller has credit for an answer.
///
///   a call      is, or waits for                                 next
///   has_come    looked at by the desk                            held: waits. ready: runs, or is_queued. dropped: the end
///   waits       its context, or gradients of earlier passes      wait_over: has_come. refused: the end
///   is_queued   a worker                                         a worker is free: runs. refused: the end
///   runs        run, or its result still comes from a device     answered: answers. answer_left: the end. no_worker: the end
///   answers     credit for its answer on the way to the caller   answer_left, or node_down: the end
///
///   HW-1  an event of one call takes a time that grows with the logarithm of the number of calls. The event context_closed
///         takes this time for each call of the context. So a peer that makes many calls does not slow the other peers.
///   HW-2  calls of a context are refused in the order in which they came.
///   HW-3  a call that waits or is queued is refused when its caller goes down, its context is released or its deadline passes.
///         A call that runs goes on.
///   HW-4  a call ends once: refused, or with its answer. After the end calls_taken stores nothing of the call.
///   HW-5  a short call that waits for a worker may join the *series*: the calls that one thread runs one after another. The
///         series has one worker slot, and ends with the last of its calls. It has at most `most_in_series` calls at a time. No
///         call joins while answers are large, or after a call has left the series.
///   QL-1  the calls of one caller that wait have at most `waiting_bytes` bytes. If no call of a caller waits, its next call is
///         taken whatever its size.
class calls_taken {
 public:
  using number = std::uint64_t;  // of a call; a later call has a higher one
  using worker = std::uint64_t;
  static constexpr std::size_t most_in_series = 256;
  static constexpr std::uint64_t largest_in_series = std::uint64_t{64} << 10;  // bytes of an answer
  struct limits {
    std::size_t workers = 1;  // see call_pool
    std::size_t most_idle = 0;
    std::size_t most_begun = call_pool<worker, number>::no_bound;
    std::uint64_t waiting_bytes = std::numeric_limits<std::uint64_t>::max();  // of a caller
    std::uint64_t answer_bytes = std::numeric_limits<std::uint64_t>::max();   // see answers_under_way
  };
  explicit calls_taken(const limits& given)
      : limit_(given.waiting_bytes), pool_(given.workers, given.most_idle, given.most_begun), answers_(given.answer_bytes) {}

  struct of_call {
    number call;
  };
  struct of_refusal {
    number call;
    error why;
  };
  struct came {
    number call;
    node_id caller;
    context_id context;
    std::size_t depth = 0;
    std::uint64_t bytes = 0;  // that count for QL-1
  };
  struct held : of_call {};
  struct wait_over : of_call {};
  struct ready : of_call {
    bool is_short = false;  // may join a series
  };
  struct dropped : of_call {};       // the desk has refused the call, before or after a wait
  struct refused : of_refusal {};    // no effect on a call that runs
  struct no_worker : of_refusal {};  // no worker can be made for the call
  struct begins_series {             // the call, which has a worker slot, runs on a thread that runs others behind it
    number call;
    worker on;
  };
  struct leaves_series : of_call {};  // the call has not run, because the calls before it take too long
  struct answered {                   // the answer leaves, and its bytes count
    number call;
    std::uint64_t bytes;
  };
  struct answer_left : of_call {};
  struct answers_taken {  // the caller has answered a question
    node_id caller;
    std::uint64_t bytes;
  };
  struct is_free {
    worker who;
    std::size_t depth = 0;  // of the call that the worker ran
  };
  struct is_blocked {};  // a call that runs begins to wait for another call
  struct is_resumed {};
  struct tick {};
  struct context_closed {
    context_id context;
    error why;
  };
  struct node_down {
    node_id who;
    error why;
  };
  using event = std::variant<came, held, wait_over, ready, dropped, refused, no_worker, begins_series, leaves_series, answered,
                             answer_left, answers_taken, is_free, is_blocked, is_resumed, tick, context_closed, node_down>;

  struct refuse_excess_bytes : of_call {};  // refuses the call: too many bytes of its caller wait
  struct limit : of_call {};                // refuses the call at its deadline, unless the call has started by then
  struct go_on : of_call {};                // the wait of the call is over
  struct start {                            // the events is_free and answer_left follow, or no_worker
    number call;
    std::optional<worker> on;  // none: on a new worker
    bool joins_series = false;
  };
  struct refuse : of_refusal {};
  struct let_go {
    worker who;
  };
  struct tick_later {};  // the event tick follows
  struct ask_taken {     // asks the caller whether it has taken its answers. answers_taken follows, unless the caller goes
                         // down
    node_id caller;
    std::uint64_t bytes;
  };
  using effect = std::variant<refuse_excess_bytes, limit, go_on, start, refuse, let_go, tick_later, ask_taken>;
  /// The effects of an event, in the order in which the desk has to carry them out.
  using effects = boost::container::small_vector<effect, 2>;

  /// An event of a call that has ended changes nothing.
  effects on(const event& what);

  /// The number of calls that have not started.
  std::size_t waiting() const noexcept { return waiting_.size(); }
  bool has_series() const noexcept { return series_.has_value(); }
  /// Bytes of the calls of the caller that have not started.
  std::uint64_t bytes_of(node_id caller) const;
  std::uint64_t most_bytes() const noexcept { return limit_; }
  /// Whether no call is stored.
  bool is_empty() const noexcept { return calls_.empty() && waiting_.empty() && bytes_.empty(); }

 private:
  enum class state { has_come, waits, is_queued, runs, answers };
  struct call {
    came facts;
    state is = state::has_come;
    bool is_short = false;
    bool in_series = false;
    std::uint64_t number_in_pool = 0;
    std::uint64_t answer_bytes = 0;  // bytes of the answer that count (AU-1)
  };

  void take(const came& what);
  void take(const held& what);
  void take(const wait_over& what);
  void take(const ready& what);
  void take(const dropped& what);
  void take(const refused& what) { refuse_waiting(what.call, what.why); }
  void take(const no_worker& what);
  void take(const begins_series& what);
  void take(const leaves_series& what);
  void take(const answered& what);
  void take(const answer_left& what);
  void take(const answers_taken& what);
  void take(const is_free& what);
  void take(const is_blocked& what);
  void take(const is_resumed& what);
  void take(const tick& what);
  void take(const context_closed& what);
  void take(const node_down& what);

  call* find(number which, state expected);
  bool may_wait(node_id caller, std::uint64_t bytes) const;
  void wait(call& it, state as);
  void end_wait(const call& it);
  void start_calls();
  void start_call(number which, std::optional<worker> on, bool joins_series);
  void end_in_series(std::size_t depth);
  void refuse_waiting(number which, const error& why);

  std::uint64_t limit_;
  effects* out_ = nullptr;  // the effects of the event that on() handles
  std::unordered_map<number, call> calls_;
  std::set<std::pair<context_id, number>> waiting_;  // calls that wait or are queued
  std::unordered_map<node_id, std::uint64_t> bytes_;
  call_pool<worker, number> pool_;
  answers_under_way answers_;
  struct series {
    worker on;
    std::size_t calls = 1;  // that have not ended
    bool is_open = true;
  };
  std::optional<series> series_;
  std::uint64_t last_answer_ = 0;  // bytes
  bool ticks_ = false;             // whether a tick will come
};

}  // namespace troupe::calls
