// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::apps {

/// The path of the running program, for starting it again with another subcommand.
std::string own_program();

/// How a process ended, from waitpid's status: "exited with 3", "killed by signal 9 (Killed)".
std::string describe_exit(int status);

/// Starts child processes, reads their output and reports how they end. A child never outlives this object or this process.
///   PG-1  the kernel kills a child when the parent dies, however the parent dies (also by `kill -9`).
///   PG-2  a child runs in a process group of its own, so Ctrl-C in a terminal reaches only the parent.
///   PG-3  a child starts with no signal blocked or ignored. Its stdin is empty unless start() names another. It inherits no
///         other open file of the parent, except stdout and stderr without a sink.
///   PG-4  poll() reports the end of each child once, after the sink got the child's last line. Children that stop_all() ended
///         are not reported.
///   PG-5  after stop_all() no child is left, not even one that ignores SIGTERM or is stopped.
///   PG-6  PG-1 to PG-5 also hold on a kernel without close_range (before Linux 5.9) or pidfd_open (before Linux 5.3).
/// Safe to use from any thread.
class process_group {
 public:
  struct exited {
    std::string name;
    pid_t pid;
    int status;       // from waitpid
    std::string how;  // describe_exit(status)
  };

  /// A function that gets each line that a child writes to stdout or stderr, without the line end. It runs on a thread of the
  /// group. It must not block for long and must not throw.
  using line_sink = std::function<void(const std::string& name, const std::string& line)>;

  /// `sink` gets the lines of the children; without it, children write to the stdout and stderr of this process. With `errors`,
  /// `sink` gets only the lines of stdout, and `errors` gets those of stderr, which are messages for a person.
  explicit process_group(line_sink sink = {}, line_sink errors = {});
  /// As stop_all(), with two seconds of grace.
  ~process_group();

  /// Starts the program arguments[0] (a path, or a name in PATH). Returns the number of its process once the program runs.
  /// Throws std::system_error with the program's name if it cannot be started. `input`: a descriptor of this process that
  /// becomes the child's stdin; -1: an empty stdin.
  pid_t start(std::string name, std::vector<std::string> arguments, int input = -1);

  /// Returns a child that has ended and was not reported yet; empty if there is none.
  std::optional<exited> poll();

  /// As poll(), but waits up to `timeout` for a child to end.
  std::optional<exited> poll_for(std::chrono::milliseconds timeout);

  std::vector<pid_t> running() const;

  /// Sends SIGTERM to all children, and SIGKILL to those that are left after the time `grace`. Returns when all children have
  /// ended.
  void stop_all(std::chrono::milliseconds grace);

 private:
  struct output;
  struct life;
  struct child;

  // Runs on `thread_`, which starts the children, reads their output and reaps them. A single thread forks all children,
  // because the kernel kills a child (PR_SET_PDEATHSIG) when the thread that forked it ends. Other threads use `children_` only
  // under the mutex. So they never send a signal to the number of a process that was already reaped.
  void run();
  void wait_for_news();
  pid_t start_here(std::string name, const std::vector<std::string>& arguments, int input);
  static void read_outputs(child& c);
  static void read_output(const std::string& name, output& from);
  static void hand_out_lines(const std::string& name, output& from);
  void reap();
  // Only the thread of run() changes the list, so that thread reads the list without the mutex.
  std::vector<child>& own_children() TROUPE_LOCKING(no_thread_safety_analysis) { return children_; }

  const line_sink sink_;
  const line_sink errors_;
  support::owned_descriptor wake_;
  mutable checked_mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<pid_t()>*> tasks_ TROUPE_GUARDED_BY(mutex_);
  std::vector<child> children_ TROUPE_GUARDED_BY(mutex_);
  std::deque<exited> ended_ TROUPE_GUARDED_BY(mutex_);
  bool leaving_ TROUPE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// Returns a sink that writes "[name] line" to this process's stderr.
process_group::line_sink lines_with_names();

}  // namespace troupe::apps
