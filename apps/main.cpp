// SPDX-License-Identifier: BSD-3-Clause
#include <malloc.h>
#include <unistd.h>

#include "apps/command_line.hpp"
#include "apps/commands/generate.hpp"
#include "apps/commands/launch.hpp"
#include "apps/commands/node.hpp"
#include "apps/commands/status.hpp"
#include "apps/commands/train.hpp"
#include "apps/signals.hpp"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Runs the backward pass of libtorch programs as a company of actors, on one machine or across many.", "troupe"};
  app.set_version_flag("--version", "troupe " TROUPE_VERSION);
  app.require_subcommand(1);
  app.footer("Start with: troupe train --help");
  troupe::apps::add_train_command(app);
  troupe::apps::add_generate_command(app);
  troupe::apps::add_node_command(app);
  troupe::apps::add_launch_command(app);
  troupe::apps::add_status_command(app);
  return troupe::apps::run_command_line(app, argc, argv);
}

/// What tensors leave is used for the next ones instead of going back to the system, which would zero it again. Of it a process
/// keeps up to 1 GiB. Larger ones than 32 MiB, the most that can be asked for, go back as before.
void keep_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

}  // namespace

int main(int argc, char** argv) {
  keep_memory();
  troupe::apps::block_stop_signals();
  int status = run(argc, argv);
  // libtorch's static destructors take a quarter of a second of each process that stops; of ours nothing is left by now.
  _exit(troupe::apps::status_with_output(status));
}
