// SPDX-License-Identifier: BSD-3-Clause
#include "suite_scheduling.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

#include "node_pair.hpp"
#include "suite_parts.hpp"
#include "suite_plots.hpp"
#include "tcp_floor.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr int calls_together = 16;
constexpr int turns = 3;

/// Microseconds of a small call, of 16 that are under way at once.
std::vector<double> calls_in_flight(const pair_settings& how, int runs) {
  const node_pair nodes(how);
  const auto x = at::ones({1});
  auto taken = times_of(runs, [&] {
    std::vector<future<call_reply>> asked;
    for (int i = 0; i < calls_together; ++i) asked.push_back(nodes.to().call("add", {x, x}));
    for (const auto& each : asked) each.get();
  });
  for (auto& each : taken) each /= calls_together;
  return taken;
}

/// The point of a setting: the least median of some turns, each in processes of its own. The band: all turns.
point best_of_turns(double x, const std::function<std::vector<double>()>& part, bool quick) {
  std::vector<double> medians;
  for (int turn = 0; turn < (quick ? 1 : turns); ++turn) medians.push_back(percentile(in_own_process(part), 0.5));
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  return {x, *least, {*least, *most}};
}

point point_of_calls(double x, carrier by, const std::function<void(caf::actor_system_config&)>& configure, bool quick) {
  const int runs = quick ? 5 : 500;
  return best_of_turns(
    x, [=] { return calls_in_flight({.by = by, .configure = configure}, runs); }, quick);
}

plot plot_of_calls(const std::string& name, const std::string& title, const std::string& label) {
  return {.group = "scheduling",
          .name = name,
          .title = title,
          .how_to_read = "Lower is better. Each point is the best of three turns, and the band reaches to the worst.",
          .x = {label, "", true},
          .y = {"time of a call, of 16 at once", "us"}};
}

/// A question for the status, which is answered as heartbeats are.
void ask(const node_pair& nodes) { nodes.to().status(); }

/// Keeps two threads of this process busy for each core, and the worker of the other node.
class load {
 public:
  explicit load(const node_pair& nodes) {
    const auto cores = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < 2 * cores - 1; ++i)
      threads_.emplace_back([this] {
        while (!over_) compute(std::chrono::milliseconds(5));
      });
    threads_.emplace_back([this, to = nodes.to()] {
      while (!over_) to.call("compute").get();
    });
  }
  ~load() {
    over_ = true;
    for (auto& each : threads_) each.join();
  }
  load(const load&) = delete;
  load& operator=(const load&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

std::vector<double> times_of_answers(int runs, bool loaded) {
  const node_pair nodes({});
  std::optional<load> busy;
  if (loaded) busy.emplace(nodes);
  return times_of(runs, [&] { ask(nodes); });
}

/// From the begin of a pass, whose function on the other node throws, to its error here.
std::vector<double> times_of_failures(int runs, bool loaded) {
  node_pair nodes({});
  std::optional<load> busy;
  if (loaded) busy.emplace(nodes);
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    context pass{nodes.here()};
    const auto root = nodes.to().call("throws", {at::ones({1}).requires_grad_()}).get().tensors.at(0);
    const auto begin = clock::now();
    try {
      pass.backward({root}).get();
    } catch (const error&) {
      if (i >= 0) taken.push_back(microseconds_since(begin));
    }
  }
  return taken;
}

/// Calls of "spin" that take so long, and nothing else.
std::vector<double> spinning_calls(std::chrono::microseconds function, std::chrono::microseconds short_work, int runs) {
  const node_pair nodes({.short_work = short_work});
  return times_of(runs, [&] { nodes.to().call("spin", {}, {{"us", std::int64_t{function.count()}}}).get(); });
}

/// Questions while such calls are under way, one after the other.
std::vector<double> answers_beside_calls(std::chrono::microseconds function, std::chrono::microseconds short_work, int runs) {
  const node_pair nodes({.short_work = short_work});
  std::atomic<bool> over{false};
  std::thread calls([&] {
    while (!over) nodes.to().call("spin", {}, {{"us", std::int64_t{function.count()}}}).get();
  });
  auto taken = times_of(runs, [&] { ask(nodes); });
  over = true;
  calls.join();
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
  return times_after_pauses(pause, runs, [&] { ask(nodes); });
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

}  // namespace

std::vector<double> calls_at_once(int runs) { return calls_in_flight({}, runs); }

plot scheduler_policies(bool quick) {
  auto made = plot_of_calls("scheduler_policies", "CAF's scheduler: policies and threads", "threads of CAF's scheduler");
  const auto line = [&](const std::string& name, role part, carrier by, const std::string& policy) {
    curve one{name, part};
    for (const std::size_t threads : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2, 4, 8})
      one.points.push_back(point_of_calls(
        static_cast<double>(threads), by,
        [=](caf::actor_system_config& to) {
          to.set("scheduler.policy", policy == "sharing" ? caf::atom("sharing") : caf::atom("stealing"));
          to.set("scheduler.max-threads", threads);
        },
        quick));
    made.curves.push_back(std::move(one));
  };
  line("troupe's network, sharing", role::troupe, carrier::shared_memory, "sharing");
  line("troupe's network, stealing", role::variant, carrier::shared_memory, "stealing");
  line("CAF's network, sharing", role::peer, carrier::caf, "sharing");
  line("CAF's network, stealing", role::variant, carrier::caf, "stealing");
  made.default_x = 2;
  made.default_name = "scheduler.max-threads";
  return made;
}

