// SPDX-License-Identifier: BSD-3-Clause
// Who runs what when: schedulers, workers, and how late messages come.
#include <list>

#include <ATen/ATen.h>
#include <caf/actor_cast.hpp>
#include <caf/after.hpp>
#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>

#include "../support/failing_passes.hpp"
#include "../support/peers.hpp"
#include "suite.hpp"

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

caf::atom_value policy_of(bool sharing) { return sharing ? caf::atom("sharing") : caf::atom("stealing"); }

template <class Measure>
curve curve_of_policy(const std::vector<std::size_t>& values, bool sharing, Measure measure) {
  return curve_over(values, sharing ? "one queue that all threads share" : "work stealing", sharing ? role::troupe : role::peer,
                    measure);
}

constexpr const char* best_of_three = "Each point is the best of three turns, and the band reaches to the worst.";

/// The point of a setting: the least median of some turns, each in processes of its own. The band: all turns.
point best_of_turns(std::size_t x, bool quick, const std::function<std::vector<double>()>& measure) {
  std::vector<double> medians;
  for (int turn = 0; turn < (quick ? 1 : turns); ++turn) medians.push_back(percentile(in_own_process(measure), 0.5));
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  return {static_cast<double>(x), *least, {*least, *most}};
}

using counts = std::vector<std::size_t>;
using configurer = std::function<void(caf::actor_system_config&, bool sharing, std::size_t x)>;

