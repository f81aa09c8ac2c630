// SPDX-License-Identifier: BSD-3-Clause
#include "process_group.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "spawn_process.hpp"

namespace troupe::apps {

namespace {

constexpr std::size_t longest_line = 64 * 1024;  // in bytes; the sink gets a longer line in pieces

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

std::string own_program() {
  std::error_code failure;
  auto path = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) throw std::system_error(failure, "cannot find the program's own file (/proc/self/exe)");
  return path;
}

std::string describe_exit(int status) {
  if (WIFEXITED(status)) return "exited with " + std::to_string(WEXITSTATUS(status));
  if (WIFSIGNALED(status)) {
    const char* text = sigdescr_np(WTERMSIG(status));
    return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" + (text != nullptr ? text : "unknown") + ")";
  }
  return "ended with status " + std::to_string(status);
}

/// One output of a child: stdout or stderr. `file` is the end of the pipe from which this process reads. Without `file`, the
/// child writes to stdout or stderr of this process.
struct process_group::output {
  support::owned_descriptor file;
  const line_sink* sink = nullptr;
  std::string unfinished;
};

/// Has a descriptor, `file`, that becomes readable when the child has ended.
struct process_group::life {
  explicit life(pid_t pid) : file(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
    if (file) return;
    auto pipe = support::make_pipe();
    if (!pipe.read) return;
    file = std::move(pipe.read);
    watcher = std::jthread([pid, open = std::move(pipe.write)]() mutable {
      siginfo_t end;
      while (waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
      }
      open = {};
    });
  }

  support::owned_descriptor file;
  std::jthread watcher;  // used on a kernel without pidfd_open
};

struct process_group::child {
  std::string name;
  pid_t pid;
  life end;
  std::vector<output> outputs;
  bool stopped = false;  // stopped by stop_all

  bool has_ended() const {
    pollfd ready{end.file.get(), POLLIN, 0};
    return ::poll(&ready, 1, 0) > 0;
  }
};

process_group::process_group(line_sink sink, line_sink errors)
    : sink_(std::move(sink)), errors_(std::move(errors)), wake_(support::make_bell()) {
  if (!wake_) fail("cannot watch processes (eventfd)");
  thread_ = std::thread([this] { run(); });
}

process_group::~process_group() {
  stop_all(std::chrono::seconds(2));
  {
    checked_lock lock(mutex_);
    leaving_ = true;
  }
  support::ring(wake_.get());
  thread_.join();
}

pid_t process_group::start(std::string name, std::vector<std::string> arguments, int input) {
  std::packaged_task<pid_t()> task([&] { return start_here(std::move(name), arguments, input); });
  auto pid = task.get_future();
  {
    checked_lock lock(mutex_);
    tasks_.push_back(&task);
  }
  support::ring(wake_.get());
  return pid.get();
}

std::optional<process_group::exited> process_group::poll() { return poll_for(std::chrono::milliseconds(0)); }

std::optional<process_group::exited> process_group::poll_for(std::chrono::milliseconds timeout) {
  checked_unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&]() TROUPE_REQUIRES(mutex_) { return !ended_.empty(); });
  if (ended_.empty()) return std::nullopt;
  auto first = std::move(ended_.front());
  ended_.pop_front();
  return first;
}

std::vector<pid_t> process_group::running() const {
  checked_lock lock(mutex_);
  std::vector<pid_t> pids;
  for (auto& c : children_) pids.push_back(c.pid);
  return pids;
}

void process_group::stop_all(std::chrono::milliseconds grace) {
  checked_unique_lock lock(mutex_);
  for (auto& c : children_)
    if (!c.has_ended()) {
      c.stopped = true;
      kill(-c.pid, SIGTERM);
      kill(-c.pid, SIGCONT);  // a child that is stopped gets SIGTERM only after SIGCONT
    }
  auto gone = [&]() TROUPE_REQUIRES(mutex_) { return children_.empty(); };
  if (changed_.wait_for(lock, grace, gone)) return;
  for (auto& c : children_) kill(-c.pid, SIGKILL);
  changed_.wait(lock, gone);
}

void process_group::run() {
  while (true) {
    std::deque<std::packaged_task<pid_t()>*> tasks;
    {
      checked_lock lock(mutex_);
      if (leaving_) return;
      tasks.swap(tasks_);
    }
    for (auto* task : tasks) (*task)();
    wait_for_news();
    for (auto& c : own_children()) read_outputs(c);
    reap();
  }
}

void process_group::wait_for_news() {
  std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}};
  for (auto& c : own_children()) {
    watched.push_back({c.end.file.get(), POLLIN, 0});
    for (auto& each : c.outputs)
      if (each.file) watched.push_back({each.file.get(), POLLIN, 0});
  }
  ::poll(watched.data(), watched.size(), -1);
  support::quiet(wake_.get());
}

pid_t process_group::start_here(std::string name, const std::vector<std::string>& arguments, int input) {
  std::vector<output> outputs;
  const auto pipe_for = [&](const line_sink& sink) {
    support::owned_descriptor write;
    if (!sink) return write;
    auto pipe = support::make_pipe();
    if (!pipe.read) fail("cannot read the output of '" + name + "'");
    fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    outputs.push_back({std::move(pipe.read), &sink, {}});
    return std::move(pipe.write);
  };
  const auto to = pipe_for(sink_);
  const auto errors_to = pipe_for(errors_);
  const pid_t pid = spawn_process(arguments, to.get(), errors_to ? errors_to.get() : to.get(), input);
  std::optional<life> end;
  int reason = 0;
  try {
    end.emplace(pid);
    if (!end->file) reason = errno;
  } catch (const std::system_error& no_thread) {
    reason = no_thread.code().value();
  }
  if (reason != 0) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    errno = reason;
    fail("cannot watch '" + name + "'");
  }
  checked_lock lock(mutex_);
  children_.push_back({std::move(name), pid, std::move(*end), std::move(outputs)});
  return pid;
}

void process_group::read_outputs(child& c) {
  for (auto& each : c.outputs) read_output(c.name, each);
}

void process_group::read_output(const std::string& name, output& from) {
  char buffer[4096];
  while (from.file) {
    auto got = read(from.file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      from.file = {};
      return;
    }
    from.unfinished.append(buffer, static_cast<std::size_t>(got));
    hand_out_lines(name, from);
  }
}

void process_group::hand_out_lines(const std::string& name, output& from) {
  auto& text = from.unfinished;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    (*from.sink)(name, text.substr(begin, end - begin));
  text.erase(0, begin);
  if (text.size() >= longest_line) (*from.sink)(name, std::exchange(text, {}));
}

void process_group::reap() {
  auto& all = own_children();
  for (std::size_t i = 0; i < all.size();) {
    auto& c = all[i];
    if (!c.has_ended()) {
      ++i;
      continue;
    }
    read_outputs(c);  // the child's last lines: do not wait for the end of the pipe, which a grandchild may keep open
    for (auto& each : c.outputs)
      if (!each.unfinished.empty()) (*each.sink)(c.name, each.unfinished);
    checked_lock lock(mutex_);
    int status = 0;
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!c.stopped) ended_.push_back({c.name, c.pid, status, describe_exit(status)});
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    changed_.notify_all();
  }
}

process_group::line_sink lines_with_names() {
  return [](const std::string& name, const std::string& line) {
    auto text = "[" + name + "] " + line + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
}

}  // namespace troupe::apps