plot scheduler_throughput(bool quick) {
  auto made =
    plot_of_calls("scheduler_throughput", "CAF's scheduler: messages in one turn of an actor", "messages in one turn");
  const auto line = [&](const std::string& name, role part, carrier by) {
    curve one{name, part};
    for (const std::size_t messages : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 10, 100, 1'000})
      one.points.push_back(point_of_calls(
        static_cast<double>(messages), by, [=](caf::actor_system_config& to) { to.set("scheduler.max-throughput", messages); },
        quick));
    made.curves.push_back(std::move(one));
  };
  line("troupe's network", role::troupe, carrier::shared_memory);
  line("CAF's network", role::peer, carrier::caf);
  return made;
}

plot middleman_workers(bool quick) {
  auto made = plot_of_calls("middleman_workers", "Threads that read messages for the network thread", "middleman.workers");
  made.how_to_read += " At 0 the network thread reads them itself.";
  const auto line = [&](const std::string& name, role part, carrier by) {
    curve one{name, part};
    for (const std::size_t workers : quick ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0, 1, 2, 4})
      one.points.push_back(point_of_calls(
        static_cast<double>(workers), by, [=](caf::actor_system_config& to) { to.set("middleman.workers", workers); }, quick));
    made.curves.push_back(std::move(one));
  };
  line("troupe's network", role::troupe, carrier::shared_memory);
  line("CAF's network", role::peer, carrier::caf);
  made.default_x = 0;
  made.default_name = "middleman.workers";
  return made;
}

plot who_runs_a_call(bool quick) {
  plot made{.group = "scheduling",
            .name = "who_runs_a_call",
            .title = "A call, by where its function runs",
            .how_to_read = "Lower is better: the time of the call beyond that of its function.",
            .x = {"time of the function", "us", true},
            .y = {"time of the call, less its function", "us", true}};
  for (const auto& each : runners_of_calls()) {
    curve one{each.name, each.part};
    for (const auto function : lengths_of_functions(quick)) {
      auto runs = in_own_process([&] { return spinning_calls(function, each.short_work, runs_of(function, quick)); });
      for (auto& time : runs) time = std::max(0.1, time - static_cast<double>(function.count()));
      const auto middle = percentile(runs, 0.5);
      one.points.push_back({static_cast<double>(function.count()), middle, spread_of(runs, middle)});
    }
    made.curves.push_back(std::move(one));
  }
  made.default_x = static_cast<double>(settings().short_work.count());
  made.default_name = "short_work";
  return made;
}

plot who_waits_for_a_call(bool quick) {
  plot made{
    .group = "scheduling",
    .name = "who_waits_for_a_call",
    .title = "A heartbeat's way beside calls, by where their functions run",
    .how_to_read = "Lower is better: the time that 9 of 10 heartbeats keep, there and back, while one call follows the other.",
    .x = {"time of the function", "us", true},
    .y = {"time until the answer", "us", true}};
  for (const auto& each : runners_of_calls()) {
    curve one{each.name, each.part};
    for (const auto function : lengths_of_functions(quick)) {
      const int runs = runs_of(function, quick);
      one.points.push_back(
        {static_cast<double>(function.count()),
         percentile(in_own_process([&] { return answers_beside_calls(function, each.short_work, runs); }), 0.9)});
    }
    made.curves.push_back(std::move(one));
  }
  made.default_x = static_cast<double>(settings().short_work.count());
  made.default_name = "short_work";
  return made;
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
      const auto times = in_own_process([&] { return each.times(std::chrono::microseconds(pause), runs); });
      const auto middle = percentile(times, 0.5);
      one.points.push_back({static_cast<double>(pause), middle, spread_of(times, middle)});
    }
    made.curves.push_back(std::move(one));
  }
  return made;
}

plot late_messages(bool quick) {
  plot made{.group = "scheduling",
            .name = "late_messages",
            .title = "Heartbeats and errors of passes: how late the slow ones are",
            .how_to_read =
              "Lower is better. At 100 is the time that 99 of 100 keep. Cores are busy with two threads of the program each.",
            .x = {"messages of which one takes longer", "", true},
            .y = {"time there and back", "us", true}};
  struct kind {
    const char* name;
    role part;
    std::vector<double> (*times)(int, bool);
    bool loaded;
  };
  for (const kind& each : {kind{"heartbeat, idle cores", role::floor, times_of_answers, false},
                           kind{"heartbeat, busy cores", role::troupe, times_of_answers, true},
                           kind{"error of a pass, idle cores", role::variant, times_of_failures, false},
                           kind{"error of a pass, busy cores", role::variant, times_of_failures, true}}) {
    const auto times = in_own_process([&] { return each.times(quick ? 5 : each.loaded ? 200 : 2'000, each.loaded); });
    curve one{each.name, each.part};
    for (const double one_of : {2, 10, 100}) one.points.push_back({one_of, percentile(times, 1 - 1 / one_of)});
    made.curves.push_back(std::move(one));
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
    const auto times = in_own_process([=] { return times_of_passes(count); });
    one.points.push_back({static_cast<double>(count), *std::max_element(times.begin(), times.end()) / percentile(times, 0.5)});
  }
  made.curves.push_back(std::move(one));
  return made;
}

}  // namespace troupe::bench
