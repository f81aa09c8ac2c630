// SPDX-License-Identifier: BSD-3-Clause
#include "scheduling_plots.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/after.hpp>
#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>

#include "../support/failing_passes.hpp"
#include "node_pair.hpp"
#include "exchanges.hpp"
#include "message_plots.hpp"
#include "../support/tcp_floor.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds longest_wait{20};
constexpr int fewest_runs = 7;
constexpr int pairs = 64;
constexpr int turns = 3;

/// 64 pairs of actors without threads of their own, each with one message under way. Microseconds of a message.
std::vector<double> messages_between_pairs(const std::function<void(caf::actor_system_config&)>& configure, int messages) {
  caf::actor_system_config config;
  configure(config);
  caf::actor_system system(config);
  std::vector<double> taken;
  {
    caf::scoped_actor self{system};
    const caf::actor driver = self;
    const auto player = [driver](caf::event_based_actor* me) -> caf::behavior {
      return {[=](const caf::actor& other, int left) {
        if (left == 0)
          me->send(driver, true);
        else
          me->send(other, caf::actor_cast<caf::actor>(me), left - 1);
      }};
    };
    std::vector<caf::actor> players;
    for (int i = 0; i < 2 * pairs; ++i) players.push_back(system.spawn(player));
    taken = times_of(fewest_runs, [&] {
      for (std::size_t i = 0; i < pairs; ++i) self->send(players[2 * i], players[2 * i + 1], messages);
      for (int i = 0; i < pairs; ++i)
        self->receive([](bool) {},
                      caf::after(longest_wait) >> [] { throw std::runtime_error("actors of CAF did not answer"); });
    });
    for (const auto& each : players) self->send_exit(each, caf::exit_reason::user_shutdown);
  }
  for (auto& each : taken) each /= pairs * messages;
  return taken;
}

/// Microseconds from a question of a thread to the answer of an actor without a thread.
std::vector<double> questions_to_an_actor(caf::atom_value policy, std::size_t threads, int runs) {
  caf::actor_system_config config;
  config.set("scheduler.policy", policy);
  config.set("scheduler.max-threads", threads);
  caf::actor_system system(config);
  std::vector<double> taken;
  {
    const auto answers =
      system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int number) { return number; }}; });
    caf::scoped_actor self{system};
    taken = times_of(runs, [&] {
      self->send(answers, 1);
      self->receive([](int) {}, caf::after(longest_wait) >> [] { throw std::runtime_error("an actor of CAF did not answer"); });
    });
    self->send_exit(answers, caf::exit_reason::user_shutdown);
  }
  return taken;
}

/// The point of a setting: the least median of some turns, each in processes of its own. The band: all turns.
point best_of_turns(double x, const std::function<std::vector<double>()>& part, bool quick) {
  std::vector<double> medians;
  for (int turn = 0; turn < (quick ? 1 : turns); ++turn) medians.push_back(percentile(in_own_process(part), 0.5));
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  return {x, *least, {*least, *most}};
}