/// Messages between pairs, with a curve for each policy.
plot plot_of_pairs(const std::string& title, const std::string& label, const counts& all, bool quick,
                   const configurer& configure) {
  plot made{title,
            std::string("Lower is better. Bare CAF: 64 pairs of actors without threads, each with one message under way. ") +
              best_of_three,
            {label, "", true},
            {"time of a message", "us", true}};
  for (const bool sharing : {true, false})
    made.curves.push_back(curve_of_policy(quick ? counts{1} : all, sharing, [&](std::size_t x) {
      return best_of_turns(
        x, quick, [&] { return messages_between_pairs([&](auto& to) { configure(to, sharing, x); }, quick ? 10 : 1'000); });
    }));
  return made;
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

/// What `measure(nodes)` returns of two nodes. `loaded`: see times_of_answers().
template <class Measure>
std::vector<double> of_nodes(bool loaded, Measure measure) {
  node_pair nodes({});
  std::optional<load> busy;
  if (loaded) busy.emplace(nodes);
  auto taken = measure(nodes);
  if (busy) busy->check();
  return taken;
}

std::vector<double> times_of_failures(int runs, bool loaded) {
  return of_nodes(loaded, [=](node_pair& nodes) {
    return told_times(runs, [&] { return microseconds_until_error(nodes.here(), nodes.to()); });
  });
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

std::vector<double> exchanges_after_pauses(std::chrono::microseconds pause, int runs) {
  const other_process server([](int, const auto& tell) { serve_echo(tell); });
  tcp_floor floor(server.told());
  return times_after_pauses(pause, runs, [&] { floor.seconds(1, small_message); });
}

/// As many as take about a third of a second.
int runs_of(std::chrono::microseconds function, bool quick) {
  return quick ? 3 : std::clamp(static_cast<int>(300'000 / (function.count() + 50)), 30, 2'000);
}

/// A plot of calls by the time of their function, with a curve for each thread that may run functions. `measure(function, short_work)`
/// returns the runs that a point stands for.
template <class Measure>
plot by_runner(plot made, bool quick, Measure measure) {
  using us = std::chrono::microseconds;
  const auto lengths = quick ? std::vector{1, 1'000} : std::vector{1, 10, 50, 100, 200, 500, 1'000, 2'000, 5'000, 10'000};
  const auto add = [&](const char* name, role as, us short_work) {
    made.curves.push_back(curve_over(lengths, name, as, [&](int function) { return measure(us(function), short_work); }));
  };
  add("the network thread", role::variant, std::chrono::seconds(1));
  add("a thread for calls", role::variant, us(0));
  add("as troupe chooses", role::troupe, settings().short_work);
  made.x = {"time of the function", "us", true};
  made.default_x = static_cast<double>(settings().short_work.count());
  made.default_name = "short_work";
  return made;
}

plot scheduler_latency(bool quick) {
  plot made{"A question to an actor without a thread: policies and threads",
            std::string("Lower is better. A thread of the program asks, and waits for the answer. ") + best_of_three,
            {"threads of the scheduler", "", true},
            {"time until the answer", "us", true}};
  for (const bool sharing : {true, false})
    made.curves.push_back(curve_of_policy(quick ? counts{1} : counts{1, 2, 4, 8}, sharing, [=](std::size_t threads) {
      return best_of_turns(threads, quick,
                           [=] { return questions_to_an_actor(policy_of(sharing), threads, quick ? 20 : 3'000); });
    }));
  made.default_x = 2;
  made.default_name = "scheduler.max-threads";
  return made;
}

plot scheduler_policies(bool quick) {
  auto made = plot_of_pairs("CAF's scheduler: policies and threads", "threads of the scheduler", {1, 2, 4, 8}, quick,
                            [](caf::actor_system_config& to, bool sharing, std::size_t threads) {
                              to.set("scheduler.policy", policy_of(sharing));
                              to.set("scheduler.max-threads", threads);
                            });
  made.default_x = 2;
  made.default_name = "scheduler.max-threads";
  return made;
}

plot scheduler_throughput(bool quick) {
  return plot_of_pairs("CAF's scheduler: messages in one turn of an actor", "messages in one turn", {1, 10, 100, 1'000}, quick,
                       [](caf::actor_system_config& to, bool sharing, std::size_t messages) {
                         to.set("scheduler.policy", policy_of(sharing));
                         to.set("scheduler.max-threads", std::size_t{2});
                         to.set("scheduler.max-throughput", messages);
                       });
}

plot middleman_workers(bool quick) {
  plot made{"Small calls, 16 at once, by the threads that read messages",
            std::string("Lower is better. At 0 the network thread reads messages itself. ") + best_of_three,
            {"middleman.workers", "", true},
            {"time of a call", "us"}};
  const auto add = [&](const std::string& name, role as, carrier by) {
    made.curves.push_back(curve_over(quick ? counts{0, 1} : counts{0, 1, 2, 4}, name, as, [=](std::size_t workers) {
      const pair_settings how{.by = by,
                              .configure = [=](caf::actor_system_config& to) { to.set("middleman.workers", workers); }};
      return best_of_turns(workers, quick, [=] { return calls_together(how, 16, quick ? 5 : 500); });
    }));
  };
  add("troupe's network", role::troupe, carrier::shared_memory);
  add("CAF's network", role::peer, carrier::caf);
  made.default_x = 0;
  made.default_name = "middleman.workers";
  return made;
}

plot workers_of_a_node(bool quick) {
  plot made{"Calls of 1 ms, 8 at once, by the workers of the node",
            "Lower is better. More workers than cores cannot help calls that compute.",
            {"calls that the node runs at once (workers)", "", true},
            {"time of all 8 calls", "ms"}};
  const auto measure = [=](std::size_t workers) {
    auto taken = in_own_process([=] {
      const node_pair nodes({.workers = workers});
      return times_of(quick ? 2 : 60, [&] {
        std::vector<future<call_reply>> asked;
        for (int i = 0; i < 8; ++i) asked.push_back(nodes.to().call("spin", {}, microseconds(std::chrono::milliseconds(1))));
        for (const auto& each : asked) each.get();
      });
    });
    for (auto& us : taken) us /= 1e3;
    return taken;
  };
  made.curves = {curve_over(quick ? counts{1, 2} : counts{1, 2, 4, 8}, "calls that compute", role::troupe, measure)};
  made.default_x = static_cast<double>(settings().workers);
  made.default_name = "workers";
  return made;
}

plot who_runs_a_call(bool quick) {
  return by_runner({.title = "A call, by where its function runs",
                    .how_to_read = "Lower is better: the time of the call beyond that of its function.",
                    .y = {"time of the call, less its function", "us", true}},
                   quick, [quick](std::chrono::microseconds function, std::chrono::microseconds short_work) {
                     auto runs = in_own_process([&] { return spinning_calls(function, short_work, runs_of(function, quick)); });
                     for (auto& time : runs) time = std::max(0.1, time - static_cast<double>(function.count()));
                     return runs;
                   });
}

plot who_waits_for_a_call(bool quick) {
  return by_runner(
    {.title = "A heartbeat's way beside calls, by where their functions run",
     .how_to_read =
       "Lower is better: the time that 99 of 100 heartbeats keep, there and back, while one call follows the other.",
     .y = {"time until the answer", "us", true}},
    quick, [quick](std::chrono::microseconds function, std::chrono::microseconds short_work) {
      const int runs = quick ? 3 : 200;  // a millisecond each: at least 20 calls
      const measured_turns found(quick ? 1 : turns,
                                 [&] { return late_ones(answers_beside_calls(function, short_work, runs), {100}); });
      return found.all(0);
    });
}

plot wake_up(bool quick) {
  plot made{"A question to another process after a pause",
            "Lower is better. Threads that have slept for long have to be woken, and their cores too.",
            {"pause before the question", "us", true},
            {"time until the answer", "us", true}};
  const auto add = [&](const char* name, role as,
                       const std::function<std::vector<double>(std::chrono::microseconds, int)>& times) {
    const auto pauses = quick ? std::vector{0, 100} : std::vector{0, 10, 100, 1'000, 10'000, 100'000};
    made.curves.push_back(curve_over(pauses, name, as, [&](int pause) {
      const int runs = quick ? 3 : std::clamp(1'000'000 / (pause + 1'000), 8, 500);
      return in_own_process([&] { return times(std::chrono::microseconds(pause), runs); });
    }));
  };
  add("bare TCP", role::floor, exchanges_after_pauses);
  add("a request of CAF", role::peer, [](auto pause, int runs) { return caf_requests(runs, small_message, pause); });
  add("a node, idle cores", role::troupe, [](auto pause, int runs) { return answers_after_pauses(pause, false, runs); });
  add("a node, busy cores", role::variant, [](auto pause, int runs) { return answers_after_pauses(pause, true, runs); });
  return made;
}

plot late_messages(bool quick) {
  plot made{"Heartbeats and errors of passes: how late the slow ones are",
            "Lower is better. At 100: 99 of 100 come within this time. Busy cores have two threads of the program each.",
            {"messages of which one takes longer", "", true},
            {"time there and back", "us", true}};
  const auto add = [&](const char* name, role as, std::vector<double> (*times)(int, bool), bool loaded) {
    const measured_turns found(quick ? 1 : turns, [&] {
      return late_ones(times(quick ? 5 : loaded ? 100 : 1'000, loaded), {2, 10, 100});
    });
    made.curves.push_back(curve_of_late_ones(name, as, found, {2, 10, 100}));
  };
  add("heartbeat, idle cores", role::variant, times_of_answers, false);
  add("heartbeat, busy cores", role::troupe, times_of_answers, true);
  add("error of a pass, idle cores", role::variant, times_of_failures, false);
  add("error of a pass, busy cores", role::variant, times_of_failures, true);
  return made;
}

plot fairness_by_passes(bool quick) {
  const auto measure = [=](int count) {
    const measured_turns found(quick ? 1 : turns, [=] {
      const auto times = times_of_passes(count);
      return std::vector{*std::max_element(times.begin(), times.end()) / percentile(times, 0.5)};
    });
    return found.all(0);
  };
  return {"The slowest of equal passes that start together",
          "Lower is better: 1 means that no pass takes longer than the middle one.",
          {"passes at once", "", true},
          {"slowest by median", ""},
          {curve_over(quick ? std::vector{4} : std::vector{10, 100, 1'000}, "passes over two nodes", role::troupe, measure)}};
}

}  // namespace

std::vector<double> answers_after_pauses(std::chrono::microseconds pause, bool loaded, int runs) {
  return of_nodes(loaded, [=](node_pair& nodes) { return times_after_pauses(pause, runs, [&] { ask(nodes); }); });
}

std::vector<plot_definition> scheduling_plots() {
  return plots_of_group("scheduling", {{"scheduler_latency", scheduler_latency},
                                       {"scheduler_policies", scheduler_policies},
                                       {"scheduler_throughput", scheduler_throughput},
                                       {"middleman_workers", middleman_workers},
                                       {"workers_of_a_node", workers_of_a_node},
                                       {"who_runs_a_call", who_runs_a_call},
                                       {"who_waits_for_a_call", who_waits_for_a_call},
                                       {"wake_up", wake_up},
                                       {"late_messages", late_messages},
                                       {"fairness_by_passes", fairness_by_passes}});
}

std::vector<double> times_of_answers(int runs, bool loaded) {
  return of_nodes(loaded, [=](node_pair& nodes) { return times_of(runs, [&] { ask(nodes); }); });
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

}  // namespace troupe::bench
