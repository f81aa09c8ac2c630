// SPDX-License-Identifier: BSD-3-Clause
#include "other_process.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>

namespace troupe::bench {

void wait_for(int stop) {
  char word;
  [[maybe_unused]] const auto asked = ::read(stop, &word, 1);
}

other_process::other_process(const std::function<void(int, const std::function<void(std::uint16_t)>&)>& run) {
  auto stop = support::make_pipe();
  auto told = support::make_pipe();
  if (!stop.read || !told.read) throw std::runtime_error("pipe2 failed");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ > 0) {
    stop_ = std::move(stop.write);
    told_ = std::move(told.read);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  stop.write = {};
  told.read = {};
  int code = 0;
  try {
    // Sets the number of threads while the process has one thread. After a fork, libtorch makes its thread pool again in the
    // first thread that needs the pool.
    at::set_num_threads(1);
    run(stop.read.get(), [&](std::uint16_t number) {
      if (::write(told.write.get(), &number, sizeof number) != sizeof number) throw std::runtime_error("the parent is gone");
    });
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "benchmark, other process: %s\n", failed.what());
    code = 1;
  }
  ::_exit(code);
}

void other_process::watch(std::string name, std::function<void()> lost) {
  watcher_ = std::thread([this, name = std::move(name), lost = std::move(lost)] {
    siginfo_t how{};
    if (::waitid(P_PID, static_cast<id_t>(child_), &how, WEXITED | WNOWAIT) != 0 || may_end_) return;
    std::fprintf(stderr, "benchmark: the process of %s ended in the middle of the run, %s %d; nothing was written\n",
                 name.c_str(), how.si_code == CLD_EXITED ? "with status" : "by signal", how.si_status);
    lost();
    ::_exit(1);
  });
}

void other_process::stop() {
  if (!stop_) return;
  may_end_ = true;
  const char word = 0;  // the child does not notice a mere close, because later children hold this end of the pipe too
  [[maybe_unused]] const auto written = ::write(stop_.get(), &word, 1);
  stop_ = {};
}

other_process::~other_process() {
  stop();
  told_ = {};
  if (watcher_.joinable()) watcher_.join();
  ::waitpid(child_, nullptr, 0);
}

std::uint16_t other_process::told() const {
  std::uint16_t number = 0;
  if (::read(told_.get(), &number, sizeof number) != sizeof number)
    throw std::runtime_error("the other process ended before it was ready");
  return number;
}

}  // namespace troupe::bench
