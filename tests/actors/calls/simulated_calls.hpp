// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/actors/calls/calls_made.hpp>
#include <troupe/actors/calls/calls_taken.hpp>

#include "simulation/event_queue.hpp"
#include "simulation/simulated_network.hpp"

namespace troupe::test {

/// Nodes in a simulation that call each other. What the calls do is drawn: they compute, call other nodes, also the node that called them,
/// and answer. On each node calls_made and calls_taken decide, as they do on a node of troupe; this class is the network, the clock, the
/// workers and the functions around them.
class simulated_calls {
 public:
  struct settings {
    std::size_t nodes = 3;
    std::uint64_t seed = 1;
    std::int64_t longest_ns = 2'000'000'000;  // the deadlines of calls go up to here
    calls::calls_taken::limits limits = {
      .workers = 2, .most_idle = 2, .most_begun = 3, .waiting_bytes = 20'000, .answer_bytes = 10'000};
  };
  struct counts {
    std::size_t made = 0;
    std::size_t answered = 0;
    std::size_t failed = 0;
    std::size_t deepest = 0;
    std::size_t workers = 0;  // of one node, at the most
    std::int64_t last_end_ns = 0;
  };

  explicit simulated_calls(const settings& how);

  /// A call of no other call.
  void call_from(std::size_t node);
  void release_context(std::size_t node, std::uint64_t number);
  void restart(std::size_t node);
  void freeze(std::size_t node);
  void thaw(std::size_t node);
  void pass(std::int64_t ns) { clock_.run_until(clock_.now_ns() + ns); }
  /// All ways are mended, and all nodes are awake. Lets all happen that can still happen.
  void settle();

  simulation::simulated_network& network() noexcept { return network_; }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(network_.below(static_cast<std::uint64_t>(limit)));
  }
  const counts& counted() const noexcept { return counts_; }
  /// What is wrong; empty if nothing is.
  const std::string& wrong() const noexcept { return wrong_; }
  /// The same, after settle(): also what is left where all should be over.
  std::string wrong_at_end() const;

 private:
  using made = calls::calls_made;
  using taken = calls::calls_taken;

  struct own_call {
    std::size_t to;
    made::made facts;
    std::int64_t deadline_ns;
    std::optional<taken::number> of;  // the call that this one is made for
    bool in_fragments = false;
    bool has_ended = false;
  };
  struct foreign_call {
    std::size_t from;
    node_id caller;
    made::made facts;  // as the caller knows the call
    std::int64_t deadline_ns;
    std::int64_t nested = 0;  // calls that it still makes, one after another
    taken::worker on = 0;
    bool is_blocked = false;
  };
  struct node {
    node_id id;
    made calls;
    taken served;
    std::map<made::number, own_call> own;
    std::map<taken::number, foreign_call> foreign;
    std::map<std::size_t, node_id> up;
    std::map<taken::worker, bool> workers;  // whether they are idle
    taken::worker series = 0;               // on which calls run one after another
    taken::number runs_in_series = 0;
    std::deque<taken::number> behind;  // calls of the series that do not run yet
    std::map<std::tuple<object_id, std::uint32_t, node_id>, made::number>
      order;  // the last call on an object, of a depth and a caller
    std::uint64_t last = 0;
  };

  node& at(std::size_t which) { return *nodes_[which]; }
  void begin(std::size_t which);
  void connect(std::size_t a, std::size_t b);
  void note_up(std::size_t at, std::size_t other);
  void note_down(std::size_t at, std::size_t other);
  void make_call(std::size_t from, std::uint32_t depth, std::int64_t deadline_ns, std::optional<taken::number> of);
  void send(std::size_t from, std::size_t to, node_id whom, simulation::simulated_network::action then);
  void on(std::size_t where, const made::event& what);
  void on(std::size_t where, const taken::event& what);
  void carry_out(std::size_t where, const made::meet& what);
  void carry_out(std::size_t where, const made::limit& what);
  void carry_out(std::size_t where, const made::ship& what);
  void carry_out(std::size_t where, const made::ask& what);
  void carry_out(std::size_t where, const made::finish& what);
  void carry_out(std::size_t where, const made::fail& what);
  void carry_out(std::size_t, const made::call_off&) {}
  void carry_out(std::size_t where, const made::forget& what);
  void carry_out(std::size_t where, const taken::refuse_excess_bytes& what);
  void carry_out(std::size_t where, const taken::limit& what);
  void carry_out(std::size_t where, const taken::go_on& what) { look_at(where, what.call); }
  void carry_out(std::size_t where, const taken::start& what);
  void carry_out(std::size_t where, const taken::refuse& what);
  void carry_out(std::size_t where, const taken::let_go& what);
  void carry_out(std::size_t where, const taken::tick_later& what);
  void carry_out(std::size_t where, const taken::ask_taken& what);
  void came(std::size_t where, foreign_call call);
  void look_at(std::size_t where, taken::number which);
  void leave_series(std::size_t where);
  void compute(std::size_t where, taken::number which);
  void go_on(std::size_t where, taken::number which, bool is_well);
  void end(std::size_t where, made::number which, bool is_well);
  void answer(std::size_t where, taken::number which, bool is_well);
  void expect(bool is_so, std::size_t where, const std::string& what);

  settings settings_;
  simulation::event_queue clock_;
  simulation::simulated_network network_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::vector<std::int64_t> awake_ns_;  // when the node was frozen last
  std::uint64_t lives_ = 0;
  counts counts_;
  std::string wrong_;
};

}  // namespace troupe::test
