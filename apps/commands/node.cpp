// SPDX-License-Identifier: BSD-3-Clause
#include "apps/commands/node.hpp"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include <troupe/actors/logging/reopen_logs.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/devices/cuda_kernels.hpp>

#include "apps/charlm/modules.hpp"
#include "apps/cluster_file.hpp"
#include "apps/command_line.hpp"
#include "apps/kit_from_stdin.hpp"
#include "apps/load_library.hpp"
#include "apps/log_options.hpp"
#include "apps/probe/probe_module.hpp"
#include "apps/proof_options.hpp"
#include "apps/ready_line.hpp"
#include "apps/signals.hpp"
#include "apps/stdin_watch.hpp"

namespace troupe::apps {

namespace {

constexpr auto longest_leave = std::chrono::milliseconds(1200);

struct node_options {
  std::string name = "node";
  std::string host = "127.0.0.1";
  std::string advertise;
  std::uint16_t port = 0;
  std::vector<std::string> join;
  int join_wait = 30;
  std::size_t workers = 1;
  std::size_t pass_workers = 0;
  int threads = 1;
  int deadline_ms = 60'000;
  int heartbeat_ms = 250;
  int forget_after = 30;
  int short_work_us = 500;
  int send_limit = 256;
  int feedback_limit = 256;
  std::string until_left;
  int until_silent = 0;
  std::vector<std::string> load;
  std::string data_dir;
  std::string metrics;
  std::vector<std::string> device_maps;
  bool cuda = false;
  bool print_port = false;
  std::string ready_token;
  bool no_direct_memory = false;
  bool no_shared_memory = false;
  std::string network = "troupe";
  bool trace = false;
  bool allow_scripts = false;
  bool carry_autocast = false;
  bool no_detached_warning = false;
  proof_options proof;
  log_options log{severity::info};

