// SPDX-License-Identifier: BSD-3-Clause
// Programs whose actors share something: a collection, forks, a buffer, a barber, accounts.
#include <deque>
#include <iterator>
#include <map>
#include <set>

#include "message_programs.hpp"

namespace troupe::bench::savina {

constexpr std::int64_t keys = 65'536;

/// Workers that read and write a collection, which is an actor.
template <class Collection>
struct shared_collection {
  struct read {
    std::int64_t key;
  };
  struct write {
    std::int64_t key;
  };
  struct value {
    std::int64_t of_key;
  };
  struct finished {};
  template <class>
  using messages = std::tuple<begin, read, write, value, finished>;

  /// Ends, and tells how many keys it has, after all workers have finished.
  template <class Self>
  struct owner {
    outcome found;
    std::int64_t workers;
    Collection all{};
    void on(Self& self, const read& what) { self.send(self.sender(), value{all.find(what.key)}); }
    void on(Self& self, const write& what) {
      all.insert(what.key);
      self.send(self.sender(), value{what.key});
    }
    void on(Self& self, const finished&) {
      if (--workers > 0) return;
      found.set(all.size());
      self.end();
    }
  };

  template <class Self>
  struct worker {
    typename Self::ref of;
    std::int64_t left;
    std::int64_t writes;  // in a hundred
    numbers random;
    void on(Self& self, const begin&) { ask(self); }
    void on(Self& self, const value&) { ask(self); }
    void ask(Self& self) {
      if (left-- == 0) {
        self.send(of, finished{});
        return self.end();
      }
      const bool is_write = random.below(100) < writes;
      const auto key = random.below(keys);
      is_write ? self.send(of, write{key}) : self.send(of, read{key});
    }
  };

  static std::int64_t actors(const values& of) { return of["workers"] + 1; }
  static std::int64_t count(const values& of) { return of["workers"] * of["messages"]; }
  static std::int64_t expected(const values& of) {
    std::set<std::int64_t> written;
    for (std::int64_t worker = 0; worker < of["workers"]; ++worker) {
      numbers random(worker);
      for (std::int64_t i = 0; i < of["messages"]; ++i) {
        const bool is_write = random.below(100) < of["writes"];
        const auto key = random.below(keys);
        if (is_write) written.insert(key);
      }
    }
    return static_cast<std::int64_t>(written.size());
  }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    const auto to = in.template spawn<owner>(found, of["workers"]);
    for (std::int64_t i = 0; i < of["workers"]; ++i)
      in.send(in.template spawn<worker>(to, of["messages"], of["writes"], numbers(i)), begin{});
    return in.wait(found);
  }
};

class dictionary {
 public:
  std::int64_t find(std::int64_t key) const {
    const auto found = all_.find(key);
    return found == all_.end() ? 0 : found->second;
  }
  void insert(std::int64_t key) { all_[key] = key; }
  std::int64_t size() const { return std::ssize(all_); }

 private:
  std::map<std::int64_t, std::int64_t> all_;
};

/// Is walked from its begin.
class sorted_list {
 public:
  std::int64_t find(std::int64_t key) {
    const auto at = place(key);
    return at == all_.end() ? 0 : *at;
  }
  void insert(std::int64_t key) {
    const auto at = place(key);
    if (at == all_.end() || *at != key) all_.insert(at, key);
  }
  std::int64_t size() const { return std::ssize(all_); }

 private:
  std::list<std::int64_t>::iterator place(std::int64_t key) {
    return std::find_if(all_.begin(), all_.end(), [=](std::int64_t each) { return each >= key; });
  }

  std::list<std::int64_t> all_;
};

struct philosophers {
  struct hungry {
    std::size_t who;
  };
  struct denied {};
  struct eat {};
  struct sated {
    std::size_t who;
  };
  struct leaves {};
  template <class>
  using messages = std::tuple<begin, hungry, denied, eat, sated, leaves>;

