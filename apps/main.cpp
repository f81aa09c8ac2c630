// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cli_test.cpp
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include <troupe/actors/process_limits.hpp>

#include "apps/command_line.hpp"
#include "apps/commands/commands.hpp"
#include "apps/signals.hpp"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Trains one libtorch model across processes: one backward pass computes the gradients on all of them.",
               "troupe"};
  app.set_version_flag("--version", "troupe " TROUPE_VERSION);
  app.require_subcommand(1);
  app.footer("Start with: troupe train --help");
  troupe::apps::add_train_command(app);
  troupe::apps::add_generate_command(app);
  troupe::apps::add_node_command(app);
  troupe::apps::add_launch_command(app);
  troupe::apps::add_status_command(app);
  troupe::apps::add_bench_command(app);
  troupe::apps::add_certs_command(app);
  troupe::apps::add_split_learning_command(app);
  troupe::apps::add_weights_commands(app);
  return troupe::apps::run_command_line(app, argc, argv);
}

/// Makes malloc keep freed memory for later tensors, because memory from the system has to be zeroed first. A process keeps up
/// to 1 GiB. Blocks above 32 MiB, the largest threshold that mallopt accepts, still go back to the system.
void keep_memory() {
  // The process has only one thread at this point.
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // NOLINT(concurrency-mt-unsafe)
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);   // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

int main(int argc, char** argv) {
  int status = 1;
  try {
    troupe::apps::leave_first_process();
    keep_memory();
    troupe::raise_descriptor_limit();
    troupe::apps::block_stop_signals();
    status = troupe::apps::status_with_output(run(argc, argv));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "troupe: %s\n", failure.what());
  } catch (...) {
    std::fputs("troupe: an exception of an unknown type\n", stderr);
  }
  // Ends without running static destructors. Those of libtorch take a quarter of a second, and troupe has none that matter.
  _exit(status);
}