point point_of_pairs(double x, const std::function<void(caf::actor_system_config&)>& configure, bool quick) {
  return best_of_turns(
    x, [=] { return messages_between_pairs(configure, quick ? 10 : 1'000); }, quick);
}

plot plot_of_pairs(const std::string& name, const std::string& title, const std::string& label) {
  return {.group = "scheduling",
          .name = name,
          .title = title,
          .how_to_read =
            "Lower is better. Bare CAF: 64 pairs of actors without threads, each with one message under way. Each "
            "point is the best of three turns, and the band reaches to the worst.",
          .x = {label, "", true},
          .y = {"time of a message", "us", true}};
}

caf::atom_value policy_of(bool sharing) { return sharing ? caf::atom("sharing") : caf::atom("stealing"); }

curve curve_of_policy(bool sharing) {
  return {sharing ? "one queue that all threads share" : "work stealing", sharing ? role::troupe : role::peer};
}

/// A question for the status, which is answered as heartbeats are.
void ask(const node_pair& nodes) { nodes.to().status(); }

/// Keeps two threads of this process busy for each core, and the worker of the other node.
class load {
 public:
  explicit load(const node_pair& nodes) {
    const auto cores = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < 2 * cores - 1; ++i) threads_.emplace_back([] { compute(std::chrono::milliseconds(5)); });
    threads_.emplace_back([to = nodes.to()] { to.call("compute").get(); });
  }
  void check() const {
    for (const auto& each : threads_) each.check();
  }

 private:
  std::list<background> threads_;  // they can't be moved
};

std::vector<double> times_of_failures(int runs, bool loaded) {
  node_pair nodes({});
  std::optional<load> busy;
  if (loaded) busy.emplace(nodes);
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    const auto time = microseconds_until_error(nodes.here(), nodes.to());
    if (i >= 0) taken.push_back(time);
  }
  if (busy) busy->check();
  return taken;
}

attributes microseconds(std::chrono::microseconds of) { return {{"us", std::int64_t{of.count()}}}; }

/// Calls of "spin" that take so long, and nothing else.
std::vector<double> spinning_calls(std::chrono::microseconds function, std::chrono::microseconds short_work, int runs) {
  const node_pair nodes({.short_work = short_work});
  return times_of(runs, [&] { nodes.to().call("spin", {}, microseconds(function)).get(); });
}

/// Questions, one each millisecond, while such calls are under way, one after the other. A question that is late because of the one
/// before counts from when it should have been asked.
std::vector<double> answers_beside_calls(std::chrono::microseconds function, std::chrono::microseconds short_work, int runs) {
  const node_pair nodes({.short_work = short_work});
  const auto call = [&] { nodes.to().call("spin", {}, microseconds(function)).get(); };
  for (int i = 0; i < 3; ++i) call();  // the first one of a kind never runs on the network thread
  const background calls(call);
  std::vector<double> taken;
  const auto begin = clock::now();
  for (int i = 0; i < runs; ++i) {
    const auto planned = begin + i * std::chrono::milliseconds(1);
    std::this_thread::sleep_until(planned);
    ask(nodes);
    taken.push_back(microseconds_since(planned));
  }
  calls.check();
  return taken;
}

/// The microseconds of `run`, each time after a pause.
template <class Run>
std::vector<double> times_after_pauses(std::chrono::microseconds pause, int runs, Run run) {
  std::vector<double> taken;
  for (int i = -5; i < runs; ++i) {
    std::this_thread::sleep_for(pause);
    const auto begin = clock::now();
    run();
    if (i >= 0) taken.push_back(microseconds_since(begin));
  }
  return taken;
}

std::vector<double> answers_after_pauses(std::chrono::microseconds pause, bool loaded, int runs) {
  const node_pair nodes({});
  std::optional<load> busy;
  if (loaded) busy.emplace(nodes);
  auto taken = times_after_pauses(pause, runs, [&] { ask(nodes); });
  if (busy) busy->check();
  return taken;
}

std::vector<double> exchanges_after_pauses(std::chrono::microseconds pause, int runs) {
  const other_process server([](int, const auto& tell) { serve_echo(tell); });
  tcp_floor floor(server.told());
  return times_after_pauses(pause, runs, [&] { floor.seconds(1, small_message); });
}

const std::vector<std::chrono::microseconds>& lengths_of_functions(bool quick) {
  using us = std::chrono::microseconds;
  static const std::vector<us> few{us(1), us(1'000)};
  static const std::vector<us> all{us(1),   us(10),    us(50),    us(100),   us(200),
                                   us(500), us(1'000), us(2'000), us(5'000), us(10'000)};
  return quick ? few : all;
}

struct runner_of_calls {
  const char* name;
  role part;
  std::chrono::microseconds short_work;
};

const std::vector<runner_of_calls>& runners_of_calls() {
  static const std::vector<runner_of_calls> all{{"the network thread", role::variant, std::chrono::seconds(1)},
                                                {"a thread for calls", role::variant, std::chrono::microseconds(0)},
                                                {"as troupe chooses", role::troupe, settings().short_work}};
  return all;
}

/// As many as take about a third of a second.
int runs_of(std::chrono::microseconds function, bool quick) {
  return quick ? 3 : std::clamp(static_cast<int>(300'000 / (function.count() + 50)), 30, 2'000);
}

/// A plot of calls by the time of their function, with a curve for each of runners_of_calls(). `point_of_one(function, short_work)` returns
/// the runs that a point stands for.
template <class Measure>
plot by_runner(plot made, bool quick, Measure measure) {
  for (const auto& each : runners_of_calls()) {
    curve one{each.name, each.part};
    for (const auto function : lengths_of_functions(quick))
      one.points.push_back(point_of(static_cast<double>(function.count()), measure(function, each.short_work)));
    made.curves.push_back(std::move(one));
  }
  made.default_x = static_cast<double>(settings().short_work.count());
  made.default_name = "short_work";
  return made;
}

}  // namespace

std::vector<double> times_of_answers(int runs, bool loaded) {
  const node_pair nodes({});
  std::optional<load> busy;
  if (loaded) busy.emplace(nodes);
  auto taken = times_of(runs, [&] { ask(nodes); });
  if (busy) busy->check();
  return taken;
}

std::vector<double> calls_together(const pair_settings& how, int at_once, int runs) {
  const node_pair nodes(how);
  const auto x = at::ones({1});
  auto taken = times_of(runs, [&] {
    std::vector<future<call_reply>> asked;
    for (int i = 0; i < at_once; ++i) asked.push_back(nodes.to().call("add", {x, x}));
    for (const auto& each : asked) each.get();
  });
  for (auto& each : taken) each /= at_once;
  return taken;
}

plot scheduler_latency(bool quick) {
  plot made{.group = "scheduling",
            .name = "scheduler_latency",
            .title = "A question to an actor without a thread: policies and threads",
            .how_to_read =
              "Lower is better. A thread of the program asks, and waits for the answer. Each point is the best of three turns, "
              "and the band reaches to the worst.",
            .x = {"threads of the scheduler", "", true},
            .y = {"time until the answer", "us", true}};
  for (const bool sharing : {true, false}) {
    auto one = curve_of_policy(sharing);
    for (const std::size_t threads : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2, 4, 8})
      one.points.push_back(best_of_turns(
        static_cast<double>(threads), [=] { return questions_to_an_actor(policy_of(sharing), threads, quick ? 20 : 3'000); },
        quick));
    made.curves.push_back(std::move(one));
  }
  made.default_x = 2;
  made.default_name = "scheduler.max-threads";
  return made;
}

plot scheduler_policies(bool quick) {
  auto made = plot_of_pairs("scheduler_policies", "CAF's scheduler: policies and threads", "threads of the scheduler");
  for (const bool sharing : {true, false}) {
    auto one = curve_of_policy(sharing);
    for (const std::size_t threads : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2, 4, 8})
      one.points.push_back(point_of_pairs(
        static_cast<double>(threads),
        [=](caf::actor_system_config& to) {
          to.set("scheduler.policy", policy_of(sharing));
          to.set("scheduler.max-threads", threads);
        },
        quick));
    made.curves.push_back(std::move(one));
  }
  made.default_x = 2;
  made.default_name = "scheduler.max-threads";
  return made;
}

plot scheduler_throughput(bool quick) {
  auto made =
    plot_of_pairs("scheduler_throughput", "CAF's scheduler: messages in one turn of an actor", "messages in one turn");
  for (const bool sharing : {true, false}) {
    auto one = curve_of_policy(sharing);
    for (const std::size_t messages : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 10, 100, 1'000})
      one.points.push_back(point_of_pairs(
        static_cast<double>(messages),
        [=](caf::actor_system_config& to) {
          to.set("scheduler.policy", policy_of(sharing));
          to.set("scheduler.max-threads", std::size_t{2});
          to.set("scheduler.max-throughput", messages);
        },
        quick));
    made.curves.push_back(std::move(one));
  }
  return made;
}

plot middleman_workers(bool quick) {
  plot made{.group = "scheduling",
            .name = "middleman_workers",
            .title = "Small calls, 16 at once, by the threads that read messages",
            .how_to_read =
              "Lower is better. At 0 the network thread reads messages itself. Each point is the best of three turns, and "
              "the band reaches to the worst.",
            .x = {"middleman.workers", "", true},
            .y = {"time of a call", "us"}};
  const auto line = [&](const std::string& name, role part, carrier by) {
    curve one{name, part};
    for (const std::size_t workers : quick ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0, 1, 2, 4}) {
      const pair_settings how{.by = by,
                              .configure = [=](caf::actor_system_config& to) { to.set("middleman.workers", workers); }};
      one.points.push_back(best_of_turns(
        static_cast<double>(workers), [=] { return calls_together(how, 16, quick ? 5 : 500); }, quick));
    }
    made.curves.push_back(std::move(one));
  };
  line("troupe's network", role::troupe, carrier::shared_memory);
  line("CAF's network", role::peer, carrier::caf);
  made.default_x = 0;
  made.default_name = "middleman.workers";
  return made;
}

plot workers_of_a_node(bool quick) {
  plot made{.group = "scheduling",
            .name = "workers_of_a_node",
            .title = "Calls of 1 ms, 8 at once, by the workers of the node",
            .how_to_read = "Lower is better. More workers than cores cannot help calls that compute.",
            .x = {"calls that the node runs at once (workers)", "", true},
            .y = {"time of all 8 calls", "ms"}};
  curve one{"calls that compute", role::troupe};
  for (const std::size_t workers : quick ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{1, 2, 4, 8}) {
    auto taken = in_own_process([=] {
      const node_pair nodes({.workers = workers});
      return times_of(quick ? 2 : 60, [&] {
        std::vector<future<call_reply>> asked;
        for (int i = 0; i < 8; ++i) asked.push_back(nodes.to().call("spin", {}, microseconds(std::chrono::milliseconds(1))));
        for (const auto& each : asked) each.get();
      });
    });
    for (auto& us : taken) us /= 1e3;
    one.points.push_back(point_of(static_cast<double>(workers), taken));
  }
  made.curves.push_back(std::move(one));
  made.default_x = static_cast<double>(settings().workers);
  made.default_name = "workers";
  return made;
}

plot who_runs_a_call(bool quick) {
  return by_runner({.group = "scheduling",
                    .name = "who_runs_a_call",
                    .title = "A call, by where its function runs",
                    .how_to_read = "Lower is better: the time of the call beyond that of its function.",
                    .x = {"time of the function", "us", true},
                    .y = {"time of the call, less its function", "us", true}},
                   quick, [quick](std::chrono::microseconds function, std::chrono::microseconds short_work) {
                     auto runs = in_own_process([&] { return spinning_calls(function, short_work, runs_of(function, quick)); });
                     for (auto& time : runs) time = std::max(0.1, time - static_cast<double>(function.count()));
                     return runs;
                   });
}

plot who_waits_for_a_call(bool quick) {
  return by_runner(
    {.group = "scheduling",
     .name = "who_waits_for_a_call",
     .title = "A heartbeat's way beside calls, by where their functions run",
     .how_to_read = "Lower is better: the time that 99 of 100 heartbeats keep, there and back, while one call follows "
                    "the other.",
     .x = {"time of the function", "us", true},
     .y = {"time until the answer", "us", true}},
    quick, [quick](std::chrono::microseconds function, std::chrono::microseconds short_work) {
      const int runs = quick ? 3 : 200;  // a millisecond each: at least 20 calls
      const turns_of_part found(quick ? 1 : turns,
                                [&] { return late_ones(answers_beside_calls(function, short_work, runs), {100}); });
      return found.all(0);
    });
}

plot wake_up(bool quick) {
  plot made{.group = "scheduling",
            .name = "wake_up",
            .title = "A question to another process after a pause",
            .how_to_read = "Lower is better. Threads that have slept for long have to be woken, and their cores too.",
            .x = {"pause before the question", "us", true},
            .y = {"time until the answer", "us", true}};
  struct kind {
    const char* name;
    role part;
    std::function<std::vector<double>(std::chrono::microseconds, int)> times;
  };
  for (const kind& each :
       {kind{"bare TCP", role::floor, exchanges_after_pauses},
        kind{"a request of CAF", role::peer, [](auto pause, int runs) { return caf_requests(runs, small_message, pause); }},
        kind{"a node, idle cores", role::troupe, [](auto pause, int runs) { return answers_after_pauses(pause, false, runs); }},
        kind{"a node, busy cores", role::variant,
             [](auto pause, int runs) { return answers_after_pauses(pause, true, runs); }}}) {
    curve one{each.name, each.part};
    for (const int pause : quick ? std::vector{0, 100} : std::vector{0, 10, 100, 1'000, 10'000, 100'000}) {
      const int runs = quick ? 3 : std::clamp(1'000'000 / (pause + 1'000), 15, 500);
      one.points.push_back(point_of(pause, in_own_process([&] { return each.times(std::chrono::microseconds(pause), runs); })));
    }
    made.curves.push_back(std::move(one));
  }
  return made;
}

plot late_messages(bool quick) {
  plot made{
    .group = "scheduling",
    .name = "late_messages",
    .title = "Heartbeats and errors of passes: how late the slow ones are",
    .how_to_read = "Lower is better. At 100: 99 of 100 come within this time. Busy cores have two threads of the program each.",
    .x = {"messages of which one takes longer", "", true},
    .y = {"time there and back", "us", true}};
  struct kind {
    const char* name;
    role part;
    std::vector<double> (*times)(int, bool);
    bool loaded;
  };
  for (const kind& each : {kind{"heartbeat, idle cores", role::variant, times_of_answers, false},
                           kind{"heartbeat, busy cores", role::troupe, times_of_answers, true},
                           kind{"error of a pass, idle cores", role::variant, times_of_failures, false},
                           kind{"error of a pass, busy cores", role::variant, times_of_failures, true}}) {
    const turns_of_part found(quick ? 1 : turns, [&] {
      return late_ones(each.times(quick ? 5 : each.loaded ? 100 : 1'000, each.loaded), {2, 10, 100});
    });
    made.curves.push_back(curve_of_late_ones(each.name, each.part, found, {2, 10, 100}));
  }
  return made;
}

plot fairness_by_passes(bool quick) {
  plot made{.group = "scheduling",
            .name = "fairness_by_passes",
            .title = "The slowest of equal passes that start together",
            .how_to_read = "Lower is better: 1 means that no pass takes longer than the middle one.",
            .x = {"passes at once", "", true},
            .y = {"slowest by median", ""}};
  curve one{"passes over two nodes", role::troupe};
  for (const int count : quick ? std::vector{4} : std::vector{10, 100, 1'000}) {
    const turns_of_part found(quick ? 1 : turns, [=] {
      const auto times = times_of_passes(count);
      return std::vector{*std::max_element(times.begin(), times.end()) / percentile(times, 0.5)};
    });
    one.points.push_back(point_of(count, found.all(0)));
  }
  made.curves.push_back(std::move(one));
  return made;
}

}  // namespace troupe::bench
