// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <optional>
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
#include <troupe/troupe.hpp>

#include "../support/no_work_graphs.hpp"
#include "../support/other_process.hpp"
#include "../support/row_program.hpp"
#include "support/simulated_sharing.hpp"

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

/// A process whose node echoes tensors of simulated devices, and the node of this process that calls it.
class echo_pair {
 public:
  /// Makes the process. To be called before this process has a second thread.
  explicit echo_pair(bool offers)
      : offers_(offers), there_([offers](int stop, const auto& tell) {
          simulated::install_shared();
          node here(settings_of("there", offers));
          here.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
          here.functions().add("with host", [](call_arguments&) {
            return call_reply{{},
                              {{"bytes", static_cast<std::int64_t>(simulated::host_bytes())},
                               {"copies", static_cast<std::int64_t>(simulated::host_copies())}}};
          });
          tell(here.port());
          wait_for(stop);
        }) {}

  /// The MiB that the two processes copy between devices and host for a call with a tensor of 16 MiB there and back.
  double host_mib(int calls) {
    join();
    if (!tensor_.defined()) tensor_ = at::ones({16 << 20}, at::device(simulated::device()).dtype(at::kByte));
    constexpr int before_they_agree = 3;
    for (int i = 0; i < before_they_agree; ++i) echo();
    const auto before = with_host("bytes");
    for (int i = 0; i < calls; ++i) echo();
    return static_cast<double>(with_host("bytes") - before) / calls / (1 << 20);
  }

  /// Messages between the processes, and copies between devices and host, for the gradients of `count` tensors of 4 KiB that come
  /// back from the other process. They go there too.
  double messages_and_copies(int count) {
    join();
    std::vector<at::Tensor> sent;
    std::vector<at::Tensor> ones;
    for (int i = 0; i < count; ++i) {
      sent.push_back(at::ones({1024}, at::device(simulated::device())).requires_grad_());
      ones.push_back(at::ones({1024}, at::device(simulated::device())));
    }
    context pass(*here_);
    const auto came = here_->peer("there").call("echo", sent).get().tensors;
    simulated::synchronize();
    const auto before = with_host("copies");
    const auto messages_before = messages();
    pass.backward(came, {.gradients = ones}).get();
    simulated::synchronize();
    const auto found = messages() - messages_before + static_cast<double>(with_host("copies") - before);
    if ((pass.gradient(sent.back()).cpu() != 1).any().item<bool>()) throw std::runtime_error("another gradient came back");
    return found;
  }

 private:
  static settings settings_of(const std::string& name, bool offers) {
    settings result;
    result.name = name;
    result.direct_memory = offers;
    return result;
  }
  void echo() {
    const auto back = here_->peer("there").call("echo", {tensor_}).get().tensors.at(0);
    simulated::synchronize();
    if (back.sizes() != tensor_.sizes() || !back.is_privateuseone()) throw std::runtime_error("another tensor came back");
  }
  void join() {
    if (here_) return;
    here_.emplace(settings_of("here", offers_));
    here_->join("127.0.0.1", there_.told());
  }
  /// "bytes" or "copies" between the devices of both processes and the host.
  std::int64_t with_host(const std::string& what) {
    const auto here = what == "bytes" ? simulated::host_bytes() : simulated::host_copies();
    return static_cast<std::int64_t>(here) + get<std::int64_t>(here_->peer("there").call("with host").get().values, what);
  }
  double messages() const {
    for (const auto& each : here_->status().peers)
      if (each.who.name == "there") return static_cast<double>(each.messages_sent + each.messages_received);
    throw std::runtime_error("the other process is not known");
  }

  const bool offers_;
  other_process there_;
  at::Tensor tensor_;
  std::optional<node> here_;
};

std::vector<timed_row> devices_rows(bool quick) {
  const auto offering = std::make_shared<echo_pair>(true);
  const auto by_host = std::make_shared<echo_pair>(false);
  simulated::install_shared();
  simulated::use_plain_memory();
  const auto host_bytes = [offering, by_host, quick] {
    const int calls = quick ? 1 : 8;
    results found;
    found.troupe = offering->host_mib(calls);
    found.peer = by_host->host_mib(calls);
    return found;
  };
  const auto small_gradients = [offering, quick] {
    const int gradients = quick ? 100 : 1000;
    results found;
    found.troupe = offering->messages_and_copies(gradients);
    constexpr int ways = 2;
    constexpr int copies = 2;  // from the one device, and to the other
    found.peer = ways * (1 + copies * gradients);
    return found;
  };
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
    {"device_offer",
     "MiB that pass the host for a tensor of 16 MiB of a simulated device to another process and back; peer: without offers.",
     "MiB",
     1,
     at_most(0.01),
     {},
     comparison::troupe_over_peer,
     {},
     false,
     host_bytes},
    {"device_small",
     "Messages and copies for 1,000 gradients of 4 KiB of a simulated device to another process and back; peer: a message a "
     "way, "
     "and two copies a gradient.",
     "messages and copies",
     1,
     at_most(0.05),
     {},
     comparison::troupe_over_peer,
     {},
     false,
     small_gradients},
    {"two_devices", "Functions of 200 µs on the CPU and two simulated accelerators: one thread (peer) and lanes.",
     "us/function", 1e6 / static_cast<double>(3 * width), at_least(2.7), [=] { return two_devices(width); }}};
}

constexpr const char* what_it_does =
  "Measures passes whose functions run on lanes (worker threads of the CPU and of two simulated accelerators), and prints a "
  "table. hand_over: a function goes to a worker and comes back, in turns to the CPU's and to an accelerator's; beside it a "
  "CAF message that goes to a detached actor and comes back; ratio is the first by the second. hand_over_pass: the same within "
  "a pass, whose thread may run a function itself that no worker has begun. two_devices: functions of 200 us on the CPU and on "
  "both accelerators, on one thread (beside) and on lanes; ratio is the first by the second. device_offer: MiB that pass the "
  "host for a call with 16 MiB of an accelerator there and back between two processes, beside the same without offers. "
  "device_small: messages and copies between devices and host for 1,000 gradients of 4 KiB to "
  "another process and back, beside a message a way and two copies a gradient. Also "
  "writes devices.json and devices.txt.";
constexpr const char* example = "Example: devices_bench --only two_devices --out out/bench";

}  // namespace

}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  return run({"devices", what_it_does, example, "beside", devices_rows}, argc, argv);
}
