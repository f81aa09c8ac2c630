// SPDX-License-Identifier: BSD-3-Clause
// Functions that go to another thread, by how long they take and how many go there at once.
#include <future>
#include <map>
#include <tuple>

#include <ATen/Parallel.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>

#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/actors/worker_team.hpp>
#include <troupe/engine/backward.hpp>

#include "../support/no_work_graphs.hpp"
#include "suite.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds longest_wait{60};
constexpr std::size_t fewest_runs = 5;
constexpr auto usual_time = std::chrono::milliseconds(120);  // of one point
constexpr std::size_t functions_of_pass = 64;

/// A message to a thread: so many functions, each of which computes for so long.
struct burst {
  std::size_t functions = 0;
  std::chrono::microseconds each{};
  std::shared_ptr<std::promise<void>> last{};  // if the message is the last one
};

}  // namespace

}  // namespace troupe::bench

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::bench::burst)

namespace troupe::bench {

namespace {

void spin(std::chrono::microseconds for_long) {
  for (const auto until = clock::now() + for_long; clock::now() < until;) {
  }
}

void run_all(const burst& what) {
  for (std::size_t i = 0; i < what.functions; ++i) spin(what.each);
  if (what.last) what.last->set_value();
}

/// The microseconds of each run, for about `usual_time`.
template <class Run>
std::vector<double> runs_of(Run run, bool quick) {
  run();
  std::vector<double> taken;
  const auto end = clock::now() + (quick ? std::chrono::milliseconds(1) : usual_time);
  do {
    const auto begin = clock::now();
    run();
    taken.push_back(microseconds_since(begin));
  } while (clock::now() < end || (!quick && taken.size() < fewest_runs));
  return taken;
}

/// `all` functions to a thread, `in_one` with each message. Microseconds of a function.
std::vector<double> by_messages(std::size_t all, std::size_t in_one, std::chrono::microseconds each, bool quick) {
  caf::actor_system_config config;
  caf::actor_system system(config.set("scheduler.max-threads", std::size_t{1}));
  const auto worker = support::spawn_handlers_with_thread<caf::actor>(
    system, "bench.worker", [](const caf::actor&) { return std::tuple{[](const burst& what) { run_all(what); }}; });
  auto taken = runs_of(
    [&] {
      const auto over = std::make_shared<std::promise<void>>();
      for (std::size_t sent = 0; sent < all; sent += in_one) {
        const auto count = std::min(in_one, all - sent);
        caf::anon_send(worker, burst{count, each, sent + count == all ? over : nullptr});
      }
      if (over->get_future().wait_for(longest_wait) != std::future_status::ready)
        throw std::runtime_error("a worker did not run its functions");
    },
    quick);
  caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
  for (auto& time : taken) time /= static_cast<double>(all);
  return taken;
}

/// The workers of a team with another grain, in nanoseconds.
class team_with_grain final : public engine::cpu_workers {
 public:
  team_with_grain(worker_team& team, std::int64_t grain) : cpu_workers(team.count(), grain), team_(team) {}
  void post(std::function<void()> work) override { team_.post(std::move(work)); }

 private:
  worker_team& team_;
};

/// Microseconds of a pass with one thread, with a worker to which every function may go, and with one to which those go that are at least
/// as long as the grain; and the grain.
std::vector<double> passes_by_grain(std::chrono::microseconds function, bool quick) {
  at::set_num_threads(1);
  caf::actor_system_config config;
  caf::actor_system system(config.set("scheduler.max-threads", std::size_t{1}));
  worker_team measured(system, 1);
  team_with_grain any(measured, 1);
  const auto graph = function.count() == 0 ? make_wide(functions_of_pass)
                                           : make_wide_at_work(functions_of_pass, static_cast<double>(function.count()));
  const auto time = [&](engine::cpu_workers* workers) {
    return percentile(runs_of([&] { troupe::backward({graph.root}, {graph.gradient}, {.workers = workers}); }, quick), 0.5);
  };
  return {time(nullptr), time(&any), time(&measured), static_cast<double>(measured.grain()) / 1e3};
}

plot functions_in_a_message(bool quick) {
  plot made{
    "Functions on another thread: one a message, or many",
    "Lower is better. Where a line is flat, messages cost nothing beside the functions. troupe sends all that is ready at "
    "once.",
    {"functions in one message", "", true},
    {"time of a function", "us", true}};
  for (const int us : quick ? std::vector{0, 10} : std::vector{0, 1, 10, 100, 1'000}) {
    const std::size_t all = us >= 1'000 ? 64 : us >= 100 ? 256 : 1'024;
    std::vector<std::size_t> counts;
    for (std::size_t in_one = 1; in_one <= all; in_one *= 4) counts.push_back(in_one);
    const auto name = us == 0 ? "functions without work" : "functions of " + std::to_string(us) + " µs";
    made.curves.push_back(curve_over(counts, name, role::variant, [=](std::size_t in_one) {
      return in_own_process([=] { return by_messages(all, in_one, std::chrono::microseconds(us), quick); });
    }));
  }
  return made;
}

plot pass_by_grain(bool quick) {
  plot made{"64 functions side by side, with one more worker",
            "Lower is better: 1 is the time of one thread, 0.5 that of two threads that cost nothing.",
            {"time of a function", "us", true},
            {"time of the pass by that of one thread", "", true}};
  const auto lengths = quick ? std::vector{0, 50} : std::vector{0, 1, 5, 10, 20, 50, 100, 200, 500, 1'000};
  std::vector<double> grains;
  std::map<int, measured_turns> found;
  for (const int us : lengths) {
    const auto measure = [&] {
      const auto times = passes_by_grain(std::chrono::microseconds(us), quick);
      return std::vector{times[1] / times[0], times[2] / times[0], times[3]};
    };
    grains.push_back(found.try_emplace(us, quick ? 1 : 3, measure).first->second.median(2));
  }
  made.curves = {
    curve_over(lengths, "two threads that cost nothing", role::floor,
               [](int us) {
                 return point{static_cast<double>(us), 0.5};
               }),
    curve_over(lengths, "a function of any length to the worker", role::variant, [&](int us) { return found.at(us).all(0); }),
    curve_over(lengths, "as troupe chooses", role::troupe, [&](int us) { return found.at(us).all(1); })};
  made.default_x = percentile(grains, 0.5);
  made.default_name = "grain of this machine";
  return made;
}

}  // namespace

std::vector<plot_definition> grain_plots() {
  return plots_of_group("grain", {{"functions_in_a_message", functions_in_a_message}, {"pass_by_grain", pass_by_grain}});
}

}  // namespace troupe::bench
