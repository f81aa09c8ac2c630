// SPDX-License-Identifier: BSD-3-Clause
#include "devices_rows.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
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

}  // namespace

std::vector<row_definition> devices_rows(bool quick) {
  simulated::install();
  const int count = quick ? 10 : 1000;
  const double each = 1e6 / count;
  std::vector<row_definition> rows;
  rows.push_back({"hand_over", "us", each, comparison::troupe_over_peer, 2, "", [=] { return hand_over(count); }, false});
  rows.push_back({"hand_over_pass", "us/function", each / 2, comparison::troupe_over_peer, 2, "",
                  [=] { return hand_over_in_a_pass(static_cast<std::size_t>(count)); }, false});
  const std::size_t width = quick ? 4 : 50;
  rows.push_back({"two_devices", "us/function", 1e6 / static_cast<double>(3 * width), comparison::peer_over_troupe, 2.7, "",
                  [=] { return two_devices(width); }, false});
  return rows;
}

}  // namespace troupe::bench
