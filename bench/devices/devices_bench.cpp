// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/worker_team.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/job_board.hpp>
#include <troupe/engine/torch_compat.hpp>

#include "../support/no_work_graphs.hpp"
#include "../support/row_program.hpp"
#include "support/simulated_accelerator.hpp"

namespace troupe::bench {

namespace {

namespace simulated = test::simulated;
using engine::job;

/// A team with one worker for the CPU.
struct team {
  caf::actor_system_config config;
  caf::actor_system system{config.set("scheduler.max-threads", std::size_t{1})};
  worker_team workers{system, 1};
};

/// The workers of a team, for functions of any size.
class any_size final : public engine::cpu_workers {
 public:
  explicit any_size(worker_team& team) : cpu_workers(team.count(), 0), team_(team) {}
  void post(std::function<void()> work) override { team_.post(std::move(work)); }
  engine::lane* lane_of(c10::Device device) noexcept override { return team_.lane_of(device); }

 private:
  worker_team& team_;
};

/// Sends an integer to a detached actor and waits for the answer.
class raw_messages {
 public:
  explicit raw_messages(caf::actor_system& system) : self_(system), other_(system.spawn<caf::detached>(answer)) {}
  ~raw_messages() { self_->send_exit(other_, caf::exit_reason::user_shutdown); }

  void there_and_back(int value) {
    self_->send(other_, caf::actor(self_), value);
    self_->receive([](int) {});
  }

 private:
  static caf::behavior answer(caf::event_based_actor* self) {
    return {[self](const caf::actor& to, int value) { self->send(to, value); }};
  }

  caf::scoped_actor self_;
  caf::actor other_;
};

workload hand_over(int count) {
  struct both {
    team own;
    raw_messages raw{own.system};
  };
  const auto beside = std::make_shared<both>();
  const auto run = [beside, count](runner which) {
    if (which == runner::peer) {
      for (int i = 0; i < count; ++i) beside->raw.there_and_back(i);
      return;
    }
    auto& workers = beside->own.workers;
    const std::array lanes{&workers.cpu_lane(), workers.lane_of(simulated::device())};
    engine::job_board board({.run = [](job&) {}}, true);
    auto own = board.own();
    for (int i = 0; i < count; ++i) {
      board.add(*lanes[static_cast<std::size_t>(i % 2)], std::make_unique<job>());
      board.wait(own);
      if (board.collect().size() != 1) throw std::runtime_error("a job did not come back");
    }
  };
  return {run, {}, {}, false};
}

/// The peer is a message there and back for each function.
workload hand_over_in_a_pass(std::size_t pairs) {
  struct both {
    team own;
    any_size workers{own.workers};
    raw_messages raw{own.system};
  };
  const auto beside = std::make_shared<both>();
  const auto graph = make_chain_over_devices(pairs, simulated::device());
  const auto run = [graph, beside, pairs](runner which) {
    if (which == runner::peer)
      for (std::size_t i = 0; i < 2 * pairs; ++i) beside->raw.there_and_back(0);
    else
      troupe::backward({graph.root}, {graph.gradient}, {.workers = &beside->workers});
  };
  return {run, {}, {}, false};
}

/// The peer is the pass on one thread.
workload two_devices(std::size_t width) {
  constexpr double microseconds = 200;
  const auto graph = make_wide_over_devices(width, microseconds, {simulated::device(0), simulated::device(1)});
  const auto beside = std::make_shared<team>();
  const auto run = [graph, beside](runner which) {
    pass_options options;
    options.workers = which == runner::troupe ? &beside->workers : nullptr;
    troupe::backward({graph.root}, {graph.gradient}, options);
  };
  return {run, {}, {}, false};
}

std::vector<timed_row> devices_rows(bool quick) {
  simulated::install();
  const int count = quick ? 10 : 1000;
  const std::size_t width = quick ? 4 : 50;
  const double each = 1e6 / count;
  return {
    {"hand_over", "A function goes to a worker thread and comes back; peer: a message to a detached actor and back.", "us",
     each, at_most(2), [=] { return hand_over(count); }, comparison::troupe_over_peer},
    {"hand_over_pass",
     "A function of a pass goes to a worker thread, unless the thread of the pass runs it first; peer: a message and back.",
     "us/function", each / 2, at_most(2), [=] { return hand_over_in_a_pass(static_cast<std::size_t>(count)); },
     comparison::troupe_over_peer},
    {"two_devices", "Functions of 200 µs on the CPU and two simulated accelerators: one thread (peer) and lanes.",
     "us/function", 1e6 / static_cast<double>(3 * width), at_least(2.7), [=] { return two_devices(width); }}};
}

constexpr const char* what_it_does =
  "Measures passes whose functions run on lanes (worker threads of the CPU and of two simulated accelerators), and prints a "
  "table. hand_over: a function goes to a worker and comes back, in turns to the CPU's and to an accelerator's; beside it a "
  "CAF message that goes to a detached actor and comes back; ratio is the first by the second. hand_over_pass: the same within "
  "a pass, whose thread may run a function itself that no worker has begun. two_devices: functions of 200 us on the CPU and on "
  "both accelerators, on one thread (beside) and on lanes; ratio is the first by the second. Also writes devices.json and "
  "devices.txt.";
constexpr const char* example = "Example: devices_bench --only two_devices --out out/bench";

}  // namespace

}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  return run({"devices", what_it_does, example, "beside", devices_rows}, argc, argv);
}
