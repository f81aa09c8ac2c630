// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// The file of the running program, for starting it again with another subcommand.
std::string own_program();

/// How a process ended, from waitpid's status: "exited with 3", "killed by signal 9 (Killed)".
std::string describe_exit(int status);

/// Child processes that live no longer than this object, and no longer than the process that made them.
///   PG-1  a child is killed by the kernel when the parent dies, however that dies (also `kill -9`).
///   PG-2  a child runs in a process group of its own, so that a terminal's Ctrl-C reaches the parent alone.
///   PG-3  a child starts with no signal blocked or ignored, an empty stdin and none of the parent's open files.
///   PG-4  every end of a child is reported by `poll` once, after the last line it wrote; those that `stop_all` ended are not.
///   PG-5  after `stop_all` no child is left, not even one that ignores SIGTERM or is stopped.
/// Safe to use from any thread.
class process_group {
 public:
  /// The end of a child.
  struct exited {
    std::string name;
    pid_t pid;
    int status;       // waitpid's
    std::string how;  // describe_exit(status)
  };

  /// Gets what children write to stdout and stderr, a line at a time without its end, on a thread of the group.
  /// It must neither block for long nor throw.
  using line_sink = std::function<void(const std::string& name, const std::string& line)>;

  /// Children write where this process does, or, with a sink, to the sink.
  explicit process_group(line_sink sink = {});
  /// Stops all with two seconds of grace.
  ~process_group();
  process_group(const process_group&) = delete;
  process_group& operator=(const process_group&) = delete;

  /// Starts the program arguments[0] (a path, or a name in PATH). Returns once it runs; throws std::system_error, naming it, if
  /// it can't.
  pid_t start(std::string name, std::vector<std::string> arguments);

  /// The next child that ended, if any.
  std::optional<exited> poll();

  /// The same, after waiting for one.
  std::optional<exited> poll_for(std::chrono::milliseconds timeout);

  /// Those that run.
  std::vector<pid_t> running() const;

  /// SIGTERM to all, SIGKILL to those left after the grace time; returns when every one is gone.
  void stop_all(std::chrono::milliseconds grace);

 private:
  class loop;
  std::unique_ptr<loop> loop_;
};

/// A sink that writes "[name] line" to this process's stderr.
process_group::line_sink lines_with_names();

}  // namespace troupe::apps