  /// Has the forks. The left fork of a philosopher has the philosopher's number.
  template <class Self>
  struct arbitrator {
    outcome found;
    std::vector<bool> taken;
    std::size_t gone = 0;
    std::int64_t meals = 0;
    std::size_t right_of(std::size_t who) const { return (who + 1) % taken.size(); }
    void on(Self& self, const hungry& one) {
      if (taken[one.who] || taken[right_of(one.who)]) return self.send(self.sender(), denied{});
      taken[one.who] = taken[right_of(one.who)] = true;
      ++meals;
      self.send(self.sender(), eat{});
    }
    void on(Self&, const sated& one) { taken[one.who] = taken[right_of(one.who)] = false; }
    void on(Self& self, const leaves&) {
      if (++gone < taken.size()) return;
      found.set(meals);
      self.end();
    }
  };

  template <class Self>
  struct philosopher {
    typename Self::ref table;
    std::size_t number;
    std::int64_t left;
    void on(Self& self, const begin&) { self.send(table, hungry{number}); }
    void on(Self& self, const denied&) { self.send(table, hungry{number}); }
    void on(Self& self, const eat&) {
      self.send(table, sated{number});
      if (--left > 0) return self.send(table, hungry{number});
      self.send(table, leaves{});
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["actors"] + 1; }
  static std::int64_t count(const values& of) { return of["actors"] * of["rounds"]; }
  static std::int64_t expected(const values& of) { return of["actors"] * of["rounds"]; }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    const auto seats = static_cast<std::size_t>(of["actors"]);
    const auto table = in.template spawn<arbitrator>(found, std::vector<bool>(seats));
    for (std::size_t i = 0; i < seats; ++i) in.send(in.template spawn<philosopher>(table, i, of["rounds"]), begin{});
    return in.wait(found);
  }
};

struct bounded_buffer {
  struct produce {};
  struct item {
    std::int64_t number;
  };
  struct ready {
    std::int64_t number;
    std::int64_t worked;
  };
  template <class Ref>
  using messages = std::tuple<introduce<Ref>, stop, produce, item, ready>;

  template <class Self>
  struct producer {
    std::int64_t next;
    std::int64_t end;
    std::int64_t steps;
    std::int64_t worked = 0;
    void on(Self& self, const produce&) {
      if (next == end) return;
      worked += work(next, steps);
      self.send(self.sender(), item{next++});
    }
    void on(Self& self, const stop&) { self.end(); }
  };

  template <class Self>
  struct consumer {
    std::int64_t steps;
    void on(Self& self, const item& what) { self.send(self.sender(), ready{what.number, work(what.number, steps)}); }
    void on(Self& self, const stop&) { self.end(); }
  };

  /// Asks a producer for an item while there is room for its item.
  template <class Self>
  struct manager {
    using ref = typename Self::ref;
    outcome found;
    std::size_t room;
    std::int64_t consumers;
    std::int64_t left;
    std::vector<ref> everybody{};
    std::deque<ref> may_produce{};
    std::deque<ref> may_consume{};
    std::deque<item> buffer{};
    std::size_t asked = 0;
    std::int64_t sum = 0;
    void on(Self& self, const introduce<ref>& who) {
      everybody = who.all;
      may_consume.assign(who.all.begin(), who.all.begin() + consumers);
      may_produce.assign(who.all.begin() + consumers, who.all.end());
      ask(self);
    }
    void ask(Self& self) {
      for (; !may_produce.empty() && asked + buffer.size() < room; may_produce.pop_front(), ++asked)
        self.send(may_produce.front(), produce{});
    }
    void hand_out(Self& self) {
      for (; !may_consume.empty() && !buffer.empty(); may_consume.pop_front(), buffer.pop_front())
        self.send(may_consume.front(), buffer.front());
      ask(self);
    }
    void on(Self& self, const item& what) {
      --asked;
      buffer.push_back(what);
      may_produce.push_back(self.sender());
      hand_out(self);
    }
    void on(Self& self, const ready& one) {
      sum += one.number + one.worked;
      may_consume.push_back(self.sender());
      if (--left > 0) return hand_out(self);
      for (const auto& each : everybody) self.send(each, stop{});
      found.set(sum);
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["producers"] + of["consumers"] + 1; }
  static std::int64_t count(const values& of) { return of["producers"] * of["items"]; }
  static std::int64_t expected(const values& of) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < count(of); ++i) sum += i + work(i, of["work"]);
    return sum;
  }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    introduce<typename World::ref> everybody;
    for (std::int64_t i = 0; i < of["consumers"]; ++i) everybody.all.push_back(in.template spawn<consumer>(of["work"]));
    for (std::int64_t i = 0; i < of["producers"]; ++i)
      everybody.all.push_back(in.template spawn<producer>(i * of["items"], (i + 1) * of["items"], of["work"]));
    in.send(in.template spawn<manager>(found, static_cast<std::size_t>(of["buffer"]), of["consumers"], count(of)), everybody);
    return in.wait(found);
  }
};

