// SPDX-License-Identifier: BSD-3-Clause
#include "other_process.hpp"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>

namespace troupe::bench {

namespace {

void write_all(int to, const void* data, std::size_t bytes) {
  for (const auto* at = static_cast<const char*>(data); bytes > 0;) {
    const auto written = ::write(to, at, bytes);
    if (written <= 0) throw std::runtime_error("the process that asked is gone");
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

/// False if the other end has closed before.
bool read_all(int from, void* data, std::size_t bytes) {
  for (auto* at = static_cast<char*>(data); bytes > 0;) {
    const auto got = ::read(from, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

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

std::vector<double> in_own_process(const std::function<std::vector<double>()>& measure) {
  auto found = support::make_pipe();
  if (!found.read || !found.write) throw std::runtime_error("pipe2 failed");
  const other_process measured([&](int, const auto&) {
    const auto values = measure();
    const std::uint64_t count = values.size();
    write_all(found.write.get(), &count, sizeof count);
    write_all(found.write.get(), values.data(), values.size() * sizeof(double));
  });
  found.write = {};
  std::uint64_t count = 0;
  std::vector<double> values;
  if (read_all(found.read.get(), &count, sizeof count)) values.resize(count);
  if (count == 0 || !read_all(found.read.get(), values.data(), values.size() * sizeof(double)))
    throw std::runtime_error("its process failed; the reason stands above");
  return values;
}

namespace {

std::size_t entries_of(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

process_figures process_figures::of(pid_t process) {
  const std::filesystem::path folder = "/proc/" + std::to_string(process);
  process_figures found;
  clockid_t clock{};
  timespec computed{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &computed) != 0)
    throw std::runtime_error("there is no process " + std::to_string(process));
  found.cpu_seconds = static_cast<double>(computed.tv_sec) + 1e-9 * static_cast<double>(computed.tv_nsec);
  found.threads = entries_of(folder / "task");
  found.descriptors = entries_of(folder / "fd");
  std::ifstream status(folder / "status");
  std::string line;
  for (std::string name; status >> name; std::getline(status, line)) {
    if (name == "VmRSS:") status >> found.resident_kib;
    if (name == "VmHWM:") status >> found.peak_kib;
  }
  return found;
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5" << std::flush; }

double resident_bytes() {
  ::malloc_trim(0);
  std::ifstream status("/proc/self/statm");
  double total = 0;
  double resident = 0;
  status >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double peak_bytes() { return static_cast<double>(process_figures::of(::getpid()).peak_kib) * 1024; }

}  // namespace troupe::bench
