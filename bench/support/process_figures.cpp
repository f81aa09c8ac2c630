// SPDX-License-Identifier: BSD-3-Clause
#include "process_figures.hpp"

#include <malloc.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

namespace troupe::bench {

namespace {

std::size_t entries_of(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

process_figures process_figures::of(pid_t process) {
  const std::filesystem::path folder = "/proc/" + std::to_string(process);
  process_figures found;
  std::ifstream stat(folder / "stat");
  std::string line;
  if (!std::getline(stat, line)) throw std::runtime_error("there is no process " + std::to_string(process));
  std::istringstream fields(line.substr(line.rfind(')') + 1));  // the name of the program may have blanks
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  found.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  found.threads = entries_of(folder / "task");
  found.descriptors = entries_of(folder / "fd");
  std::ifstream status(folder / "status");
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
