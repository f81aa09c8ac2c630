// SPDX-License-Identifier: BSD-3-Clause
#include "process_group.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <troupe/actors/support/owned_descriptor.hpp>

#include "spawn_process.hpp"

namespace troupe::apps {

namespace {

constexpr std::size_t longest_line = 64 * 1024;  // a longer line comes in pieces

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

struct child {
  std::string name;
  pid_t pid;
  support::owned_descriptor life;    // readable when the child has ended
  support::owned_descriptor output;  // what the child writes; unused if it writes to this process's stdout
  std::string unfinished;
  bool stopped = false;  // stopped by stop_all
};

bool has_ended(const child& c) {
  pollfd ready{c.life.get(), POLLIN, 0};
  return ::poll(&ready, 1, 0) > 0;
}

}  // namespace

std::string own_program() {
  std::string path(4096, '\0');
  auto length = readlink("/proc/self/exe", path.data(), path.size());
  if (length < 0) fail("cannot find the program's own file (/proc/self/exe)");
  path.resize(static_cast<std::size_t>(length));
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

/// Starts, listens to and reaps the children on one thread. PR_SET_PDEATHSIG watches the thread that forked, not the process,
/// so that thread has to live as long as the group. Other threads use `children_` under the mutex only, so a signal never goes
/// to a process number that was already reaped.
class process_group::loop {
 public:
  explicit loop(line_sink sink) : sink_(std::move(sink)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) fail("cannot watch processes (eventfd)");
    thread_ = std::thread([this] { run(); });
  }

  ~loop() {
    stop_all(std::chrono::seconds(2));
    {
      std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake();
    thread_.join();
  }

  pid_t start(std::string name, std::vector<std::string> arguments, int input) {
    std::packaged_task<pid_t()> task([&] { return start_here(std::move(name), arguments, input); });
    auto pid = task.get_future();
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(&task);
    }
    wake();
    return pid.get();
  }

  std::optional<exited> poll_for(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return !ended_.empty(); });
    if (ended_.empty()) return std::nullopt;
    auto first = std::move(ended_.front());
    ended_.pop_front();
    return first;
  }

  std::vector<pid_t> running() const {
    std::lock_guard lock(mutex_);
    std::vector<pid_t> pids;
    for (auto& c : children_) pids.push_back(c.pid);
    return pids;
  }

  void stop_all(std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    for (auto& c : children_)
      if (!has_ended(c)) {
        c.stopped = true;
        kill(-c.pid, SIGTERM);
        kill(-c.pid, SIGCONT);  // a stopped child would not get SIGTERM
      }
    auto gone = [&] { return children_.empty(); };
    if (changed_.wait_for(lock, grace, gone)) return;
    for (auto& c : children_) kill(-c.pid, SIGKILL);
    changed_.wait(lock, gone);
  }

 private:
  void run() {
    while (true) {
      std::deque<std::packaged_task<pid_t()>*> tasks;
      {
        std::lock_guard lock(mutex_);
        if (leaving_) return;
        tasks.swap(tasks_);
      }
      for (auto* task : tasks) (*task)();
      wait_for_news();
      // Only this thread changes the list, so it may read the list without the lock.
      for (auto& c : children_) read_output(c);
      reap();
    }
  }

  void wait_for_news() {
    std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}};
    for (auto& c : children_) {
      watched.push_back({c.life.get(), POLLIN, 0});
      if (c.output) watched.push_back({c.output.get(), POLLIN, 0});
    }
    ::poll(watched.data(), watched.size(), -1);
    std::uint64_t count;
    [[maybe_unused]] auto got = read(wake_.get(), &count, sizeof count);
  }

  pid_t start_here(std::string name, const std::vector<std::string>& arguments, int input) {
    support::pipe_ends output;
    if (sink_) {
      output = support::make_pipe();
      if (!output.read) fail("cannot read the output of '" + name + "'");
      fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
    }
    pid_t pid = spawn_process(arguments, output.write.get(), input);
    support::owned_descriptor life(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!life) {
      int reason = errno;
      kill(-pid, SIGKILL);
      waitpid(pid, nullptr, 0);
      errno = reason;
      fail("cannot watch '" + name + "' (pidfd_open, Linux 5.3)");
    }
    std::lock_guard lock(mutex_);
    children_.push_back({std::move(name), pid, std::move(life), std::move(output.read), {}});
    return pid;
  }

  void read_output(child& c) {
    char buffer[4096];
    while (c.output) {
      auto got = read(c.output.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        c.output = {};
        return;
      }
      c.unfinished.append(buffer, static_cast<std::size_t>(got));
      hand_out_lines(c);
    }
  }

  void hand_out_lines(child& c) {
    std::size_t begin = 0;
    for (std::size_t end; (end = c.unfinished.find('\n', begin)) != std::string::npos; begin = end + 1)
      sink_(c.name, c.unfinished.substr(begin, end - begin));
    c.unfinished.erase(0, begin);
    if (c.unfinished.size() >= longest_line) sink_(c.name, std::exchange(c.unfinished, {}));
  }

  void reap() {
    for (std::size_t i = 0; i < children_.size();) {
      auto& c = children_[i];
      if (!has_ended(c)) {
        ++i;
        continue;
      }
      read_output(c);  // the child's last lines; a grandchild may keep the pipe open longer
      if (!c.unfinished.empty()) sink_(c.name, c.unfinished);
      std::lock_guard lock(mutex_);
      int status = 0;
      while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {
      }
      if (!c.stopped) ended_.push_back({c.name, c.pid, status, describe_exit(status)});
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      changed_.notify_all();
    }
  }

  void wake() {
    std::uint64_t one = 1;
    [[maybe_unused]] auto written = write(wake_.get(), &one, sizeof one);
  }

  line_sink sink_;
  support::owned_descriptor wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<pid_t()>*> tasks_;
  std::vector<child> children_;
  std::deque<exited> ended_;
  bool leaving_ = false;
  std::thread thread_;
};

process_group::process_group(line_sink sink) : loop_(std::make_unique<loop>(std::move(sink))) {}
process_group::~process_group() = default;

pid_t process_group::start(std::string name, std::vector<std::string> arguments, int input) {
  return loop_->start(std::move(name), std::move(arguments), input);
}

std::optional<process_group::exited> process_group::poll() { return loop_->poll_for(std::chrono::milliseconds(0)); }

std::optional<process_group::exited> process_group::poll_for(std::chrono::milliseconds timeout) {
  return loop_->poll_for(timeout);
}

std::vector<pid_t> process_group::running() const { return loop_->running(); }

void process_group::stop_all(std::chrono::milliseconds grace) { loop_->stop_all(grace); }

process_group::line_sink lines_with_names() {
  return [](const std::string& name, const std::string& line) {
    auto text = "[" + name + "] " + line + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
}

}  // namespace troupe::apps
