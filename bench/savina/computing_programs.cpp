// SPDX-License-Identifier: BSD-3-Clause
// Programs that spread a computation over actors.
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "programs.hpp"

namespace troupe::bench::savina {

struct trapezoidal {
  struct job {
    double from;
    double step;
    std::int64_t pieces;
  };
  struct area {
    double size;
  };
  template <class>
  using messages = std::tuple<begin, job, area>;

  static double height(double x) { return std::sin(x * x * x - 1) / (x + 1) * std::sqrt(1 + std::exp(std::sqrt(2 * x))); }
  static double area_of(const job& what) {
    double sum = 0;
    for (std::int64_t i = 0; i < what.pieces; ++i) {
      const auto x = what.from + static_cast<double>(i) * what.step;
      sum += what.step * (height(x) + height(x + what.step)) / 2;
    }
    return sum;
  }
  /// The area is told with four digits behind the point: sums in another order are as near.
  static std::int64_t told(double whole) { return std::llround(1e4 * whole); }
  static constexpr double left = 1;
  static constexpr double right = 5;

  template <class Self>
  struct worker {
    void on(Self& self, const job& what) {
      self.send(self.sender(), area{area_of(what)});
      self.end();
    }
  };

  template <class Self>
  struct master {
    outcome found;
    std::int64_t workers;
    std::int64_t pieces;
    std::int64_t answers = 0;
    double whole = 0;
    void on(Self& self, const begin&) {
      const auto step = (right - left) / static_cast<double>(pieces);
      const auto each = pieces / workers;
      for (std::int64_t i = 0; i < workers; ++i)
        self.send(self.template spawn<worker>(), job{left + static_cast<double>(i * each) * step, step, each});
    }
    void on(Self& self, const area& came) {
      whole += came.size;
      if (++answers < workers) return;
      found.set(told(whole));
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["workers"] + 1; }
  static std::int64_t count(const values& of) { return of["pieces"]; }
  /// By Simpson's rule, in one loop.
  static std::int64_t expected(const values&) {
    constexpr int parts = 200'000;
    constexpr double step = (right - left) / parts;
    double sum = height(left) + height(right);
    for (int i = 1; i < parts; ++i) sum += (i % 2 == 1 ? 4 : 2) * height(left + i * step);
    return told(sum * step / 3);
  }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    in.send(in.template spawn<master>(found, of["workers"], of["pieces"]), begin{});
    return in.wait(found);
  }
};

struct queens {
  /// The columns of the queens in the first rows.
  struct board {
    std::vector<int> columns;
  };
  struct solutions {
    std::int64_t count;
    std::int64_t boards;  // that were sent to the master
  };
  template <class>
  using messages = std::tuple<begin, stop, board, solutions>;

  static bool fits(const std::vector<int>& columns, int next) {
    const auto row = static_cast<int>(columns.size());
    for (int i = 0; i < row; ++i)
      if (columns[static_cast<std::size_t>(i)] == next || std::abs(columns[static_cast<std::size_t>(i)] - next) == row - i)
        return false;
    return true;
  }
  /// Counts the solutions that begin with these rows, depth first. `columns` is as before at the end.
  static std::int64_t solutions_from(std::vector<int>& columns, std::size_t size) {
    const auto given = columns.size();
    std::int64_t count = 0;
    for (int next = 0;;) {
      if (columns.size() == size) ++count;
      while (columns.size() < size && next < static_cast<int>(size) && !fits(columns, next)) ++next;
      if (columns.size() < size && next < static_cast<int>(size)) {
        columns.push_back(next);
        next = 0;
        continue;
      }
      if (columns.size() == given) return count;
      next = columns.back() + 1;
      columns.pop_back();
    }
  }

  /// Sends boards with one row more to the master. From `threshold` rows on, counts alone.
  template <class Self>
  struct worker {
    std::size_t size;
    std::size_t threshold;
    void on(Self& self, const board& given) {
      auto columns = given.columns;
      solutions found{};
      if (columns.size() >= threshold) {
        found.count = solutions_from(columns, size);
      } else {
        for (int next = 0; next < static_cast<int>(size); ++next) {
          if (!fits(columns, next)) continue;
          columns.push_back(next);
          self.send(self.sender(), board{columns});
          columns.pop_back();
          ++found.boards;
        }
      }
      self.send(self.sender(), found);
    }
    void on(Self& self, const stop&) { self.end(); }
  };

