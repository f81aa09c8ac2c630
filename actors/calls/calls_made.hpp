// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include <boost/container/small_vector.hpp>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// Decides when each call that a node makes leaves, and how the call ends. Sends no message and reads no clock.
///
///   a call    waits for                                                  next
///   meets     a connection to its node                                   met: lines_up or ships
///   lines_up  its own tensors, which still come from a device, and       tensors_came: ships
///             those of earlier calls on its object
///   ships     its tensors to leave ahead of its message                  shipped: asks, is_held, or is_ready
///   is_ready  earlier calls on its object that line up or ship           shipped (an earlier call): asks, or is_held
///   is_held   the end of an earlier call of its depth on its object,     answered or failed (that call): asks
///             whose message leaves in fragments: messages that leave
///             later could overtake it
///   asks      the answer                                                 answered: the end
///   is_over   its tensors to leave, although the call has failed         shipped: they are called off
///
///   In each state but the last, `failed`, `context_closed` and `node_down` end the call.
///
///   LC-1  calls on one object leave in the order in which they were made. A call on no object waits only for its own tensors.
///   LC-2  a call that has ended delays no other call.
///   LC-3  a call leaves once, and only after its tensors have been copied from their devices.
///   LC-4  a call ends once: with its answer, or with one failure. After the end calls_made stores nothing of the call, except
///         while its tensors still leave.
///   LC-5  calls to one node that is not connected yet begin in the order in which they were made.
///   LC-6  a call waits for the end of another call only if both have the same depth. A deeper call never waits for the end of
///         a call that is less deep, because that call may itself wait for the deeper one.
class calls_made {
 public:
  using number = std::uint64_t;  // of a call; a later call has a higher one

  struct of_call {
    number call;
  };
  struct made {
    number call;
    node_id to;
    context_id context;
    object_id object;
    std::uint32_t depth = 0;
    bool is_late = false;  // whether its tensors still come from a device
    bool is_up = true;     // whether its node is connected
  };
  struct met : of_call {};
  struct tensors_came : of_call {};
  struct shipped {
    number call;
    bool in_fragments = false;  // whether the message of the call will leave in fragments
  };
  struct answered : of_call {};
  struct failed {  // no connection, tensors not copied, no answer in time, or an error as the answer
    number call;
    error why;
  };
  struct context_closed {
    context_id context;
    error why;
  };
  struct node_down {
    node_id who;
    error why;
  };
  using event = std::variant<made, met, tensors_came, shipped, answered, failed, context_closed, node_down>;

  struct meet : of_call {};   // met or failed follows
  struct limit : of_call {};  // fails the call at its deadline, unless the call has left by then
  struct ship : of_call {};   // shipped follows: at once if no tensor leaves ahead. Otherwise the call also gets a limit
  struct ask : of_call {};    // answered or failed follows, at the deadline at the latest
  struct finish : of_call {};
  struct fail {
    number call;
    error why;
  };
  struct call_off : of_call {};  // makes the receiver drop the tensors that have left ahead
  struct forget : of_call {};
  using effect = std::variant<meet, limit, ship, ask, finish, fail, call_off, forget>;
  /// The effects of an event, in the order in which the desk has to carry them out.
  using effects = boost::container::small_vector<effect, 3>;

  /// An event of a call that has ended changes nothing.
  effects on(const event& what);
  /// Whether no call is stored.
  bool is_empty() const noexcept {
    return calls_.empty() && in_contexts_.empty() && meeting_.empty() && lines_.empty() && bulks_.empty();
  }

 private:
  enum class state { meets, lines_up, ships, is_ready, is_held, asks, is_over };
  struct call {
    made facts;
    state is;
    bool in_fragments = false;
  };
  struct line {              // the calls on an object
    std::set<number> calls;  // calls that have begun, and have neither asked nor ended
    number last_shipped = 0;
  };
  struct bulk {         // the calls on an object at one depth
    number holder = 0;  // the call that leaves in fragments and holds the others; 0: this call has ended
    std::set<number> held;
  };
  using bulk_key = std::pair<object_id, std::uint32_t>;
  using bulk_keys = boost::container::small_vector<bulk_key, 1>;

  void take(const made& what);
  void take(const met& what);
  void take(const tensors_came& what);
  void take(const shipped& what);
  void take(const answered& what);
  void take(const failed& what);
  void take(const context_closed& what);
  void take(const node_down& what);

  call* find(number which, state expected);
  void begin(number which, call& it);
  void ship_in_order(const object_id& object);
  void ask_in_order(const object_id& object);
  void ask_or_hold(number which);
  void end(std::span<const number> those, const error* why);
  void take_out(number which, const error* why, bulk_keys& left);
  void release(const bulk_key& left);

  effects* out_ = nullptr;  // the effects of the event that on() handles
  std::map<number, call> calls_;
  std::set<std::pair<context_id, number>> in_contexts_;
  std::map<node_id, std::set<number>> meeting_;
  std::map<object_id, line> lines_;
  std::map<bulk_key, bulk> bulks_;
};

}  // namespace troupe::calls
