// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>

#include "actors/membership/simulated_cluster.hpp"
#include "pass_model.hpp"

namespace troupe::simulation {

/// Lets things go wrong in a simulated cluster, as drawn from a generator: processes end and are started again, nodes freeze, links
/// are cut in one or both directions, parted, slow, and connections break. Each fault ends by itself. Knows who was in trouble.
///   SF-1  last_trouble() of two nodes is now while something is wrong with one of them or between them.
class soak_faults {
 public:
  soak_faults(test::simulated_cluster& all, std::mt19937_64& random);

  /// Told before the process of a node ends.
  std::function<void(std::size_t node, bool says_farewell)> on_end;
  /// Told of each fault, for people.
  std::function<void(const std::string&)> on_fault;

  /// Draws one fault, which begins now. Nothing begins where the same thing is wrong already.
  void go_wrong();
  /// Ends all faults, and starts the nodes that have ended.
  void heal();

  /// When something was wrong last with one of the two nodes or between them.
  std::int64_t last_trouble(std::size_t a, std::size_t b) const;
  /// When something was wrong last with the node or between it and any other.
  std::int64_t last_trouble(std::size_t node) const;
  /// Whether the node was frozen since a time.
  bool was_frozen(std::size_t node, std::int64_t since_ns) const {
    return network_.is_frozen(node) || thawed_.at(node) >= since_ns;
  }
  bool is_slow(std::size_t a, std::size_t b) const { return slow_[a * count_ + b]; }
  std::uint64_t begun() const noexcept { return begun_; }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::int64_t draw_length_ns();
  void note(std::size_t a, std::size_t b);
  void note(std::size_t node);
  void note_separation();
  void end_later(const std::function<void()>& end);
  void begin(const std::string& what);
  void end_process(std::size_t node, bool says_farewell);
  void set_slow(std::size_t a, std::size_t b, std::int64_t factor);
  std::int64_t& stamp(std::size_t a, std::size_t b) { return stamps_[a * count_ + b]; }

  test::simulated_cluster& all_;
  simulated_network& network_;
  std::mt19937_64& random_;
  std::size_t count_;
  std::vector<std::int64_t> stamps_;  // when something went wrong or right between two nodes
  std::vector<bool> slow_;
  std::vector<std::int64_t> thawed_;
  std::uint64_t healed_ = 0;  // counts heal(): faults that began before end no more
  std::uint64_t begun_ = 0;
};

/// A broken promise, or what a run has done until its end.
struct soak_report {
  std::uint64_t seed = 0;
  double hours = 0;
  std::uint64_t events = 0;  // of a broken promise: the number of the event after which it was broken
  std::uint64_t faults = 0;
  std::uint64_t passes = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t by_trouble = 0;   // passes that failed because something went wrong
  std::uint64_t by_deadline = 0;  // those of them that their deadline has ended
  std::uint64_t splits = 0;       // how often a part of the cluster knew no address of the rest any more, and joined again
  std::string wrong;              // the promise that is broken; empty if none is
  std::vector<std::string> last;  // what happened before, for people

  soak_report& operator+=(const soak_report& other);
  std::string text() const;
};

/// A simulated cluster of 3 to 7 nodes in which things go wrong and passes run, all of it drawn from one seed. Rounds of faults
/// alternate with calm times. After each event the promises are checked:
///   SK-1  those of engine/protocol, in each pass that runs (pass_model::wrong), and those of the news about members (SC-1).
///   SK-2  a pass ends once, and by its deadline and the time for its abort, unless its initiator has ended. A pass none of whose
///         nodes was in trouble succeeds if none of its functions throws and fast mode finds no unused send. No pass is ended by its
///         deadline, unless its initiator was frozen: this network loses a message only with a connection, and that is noticed.
///   SK-3  a node that runs is not told to have ended, and a node is unreachable or gone for another one only after trouble.
///         A node whose process has ended is soon not up for those whose connections to it ended. A simulated second has few events: no message goes round and round.
///   SK-4  after a calm time all nodes are up for each other with equal bonds, nobody else is a member, and no node holds a part of
///         a context that was released. If a part of the cluster knows no address of the rest any more, its nodes join again
///         first: all that one node knew may have said farewell, and nobody dials those.
///   SK-5  one seed gives one run. A run that ends at an event is the begin of a longer one.
class soak {
 public:
  explicit soak(std::uint64_t seed);
  ~soak();

  /// For tests: weight is taken from the passes that are chosen.
  void spoil(std::function<bool(const pass_model&)> chosen) { is_spoilt_ = std::move(chosen); }

  /// Runs for simulated hours, or until the event of this number (0: no such event), or until a promise is broken.
  soak_report run(double hours, std::uint64_t until_event = 0);

 private:
  static constexpr std::int64_t ms = 1'000'000;
  static constexpr std::int64_t second = 1'000'000'000;
  static constexpr std::int64_t calm_ns = 170 * second;
  static constexpr std::int64_t quiet_after_ns = 150 * second;  // of a calm time: from then on nothing changes

  struct running_pass {
    std::shared_ptr<pass_model> model;
    std::vector<std::size_t> at;
    std::vector<node_id> ids;
    std::int64_t begun_ns;
    std::int64_t deadline_ns;
    bool may_fail;  // a function throws, or fast mode finds an unused send
    bool is_over = false;
    bool is_orphan = false;  // the process of its initiator has ended
  };

  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::int64_t seconds(std::size_t least, std::size_t most);
  /// Lets events happen until a time. Returns false if the run is over.
  bool let_pass(std::int64_t until_ns);
  void check();
  void expect(bool holds, const std::string& promise);
  void note(std::string what);
  void start_passes();
  void start_pass();
  void pass_ended(running_pass& which);
  void check_deadline(const std::weak_ptr<running_pass>& which);
  void process_ended(std::size_t node, bool says_farewell);
  void expect_known(std::size_t node, std::int64_t after_ns);
  void changed(std::size_t at, const membership::peer_change& news);
  void check_news(std::size_t at, std::size_t who, const membership::peer_change& news);
  bool settle();
  bool is_split() const;
  bool knows(std::size_t at, std::size_t who) const;
  void check_agreement();
  bool are_peers(std::size_t a, std::size_t b) const;
  std::size_t number_of(node_id id) const;
  bool was_in_trouble(const running_pass& which, std::int64_t since_ns) const;

  std::uint64_t seed_;
  std::mt19937_64 random_;
  test::simulated_cluster::settings how_;
  test::simulated_cluster all_;
  soak_faults faults_;
  std::vector<std::shared_ptr<running_pass>> passes_;
  std::vector<std::int64_t> awake_since_;
  bool is_calm_ = true;
  std::int64_t calm_since_ns_ = 0;
  std::int64_t second_ = 0;          // the number of this second
  std::uint64_t before_second_ = 0;  // events before it
  bool starts_passes_ = true;
  std::uint64_t until_event_ = 0;
  std::function<bool(const pass_model&)> is_spoilt_;
  soak_report report_;
  std::deque<std::string> last_;
};

}  // namespace troupe::simulation