  /// Gives each board to the next worker.
  template <class Self>
  struct master {
    outcome found;
    std::size_t workers;
    std::size_t size;
    std::size_t threshold;
    std::vector<typename Self::ref> all{};
    std::size_t next = 0;
    std::int64_t open = 1;
    std::int64_t count = 0;
    void on(Self& self, const begin&) {
      for (std::size_t i = 0; i < workers; ++i) all.push_back(self.template spawn<worker>(size, threshold));
      self.send(all.front(), board{});
    }
    void on(Self& self, const board& given) { self.send(all[next++ % all.size()], given); }
    void on(Self& self, const solutions& came) {
      count += came.count;
      open += came.boards - 1;
      if (open > 0) return;
      for (const auto& each : all) self.send(each, stop{});
      found.set(count);
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["workers"] + 1; }
  static std::int64_t count(const values& of) { return expected(of); }
  static std::int64_t expected(const values& of) {
    const std::map<std::int64_t, std::int64_t> known{{6, 4}, {7, 40}, {8, 92}, {9, 352}, {10, 724}, {11, 2'680}, {12, 14'200}};
    return known.at(of["size"]);
  }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    const auto number = [&](const char* name) { return static_cast<std::size_t>(of[name]); };
    in.send(in.template spawn<master>(found, number("workers"), number("size"), number("threshold")), begin{});
    return in.wait(found);
  }
};

struct sieve {
  struct candidate {
    std::int64_t number;
  };
  /// The sum of the primes. Their number would stay the same without a prime, in the place of which its square would count.
  struct total {
    std::int64_t sum;
  };
  template <class>
  using messages = std::tuple<begin, candidate, total>;

  /// Keeps the first primes that come. What they do not divide goes to the next filter.
  template <class Self>
  struct filter {
    outcome found;
    std::size_t most;
    std::vector<std::int64_t> primes{};
    typename Self::ref next{};
    bool has_next = false;
    void on(Self& self, const candidate& one) {
      for (const auto each : primes)
        if (one.number % each == 0) return;
      if (primes.size() < most) return primes.push_back(one.number);
      if (!has_next) next = self.template spawn<filter>(found, most);
      has_next = true;
      self.send(next, one);
    }
    void on(Self& self, const total& before) {
      const total here{std::accumulate(primes.begin(), primes.end(), before.sum)};
      has_next ? self.send(next, here) : found.set(here.sum);
      self.end();
    }
  };

  template <class Self>
  struct source {
    typename Self::ref first;
    std::int64_t numbers;
    void on(Self& self, const begin&) {
      for (std::int64_t i = 2; i <= numbers; ++i) self.send(first, candidate{i});
      self.send(first, total{0});
      self.end();
    }
  };

  static std::int64_t actors(const values& of) { return of["numbers"] / of["primes"] + 2; }  // at most
  static std::int64_t count(const values& of) { return of["numbers"]; }
  /// By striking out.
  static std::int64_t expected(const values& of) {
    std::vector<bool> is_struck(static_cast<std::size_t>(of["numbers"]) + 1);
    std::int64_t sum = 0;
    for (std::size_t i = 2; i < is_struck.size(); ++i) {
      if (is_struck[i]) continue;
      sum += static_cast<std::int64_t>(i);
      for (std::size_t multiple = 2 * i; multiple < is_struck.size(); multiple += i) is_struck[multiple] = true;
    }
    return sum;
  }
  template <class World>
  static result run(World& in, const values& of) {
    outcome found;
    const auto first = in.template spawn<filter>(found, static_cast<std::size_t>(of["primes"]));
    in.send(in.template spawn<source>(first, of["numbers"]), begin{});
    return in.wait(found);
  }
};

std::vector<program> computing_programs() {
  return {
    program_of<trapezoidal>("trapezoidal", "100 actors compute the area below a curve.", "pieces"),
    program_of<queens>("queens", "A master and 20 workers count the ways to place 12 queens.", "solutions"),
    program_of<sieve>("sieve", "A chain of actors filters primes, of which each keeps 1,000.", "numbers"),
  };
}

std::vector<program> all_programs() {
  auto all = message_programs();
  for (const auto& more : {sharing_programs(), computing_programs()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace troupe::bench::savina
