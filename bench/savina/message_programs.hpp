// SPDX-License-Identifier: BSD-3-Clause
// The programs that run over several processes too. Their messages can be written to the network.
#pragma once

#include <optional>

#include "programs.hpp"

namespace troupe::bench::savina {

using clock = std::chrono::steady_clock;

/// Microseconds of messages and their answers, if they are asked for.
struct trip_times {
  bool are_asked;
  std::vector<double> all_us{};
  clock::time_point begun{};

  void leave() {
    if (are_asked) begun = clock::now();
  }
  void arrive() {
    if (are_asked) all_us.push_back(std::chrono::duration<double, std::micro>(clock::now() - begun).count());
  }
};

struct ping_pong {
  struct ping {
    friend auto inspect(auto& by, ping&) { return by(); }
  };
  struct pong {
    friend auto inspect(auto& by, pong&) { return by(); }
  };
  template <class>
  using messages = std::tuple<begin, stop, ping, pong>;

  template <class Self>
  struct ponger {
    void on(Self& self, const ping&) { self.send(self.sender(), pong{}); }
    void on(Self& self, const stop&) { self.end(); }
  };

  template <class Self>
  struct pinger {
    outcome found;
    std::int64_t messages;
    typename Self::ref to;
    trip_times trips;
    std::int64_t answers = 0;
    void ask(Self& self) {
      trips.leave();
      self.send(to, ping{});
    }
    void on(Self& self, const begin&) { ask(self); }
    void on(Self& self, const pong&) {
      trips.arrive();
      if (++answers < messages) return ask(self);
      self.send(to, stop{});
      found.set(answers, std::move(trips.all_us));
      self.end();
    }
  };

  static std::int64_t actors(const values&) { return 2; }
  static std::int64_t count(const values& of) { return of["messages"]; }
  static std::int64_t expected(const values& of) { return of["messages"]; }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    const auto to = in.template spawn<ponger>();
    in.send(in.template spawn<pinger>(found, of["messages"], to, trip_times{of.has("trips")}), begin{});
    return in.wait(found);
  }
};

struct thread_ring {
  struct token {
    std::int64_t left;
    friend auto inspect(auto& by, token& x) { return by(x.left); }
  };
  template <class Ref>
  using messages = std::tuple<introduce<Ref>, stop, token>;

  /// Sends the token on. The last holder tells its number.
  template <class Self>
  struct member {
    outcome found;
    std::int64_t number;
    typename Self::ref next{};
    bool has_next = false;
    std::optional<token> early{};  // over processes, the token may overtake the introduction
    void on(Self& self, const introduce<typename Self::ref>& who) {
      next = who.all.front();
      has_next = true;
      if (early) on(self, *early);
    }
    void on(Self& self, const token& came) {
      if (!has_next) {
        early = came;
        return;
      }
      if (came.left > 0) return self.send(next, token{came.left - 1});
      found.set(number);
      self.send(next, stop{});
    }
    void on(Self& self, const stop&) {
      self.send(next, stop{});
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["actors"]; }
  static std::int64_t count(const values& of) { return of["hops"]; }
  static std::int64_t expected(const values& of) { return of["hops"] % of["actors"]; }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    std::vector<typename World::ref> ring;
    for (std::int64_t i = 0; i < of["actors"]; ++i) ring.push_back(in.template spawn<member>(found, i));
    for (std::size_t i = 0; i < ring.size(); ++i)
      in.send(ring[i], introduce<typename World::ref>{{ring[(i + 1) % ring.size()]}});
    in.send(ring.front(), token{of["hops"]});
    return in.wait(found);
  }
};

struct big {
  struct ping {
    friend auto inspect(auto& by, ping&) { return by(); }
  };
  struct pong {
    friend auto inspect(auto& by, pong&) { return by(); }
  };
  struct finished {
    std::int64_t answers;
    std::vector<double> trips_us;
    friend auto inspect(auto& by, finished& x) { return by(x.answers, x.trips_us); }
  };
  template <class Ref>
  using messages = std::tuple<introduce<Ref>, stop, ping, pong, finished>;

