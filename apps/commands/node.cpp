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
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include <troupe/actors/logging/reopen_logs.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/node_options.hpp>
#include <troupe/devices/cuda_kernels.hpp>

#include "apps/charlm/modules.hpp"
#include "apps/cluster_file.hpp"
#include "apps/command_line.hpp"
#include "apps/kit_from_stdin.hpp"
#include "apps/load_library.hpp"
#include "apps/node_arguments.hpp"
#include "apps/probe/probe_module.hpp"
#include "apps/ready_line.hpp"
#include "apps/signals.hpp"
#include "apps/stdin_watch.hpp"

namespace troupe::apps {

namespace {

constexpr auto longest_leave = std::chrono::milliseconds(1200);

struct node_command {
  settings with;
  int threads = 1;
  int until_silent = 0;
  std::vector<std::string> load;
  bool cuda = false;
  bool print_port = false;
  std::string ready_token;
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

void run_node(const node_command& options) {
  at::set_num_threads(options.threads);
  if (options.cuda && !devices::load_cuda_kernels())
    throw error(errc::misuse, "--cuda: expected a GPU, but CUDA's driver shows this process none");
  stay here;
  stop_signal stop([&](int) { here.on_signal(); }, std::chrono::seconds(1), [&] { here.on_hangup(); });

  auto with = options.with;
  std::optional<kit_from_stdin> kit;
  if (with.certificates == "-") with.certificates = kit.emplace().path();
  with.prepare = [&](node& made) {
    here.has(made);
    add_charlm_modules(made);
    probe::add_type(made);
    for (const auto& file : options.load) load_library(made, file);
    made.on_peer_gone([&](const std::string& name, const std::string&) {
      if (name == options.with.until_left) stop.request();
    });
  };
  node self(std::move(with));
  here.joined();
  std::optional<stdin_watch> watch;
  if (options.until_silent > 0) watch.emplace(std::chrono::seconds(options.until_silent), [&] { stop.request(); });

  ready_line ready{options.with.name, options.with.host, self.port()};
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
  auto options = std::make_shared<node_command>();
  options->with.log_level = severity::info;
  auto* command = app.add_subcommand("node", "Run a plain node that waits for work");
  command->option_defaults()->always_capture_default();
  std::vector<std::string_view> names;
  for (const auto& each : node_options()) names.push_back(each.name);
  add_node_options(*command, options->with, names);
  command->get_option("--name")->default_str("")->required();
  command->add_option("--threads", options->threads, "libtorch's threads inside one operation")->check(between(1, 1024));
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
  command->add_flag("--cuda", options->cuda, "Load CUDA's kernels: the node then has the GPUs of its host");
  command->add_flag("--print-port", options->print_port, "Print only the port when ready");
  command
    ->add_option("--ready-token", options->ready_token,
                 "A word that the line with the address ends with; for programs that start nodes and read this line")
    ->type_name("WORD")
    ->default_str("");
  command->footer(node_examples);
  command->callback([options] { run_node(*options); });
}

}  // namespace troupe::apps