struct barber {
  template <class Ref>
  struct enter {
    Ref who;
    std::int64_t number;
  };
  struct full {
    std::int64_t number;
  };
  struct done {
    std::int64_t number;
    std::int64_t worked;
  };
  struct next {};
  template <class Ref>
  using messages = std::tuple<begin, introduce<Ref>, stop, enter<Ref>, full, done, next>;

  template <class Self>
  struct customer {
    typename Self::ref street;
    void on(Self& self, const full& room) { self.send(street, room); }
    void on(Self& self, const done& hair) {
      self.send(street, hair);
      self.end();
    }
  };

  template <class Self>
  struct cutter {
    using ref = typename Self::ref;
    std::int64_t steps;
    void on(Self& self, const enter<ref>& one) {
      self.send(one.who, done{one.number, work(one.number, steps)});
      self.send(self.sender(), next{});
    }
    void on(Self& self, const stop&) { self.end(); }
  };

  template <class Self>
  struct waiting_room {
    using ref = typename Self::ref;
    std::size_t chairs;
    ref cuts;
    std::deque<enter<ref>> waiting{};
    bool sleeps = true;
    void on(Self& self, const enter<ref>& one) {
      if (waiting.size() == chairs) return self.send(one.who, full{one.number});
      waiting.push_back(one);
      if (sleeps) on(self, next{});
    }
    void on(Self& self, const next&) {
      sleeps = waiting.empty();
      if (sleeps) return;
      self.send(cuts, waiting.front());
      waiting.pop_front();
    }
    void on(Self& self, const stop&) {
      self.send(cuts, stop{});
      self.end();
    }
  };

  /// Where customers come from, and where those go who find no chair: they come again.
  template <class Self>
  struct street {
    using ref = typename Self::ref;
    outcome found;
    ref room;
    std::int64_t customers;
    std::int64_t steps;
    std::int64_t served = 0;
    std::int64_t sum = 0;
    void on(Self& self, const begin&) {
      for (std::int64_t i = 0; i < customers; ++i) {
        sum -= work(i, steps);  // the time between two customers
        self.send(room, enter<ref>{self.template spawn<customer>(self.me()), i});
      }
    }
    void on(Self& self, const full& one) { self.send(room, enter<ref>{self.sender(), one.number}); }
    void on(Self& self, const done& one) {
      sum += one.number + one.worked;
      if (++served < customers) return;
      self.send(room, stop{});
      found.set(sum);
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["customers"] + 3; }
  static std::int64_t count(const values& of) { return of["customers"]; }
  static std::int64_t expected(const values& of) { return of["customers"] * (of["customers"] - 1) / 2; }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    const auto room =
      in.template spawn<waiting_room>(static_cast<std::size_t>(of["room"]), in.template spawn<cutter>(of["work"]));
    in.send(in.template spawn<street>(found, room, of["customers"], of["work"]), begin{});
    return in.wait(found);
  }
};

struct bank {
  template <class Ref>
  struct debit {
    std::int64_t amount;
    Ref to;
  };
  struct credit {
    std::int64_t amount;
  };
  struct credited {};
  struct transferred {};
  struct balance {
    std::int64_t weighted;
  };
  template <class Ref>
  using messages = std::tuple<begin, stop, debit<Ref>, credit, credited, transferred, balance>;