  /// Asks random members, one after the other, and tells the sink at the end.
  template <class Self>
  struct member {
    std::int64_t messages;
    numbers random;
    typename Self::ref sink;
    trip_times trips;
    std::vector<typename Self::ref> all{};
    std::int64_t answers = 0;
    void ask(Self& self) {
      trips.leave();
      self.send(all[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(all.size())))], ping{});
    }
    void on(Self& self, const introduce<typename Self::ref>& who) {
      all = who.all;
      ask(self);
    }
    void on(Self& self, const ping&) { self.send(self.sender(), pong{}); }
    void on(Self& self, const pong&) {
      trips.arrive();
      if (++answers < messages) return ask(self);
      self.send(sink, finished{answers, std::move(trips.all_us)});
    }
    void on(Self& self, const stop&) { self.end(); }
  };

  template <class Self>
  struct sink {
    outcome found;
    std::vector<typename Self::ref> all{};
    std::int64_t answers = 0;
    std::size_t over = 0;
    std::vector<double> trips_us{};
    void on(Self&, const introduce<typename Self::ref>& who) { all = who.all; }
    void on(Self& self, const finished& came) {
      answers += came.answers;
      trips_us.insert(trips_us.end(), came.trips_us.begin(), came.trips_us.end());
      if (++over < all.size()) return;
      for (const auto& each : all) self.send(each, stop{});
      found.set(answers, std::move(trips_us));
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["actors"] + 1; }
  static std::int64_t count(const values& of) { return of["actors"] * of["messages"]; }
  static std::int64_t expected(const values& of) { return of["actors"] * of["messages"]; }
  template <class World>
  static result run(World& in, const values& of) {
    using introduce_all = introduce<typename World::ref>;
    outcome found;
    const auto last = in.template spawn<sink>(found);
    introduce_all everybody;
    for (std::int64_t i = 0; i < of["actors"]; ++i)
      everybody.all.push_back(in.template spawn<member>(of["messages"], numbers(i), last, trip_times{of.has("trips")}));
    in.send(last, everybody);
    for (const auto& each : everybody.all) in.send(each, everybody);
    return in.wait(found);
  }
};

struct chameneos {
  template <class Ref>
  struct meet {
    int colour;
    Ref who;
    friend auto inspect(auto& by, meet& x) { return by(x.colour, x.who); }
  };
  struct change {
    int colour;
    friend auto inspect(auto& by, change& x) { return by(x.colour); }
  };
  struct over {
    std::int64_t meetings;
    friend auto inspect(auto& by, over& x) { return by(x.meetings); }
  };
  template <class Ref>
  using messages = std::tuple<introduce<Ref>, stop, meet<Ref>, change, over>;

  /// The colour of a creature of colour `one` that has met one of colour `other`: the third one if they differ.
  static int complement(int one, int other) { return one == other ? one : 3 - one - other; }

  template <class Self>
  struct creature {
    using ref = typename Self::ref;
    int colour;
    ref mall{};
    std::int64_t meetings = 0;
    void ask(Self& self) { self.send(mall, meet<ref>{colour, self.me()}); }
    void on(Self& self, const introduce<ref>& who) {
      mall = who.all.front();
      ask(self);
    }
    void on(Self& self, const meet<ref>& other) {
      ++meetings;
      colour = complement(colour, other.colour);
      self.send(other.who, change{colour});
      ask(self);
    }
    void on(Self& self, const change& to) {
      ++meetings;
      colour = to.colour;
      ask(self);
    }
    void on(Self& self, const stop&) {
      self.send(mall, over{meetings});
      self.end();
    }
  };

  template <class Self>
  struct mall {
    using ref = typename Self::ref;
    outcome found;
    std::int64_t left;
    std::int64_t creatures;
    std::int64_t meetings = 0;
    ref waits{};
    bool is_empty = true;
    void on(Self& self, const meet<ref>& one) {
      if (left == 0) return self.send(one.who, stop{});
      is_empty = !is_empty;
      if (!is_empty) {
        waits = one.who;
        return;
      }
      self.send(waits, one);
      --left;
    }
    void on(Self& self, const over& came) {
      meetings += came.meetings;
      if (--creatures > 0) return;
      found.set(meetings);
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["actors"] + 1; }
  static std::int64_t count(const values& of) { return of["meetings"]; }
  static std::int64_t expected(const values& of) { return 2 * of["meetings"]; }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    const auto to = in.template spawn<mall>(found, of["meetings"], of["actors"]);
    for (std::int64_t i = 0; i < of["actors"]; ++i)
      in.send(in.template spawn<creature>(static_cast<int>(i % 3)), introduce<typename World::ref>{{to}});
    return in.wait(found);
  }
};

}  // namespace troupe::bench::savina