  settings node_settings() const {
    settings s;
    s.name = name;
    s.host = host;
    s.advertise = advertise;
    s.port = port;
    s.workers = workers;
    s.pass_workers = pass_workers;
    s.deadline = std::chrono::milliseconds(deadline_ms);
    s.heartbeat = std::chrono::milliseconds(heartbeat_ms);
    s.forget_after = std::chrono::seconds(forget_after);
    s.short_work = std::chrono::microseconds(short_work_us);
    s.send_limit = static_cast<std::uint64_t>(send_limit) << 20;
    s.feedback_limit = static_cast<std::uint64_t>(feedback_limit) << 20;
    s.direct_memory = !no_direct_memory;
    s.shared_memory = !no_shared_memory;
    s.network = network_named(network);
    proof.apply_to(s);
    s.join = join;
    s.join_wait = std::chrono::seconds(join_wait);
    s.data_dir = data_dir;
    s.metrics = metrics;
    for (const auto& map : device_maps) add_device_map(s, map);
    s.trace = trace;
    s.allow_scripts = allow_scripts;
    s.carry_autocast = carry_autocast;
    s.warn_detached = !no_detached_warning;
    log.apply_to(s);
    return s;
  }
};

/// Ends the process after `time`: work may run long after its node was told to leave, and nobody waits for the result any
/// more. Needs no thread, which the system may refuse.
void leave_at_latest_in(std::chrono::microseconds time) {
  ::signal(SIGALRM, [](int) { _exit(0); });
  const itimerval once{{}, {time / std::chrono::seconds(1), (time % std::chrono::seconds(1)).count()}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
}

/// The phases of the node's life. A signal that comes while the node still joins ends the process at once.
class stay {
 public:
  void on_signal() {
    if (!joined_) _exit(0);
    leave_at_latest_in(longest_leave);
  }
  /// The node may end at any time.
  void on_hangup() {
    std::shared_ptr<nodes::node_link> link;
    {
      const std::lock_guard lock(mutex_);
      link = link_;
      is_hung_up_ = !link;
    }
    if (!link) return logging::reopen_logs();
    if (const nodes::visit there(*link); there)
      static_cast<void>(there->reload());
    else
      logging::reopen_logs();
  }
  void has(node& made) {
    bool is_late = false;
    {
      const std::lock_guard lock(mutex_);
      link_ = company_of(made).link();
      is_late = is_hung_up_;
    }
    if (is_late) on_hangup();
  }
  void joined() { joined_ = true; }

 private:
  std::atomic<bool> joined_{false};
  std::mutex mutex_;                        // guards the next two
  std::shared_ptr<nodes::node_link> link_;  // null before the node has read its files
  bool is_hung_up_ = false;                 // while link_ was null
};

void run_node(const node_options& options) {
  at::set_num_threads(options.threads);
  if (options.cuda && !devices::load_cuda_kernels())
    throw error(errc::misuse, "--cuda: expected a GPU, but CUDA's driver shows this process none");
  stay here;
  stop_signal stop([&](int) { here.on_signal(); }, std::chrono::seconds(1), [&] { here.on_hangup(); });

  auto with = options.node_settings();
  std::optional<kit_from_stdin> kit;
  if (with.certificates == "-") with.certificates = kit.emplace().path();
  with.prepare = [&](node& made) {
    here.has(made);
    add_charlm_modules(made);
    probe::add_type(made);
    for (const auto& file : options.load) load_library(made, file);
    made.on_peer_gone([&](const std::string& name, const std::string&) {
      if (name == options.until_left) stop.request();
    });
  };
  node self(std::move(with));
  here.joined();
  std::optional<stdin_watch> watch;
  if (options.until_silent > 0) watch.emplace(std::chrono::seconds(options.until_silent), [&] { stop.request(); });

  ready_line ready{options.name, options.host, self.port()};
  std::printf("%s\n", options.print_port ? std::to_string(ready.port).c_str() : ready.text(options.ready_token).c_str());
  std::fflush(stdout);
  stop.wait();
  self.stop();
}

constexpr const char* node_examples =
  R"(A node listens on loopback unless --host names another address; nodes of other hosts can't reach it there.
SIGHUP makes a node read its policy and its certificates again, and open its log file again.
A node that others reach proves who it is with a kit (see `troupe certs --help`); `--certificates -` reads it from stdin.

Example: two nodes of one host that know each other
  troupe node --name stage1 --port 4001
  troupe node --name stage2 --join 127.0.0.1:4001

Example: two nodes on hosts that reach each other as h1 and h2
  troupe node --name stage1 --host 0.0.0.0 --port 4001 --certificates stage1.pem --join h1:4001 --join h2:4001    on h1
  troupe node --name stage2 --host 0.0.0.0 --port 4001 --certificates stage2.pem --join h1:4001 --join h2:4001    on h2)";

}  // namespace

void add_node_command(CLI::App& app) {
  auto options = std::make_shared<node_options>();
  auto* command = app.add_subcommand("node", "Run a plain node that waits for work");
  command->option_defaults()->always_capture_default();
  command->add_option("--name", options->name, "Name in the cluster")
    ->check(node_name())
    ->type_name("NAME")
    ->default_str("")
    ->required();
  command->add_option("--host", options->host, "Address or host name to listen on; 0.0.0.0, or :: with IPv6: all addresses");
  command
    ->add_option("--advertise", options->advertise,
                 "Address or host name by which nodes of other hosts reach this one, if it is not the one to listen on")
    ->check(advertised_host())
    ->type_name("HOST")
    ->default_str("");
  command->add_option("--port", options->port, "Port to listen on; 0: any free one")->check(between(0, 65535));
  command
    ->add_option(
      "--join", options->join,
      "Address of a seed, a node to join; may repeat: the node is ready once it has met one of them, and goes on to dial "
      "the others; its own address among them means that it may be the first one")
    ->check(host_and_port())
    ->type_name("HOST:PORT");
  command->add_option("--join-wait", options->join_wait, "Seconds to wait for a seed; 0: for ever")->check(between(0, 86'400));
  command->add_option("--workers", options->workers, "Remote calls that run at once")->check(between(1, 1024));
  command
    ->add_option(
      "--pass-workers", options->pass_workers,
      "Threads that run large functions of passes, in parallel; with one or more, each accelerator has a thread, too")
    ->check(between(0, 1024));
  command->add_option("--threads", options->threads, "libtorch's threads inside one operation")->check(between(1, 1024));
  command->add_option("--deadline-ms", options->deadline_ms, "Milliseconds that a call, a pass or a lookup may take")
    ->check(between(1, 86'400'000));
  command
    ->add_option("--heartbeat-ms", options->heartbeat_ms,
                 "Milliseconds between two heartbeats; a peer that answers none of 3 is unreachable")
    ->check(between(10, 3'600'000));
  command
    ->add_option("--forget-after", options->forget_after,
                 "Seconds after which an unreachable peer is gone: its objects and contexts are dropped")
    ->check(between(1, 86'400));
  command
    ->add_option("--short-work-us", options->short_work_us,
                 "Microseconds below which a network thread runs calls and parts of passes itself; 0: none")
    ->check(between(0, 1'000'000));
  command
    ->add_option("--send-limit", options->send_limit,
                 "MiB of calls to a peer, of answers and of gradients that may be under way; what sends more waits until the "
                 "peer keeps up")
    ->check(between(1, 1'000'000));
  command
    ->add_option("--feedback-limit", options->feedback_limit,
                 "MiB of what rounding has taken from gradients that left as int8, kept for error feedback; as much as these "
                 "gradients have is enough")
    ->check(between(1, 1'000'000));
  command
    ->add_option("--until-left", options->until_left,
                 "Stop when the peer with this name is gone: it has left, has ended, or was unreachable for long")
    ->check(node_name())
    ->type_name("NAME");
  command
    ->add_option(
      "--until-silent", options->until_silent,
      "Stop when stdin has ended or has brought nothing for this many seconds; for programs that start nodes on other "
      "hosts")
    ->check(between(1, 86'400))
    ->default_str("");
  command
    ->add_option("--load", options->load,
                 "Shared library with functions and modules for this node (see troupe/actors/library.hpp); may repeat")
    ->allow_extra_args(false)
    ->type_name("FILE");
  command
    ->add_option("--data-dir", options->data_dir,
                 "The only folder that other nodes may make this node write to and read from; it is made if it is not there; "
                 "without it they may name no path")
    ->type_name("DIR")
    ->default_str("");
  command
    ->add_option("--metrics", options->metrics,
                 "Serve /healthz and /metrics (Prometheus) by HTTP at this port of loopback (0: any free one), or at HOST:PORT")
    ->check(page_address())
    ->type_name("PORT")
    ->default_str("");
  command
    ->add_option("--device-map", options->device_maps,
                 "Which devices of a peer get the tensors of this node's devices in calls to the peer: "
                 "PEER:cuda:0=cuda:1,cpu=cuda:0; once for each peer")
    ->check(peer_and_device_map())
    ->allow_extra_args(false)
    ->type_name("PEER:MAP");
  command->add_flag("--cuda", options->cuda, "Load CUDA's kernels: the node then has the GPUs of its host");
  command->add_flag("--print-port", options->print_port, "Print only the port when ready");
  command
    ->add_option("--ready-token", options->ready_token,
                 "A word that the line with the address ends with; for programs that start nodes and read this line")
    ->type_name("WORD")
    ->default_str("");
  command->add_flag("--no-direct-memory", options->no_direct_memory,
                    "Send large tensors as messages: processes of this machine then do not read this process's memory");
  command->add_flag("--no-shared-memory", options->no_shared_memory,
                    "Exchange messages and large tensors with processes of this machine by TCP, not in memory");
  command
    ->add_option(
      "--network", options->network,
      "What carries messages: troupe's own network threads, or CAF's, which are slower, know no shared memory and need "
      "--insecure")
    ->check(CLI::IsMember({"troupe", "caf"}));
  command->add_flag("--trace", options->trace, "Record spans from the start");
  command->add_flag("--allow-scripts", options->allow_scripts,
                    "Run TorchScript modules that other nodes send; TorchScript is code");
  command->add_flag("--carry-autocast", options->carry_autocast, "Send the caller's autocast with the node's calls");
  command->add_flag("--no-detached-warning", options->no_detached_warning,
                    "Do not warn when a tensor that requires grad leaves outside any context");
  options->proof.add_to(*command);
  options->proof.add_policy_to(*command);
  options->log.add_to(*command);
  command->footer(node_examples);
  command->callback([options] { run_node(*options); });
}

}  // namespace troupe::apps