  /// A transaction. All accounts of a program draw the same ones.
  struct transaction {
    std::int64_t from;
    std::int64_t to;
    std::int64_t amount;
    static transaction draw(numbers& by, std::int64_t accounts) {
      transaction made{};
      made.from = by.below(accounts);
      made.to = (made.from + 1 + by.below(accounts - 1)) % accounts;
      made.amount = 1 + by.below(100);
      return made;
    }
  };

  /// Makes one transfer at a time: debits wait until the account that got the money has answered. Credits do not wait.
  template <class Self>
  struct account {
    using ref = typename Self::ref;
    ref teller;
    std::int64_t number;
    std::int64_t balance_now = 0;
    bool waits = false;
    std::deque<debit<ref>> later{};
    void on(Self& self, const debit<ref>& what) {
      if (waits) return later.push_back(what);
      balance_now -= what.amount;
      waits = true;
      self.send(what.to, credit{what.amount});
    }
    void on(Self& self, const credit& what) {
      balance_now += what.amount;
      self.send(self.sender(), credited{});
    }
    void on(Self& self, const credited&) {
      waits = false;
      self.send(teller, transferred{});
      if (later.empty()) return;
      const auto next = later.front();
      later.pop_front();
      on(self, next);
    }
    void on(Self& self, const stop&) {
      self.send(teller, balance{number * balance_now});
      self.end();
    }
  };

  /// Gives out all transactions at once. After the last one, asks for the balances.
  template <class Self>
  struct teller {
    using ref = typename Self::ref;
    outcome found;
    std::int64_t accounts;
    std::int64_t left;
    std::vector<ref> all{};
    std::int64_t answers = 0;
    std::int64_t sum = 0;
    void on(Self& self, const begin&) {
      for (std::int64_t i = 0; i < accounts; ++i) all.push_back(self.template spawn<account>(self.me(), i));
      numbers random(0);
      for (std::int64_t i = 0; i < left; ++i) {
        const auto drawn = transaction::draw(random, accounts);
        self.send(all[static_cast<std::size_t>(drawn.from)], debit<ref>{drawn.amount, all[static_cast<std::size_t>(drawn.to)]});
      }
    }
    void on(Self& self, const transferred&) {
      if (--left > 0) return;
      for (const auto& each : all) self.send(each, stop{});
    }
    void on(Self& self, const balance& came) {
      sum += came.weighted;
      if (++answers < accounts) return;
      found.set(sum);
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["accounts"] + 1; }
  static std::int64_t count(const values& of) { return of["transactions"]; }
  /// The sum of all balances, each times the number of its account.
  static std::int64_t expected(const values& of) {
    numbers random(0);
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < of["transactions"]; ++i) {
      const auto drawn = transaction::draw(random, of["accounts"]);
      sum += (drawn.to - drawn.from) * drawn.amount;
    }
    return sum;
  }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    in.send(in.template spawn<teller>(found, of["accounts"], of["transactions"]), begin{});
    return in.wait(found);
  }
};

std::vector<program> sharing_programs() {
  return {
    program_of<chameneos>("chameneos", "Creatures meet in pairs, which one actor makes.", "meetings"),
    program_of<shared_collection<dictionary>>("dictionary", "20 actors read and write a dictionary, which an actor has.",
                                              "requests"),
    program_of<shared_collection<sorted_list>>("sorted_list", "20 actors read and write a sorted list, which an actor walks.",
                                               "requests"),
    program_of<philosophers>("philosophers",
                             "Philosophers ask an arbitrator for two forks, again and again until they get them.", "meals"),
    program_of<bounded_buffer>("bounded_buffer", "40 producers and 40 consumers share a buffer of 50 items.", "items"),
    program_of<barber>("barber", "Customers who find no chair in the barber's room come again.", "customers"),
    program_of<bank>("bank", "1,000 accounts transfer money: a debit waits for the credit of the transfer before.",
                     "transfers"),
  };
}

}  // namespace troupe::bench::savina
