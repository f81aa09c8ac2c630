// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/process_limits.hpp>

#include <sys/resource.h>

#include <fstream>

namespace troupe {

std::uint64_t raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const auto before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

namespace {

/// The lowest pids.max of this process's control group and its parents; empty if no group has a limit.
std::string limit_of_control_group() {
  std::ifstream groups("/proc/self/cgroup");
  std::string least;
  for (std::string line; std::getline(groups, line);) {
    const bool is_unified = line.starts_with("0::");
    const auto controllers = line.find(":pids:");
    if (!is_unified && controllers == std::string::npos) continue;
    auto path = line.substr(is_unified ? 3 : controllers + 6);
    for (;; path.erase(path.rfind('/'))) {
      std::ifstream file((is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids") + path + "/pids.max");
      std::string most;
      if (file >> most && most != "max" && (least.empty() || std::stoull(most) < std::stoull(least))) least = most;
      if (path.empty() || path == "/") break;
    }
  }
  return least;
}

}  // namespace

std::string limits_on_threads() {
  rlimit of_user{};
  std::string text;
  if (::getrlimit(RLIMIT_NPROC, &of_user) == 0 && of_user.rlim_cur != RLIM_INFINITY)
    text = "this user may have " + std::to_string(of_user.rlim_cur) + " processes and threads (RLIMIT_NPROC, ulimit -u)";
  if (const auto of_group = limit_of_control_group(); !of_group.empty())
    text += (text.empty() ? "this control group may have " : ", this control group ") + of_group + " (pids.max)";
  return text.empty() ? "neither RLIMIT_NPROC nor pids.max limits them, so the memory or kernel.threads-max does" : text;
}

}  // namespace troupe
