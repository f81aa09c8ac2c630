// SPDX-License-Identifier: BSD-3-Clause
// Programs that do little but send messages.
#include "message_programs.hpp"

namespace troupe::bench::savina {

struct counting {
  struct increment {};
  struct total {
    std::int64_t count;
  };
  struct retrieve {};
  template <class>
  using messages = std::tuple<begin, increment, retrieve, total>;

  template <class Self>
  struct counter {
    std::int64_t count = 0;
    void on(Self&, const increment&) { ++count; }
    void on(Self& self, const retrieve&) {
      self.send(self.sender(), total{count});
      self.end();
    }
  };

  template <class Self>
  struct producer {
    outcome found;
    std::int64_t count;
    typename Self::ref to;
    void on(Self& self, const begin&) {
      for (std::int64_t i = 0; i < count; ++i) self.send(to, increment{});
      self.send(to, retrieve{});
    }
    void on(Self& self, const total& came) {
      found.set(came.count);
      self.end();
    }
  };

  static std::int64_t actors(const values&) { return 2; }
  static std::int64_t count(const values& of) { return of["messages"]; }
  static std::int64_t expected(const values& of) { return of["messages"]; }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    in.send(in.template spawn<producer>(found, of["messages"], in.template spawn<counter>()), begin{});
    return in.wait(found);
  }
};

struct fork_join_throughput {
  struct job {
    std::int64_t number;
  };
  struct sum {
    std::int64_t of_jobs;
  };
  template <class>
  using messages = std::tuple<begin, job, sum>;

  template <class Self>
  struct worker {
    std::int64_t left;
    std::int64_t of_jobs = 0;
    void on(Self& self, const job& what) {
      of_jobs += what.number;
      if (--left > 0) return;
      self.send(self.sender(), sum{of_jobs});
      self.end();
    }
  };

  template <class Self>
  struct source {
    outcome found;
    std::int64_t actors;
    std::int64_t messages;
    std::int64_t answers = 0;
    std::int64_t whole = 0;
    void on(Self& self, const begin&) {
      std::vector<typename Self::ref> to;
      for (std::int64_t i = 0; i < actors; ++i) to.push_back(self.template spawn<worker>(messages));
      for (std::int64_t i = 0; i < messages; ++i)
        for (const auto& each : to) self.send(each, job{i});
    }
    void on(Self& self, const sum& came) {
      whole += came.of_jobs;
      if (++answers < actors) return;
      found.set(whole);
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["actors"] + 1; }
  static std::int64_t count(const values& of) { return of["actors"] * of["messages"]; }
  static std::int64_t expected(const values& of) { return of["actors"] * of["messages"] * (of["messages"] - 1) / 2; }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    in.send(in.template spawn<source>(found, of["actors"], of["messages"]), begin{});
    return in.wait(found);
  }
};

struct fork_join_create {
  struct job {
    std::int64_t number;
  };
  struct answer {
    std::int64_t number;
  };
  template <class>
  using messages = std::tuple<begin, job, answer>;

  template <class Self>
  struct worker {
    void on(Self& self, const job& what) {
      self.send(self.sender(), answer{2 * what.number});
      self.end();
    }
  };

  template <class Self>
  struct source {
    outcome found;
    std::int64_t actors;
    std::int64_t answers = 0;
    std::int64_t whole = 0;
    void on(Self& self, const begin&) {
      for (std::int64_t i = 0; i < actors; ++i) self.send(self.template spawn<worker>(), job{i});
    }
    void on(Self& self, const answer& came) {
      whole += came.number;
      if (++answers < actors) return;
      found.set(whole);
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["actors"] + 1; }
  static std::int64_t count(const values& of) { return of["actors"]; }
  static std::int64_t expected(const values& of) { return of["actors"] * (of["actors"] - 1); }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    in.send(in.template spawn<source>(found, of["actors"]), begin{});
    return in.wait(found);
  }
};

std::vector<program> message_programs() {
  return {
    program_of<ping_pong>("ping_pong", "Two actors send one message back and forth.", "round trips"),
    program_of<counting>("counting", "One actor sends messages to another one, which counts them.", "messages"),
    program_of<fork_join_throughput>("fork_join_throughput", "One actor sends many messages to each of 60 others.", "messages"),
    program_of<fork_join_create>("fork_join_create", "One actor makes 40,000 others, which answer one message and end.",
                                 "actors"),
    program_of<thread_ring>("thread_ring", "One message goes around a ring of actors.", "messages"),
    program_of<big>("big", "Each of many actors asks random others, one question at a time.", "round trips"),
  };
}

}  // namespace troupe::bench::savina
