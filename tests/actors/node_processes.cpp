// SPDX-License-Identifier: BSD-3-Clause
#include "actors/node_processes.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

struct order {
  std::uint16_t port = 0;
  char name[62] = {};
};

void end_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
}

[[noreturn]] void serve(support::owned_descriptor line, const std::function<void(const std::string&, std::uint16_t)>& run) {
  signal(SIGCHLD, SIG_IGN);  // no process calls wait() for the children
  const pid_t here = getpid();
  order next;
  while (recv(line.get(), &next, sizeof next, 0) == static_cast<ssize_t>(sizeof next)) {
    const pid_t child = fork();
    if (child == 0) {
      end_with_parent(here);
      line = {};
      signal(SIGCHLD, SIG_DFL);
      run(next.name, next.port);
      _exit(0);
    }
    if (send(line.get(), &child, sizeof child, MSG_NOSIGNAL) < 0) break;
  }
  _exit(0);
}

}  // namespace

nursery::nursery(std::function<void(const std::string& name, std::uint16_t port)> run) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("nursery: no socket pair");
  support::owned_descriptor ours(ends[0]);
  support::owned_descriptor theirs(ends[1]);
  const pid_t here = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("nursery: can't fork");
  if (pid_ == 0) {
    end_with_parent(here);
    ours = {};
    serve(std::move(theirs), run);
  }
  line_ = std::move(ours);
}

nursery::~nursery() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

pid_t nursery::start(const std::string& name, std::uint16_t port) {
  order next;
  next.port = port;
  std::strncpy(next.name, name.c_str(), sizeof next.name - 1);
  pid_t child = -1;
  if (send(line_.get(), &next, sizeof next, MSG_NOSIGNAL) < 0 || recv(line_.get(), &child, sizeof child, 0) < 0 || child < 0)
    throw std::runtime_error("nursery: can't start '" + name + "'");
  return child;
}

shared_signal::shared_signal() {
  void* page = mmap(nullptr, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error("shared_signal: no shared memory");
  shared_ = static_cast<sem_t*>(page);
  reset();
}

shared_signal::~shared_signal() { munmap(shared_, sizeof(sem_t)); }

void shared_signal::reset() { sem_init(shared_, 1, 0); }

void shared_signal::give() { sem_post(shared_); }

void shared_signal::take() {
  while (sem_wait(shared_) != 0 && errno == EINTR) {
  }
}

bool shared_signal::take_within(std::chrono::seconds patience) {
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += patience.count();
  int problem = 0;
  while ((problem = sem_timedwait(shared_, &until)) != 0 && errno == EINTR) {
  }
  return problem == 0;
}

namespace {

/// Shuts down each IPv4 connection if `chosen` returns true for the address of its other end.
template <class Choice>
void cut_if(Choice chosen) {
  std::vector<int> open;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    open.push_back(std::stoi(each.path().filename()));
  for (const int each : open) {
    sockaddr_in other{};
    socklen_t size = sizeof other;
    if (getpeername(each, reinterpret_cast<sockaddr*>(&other), &size) == 0 && other.sin_family == AF_INET && chosen(other))
      shutdown(each, SHUT_RDWR);
  }
}

bool is_stopped(const std::filesystem::path& thread) {
  std::ifstream in(thread / "stat");
  std::string line;
  std::getline(in, line);
  return line.find(") T ") != std::string::npos;
}

}  // namespace

void cut_connections_to(std::uint16_t port) {
  cut_if([port](const sockaddr_in& other) { return ntohs(other.sin_port) == port; });
}

void cut_connections() {
  cut_if([](const sockaddr_in&) { return true; });
}

void freeze(pid_t pid) {
  kill(pid, SIGSTOP);
  const auto threads = "/proc/" + std::to_string(pid) + "/task";
  for (bool all = false; !all; std::this_thread::yield()) {
    all = true;
    for (const auto& each : std::filesystem::directory_iterator(threads)) all = all && is_stopped(each.path());
  }
}

}  // namespace troupe::test
