// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/program.hpp"
#include "support/temporary_folder.hpp"

/// Limits on the processes and threads of the programs that a test starts. Only root can set them.
namespace troupe::apps::test {

/// A command for `setpriv`: it runs as a user of its own. The system limits the threads of a user (RLIMIT_NPROC), but not of root.
inline std::vector<std::string> as_own_user(std::vector<std::string> command) {
  command.insert(command.begin(), {"--reuid=64126", "--regid=64126", "--clear-groups"});
  return command;
}

/// Leaves a process of that user no further thread.
inline void take_threads_from(pid_t pid) {
  program limit(as_own_user({"prlimit", "--pid", std::to_string(pid), "--nproc=1:1"}), "/usr/bin/setpriv");
  BOOST_REQUIRE(limit.how_it_ends() == "exited with 0");
}

/// A control group whose processes and threads are limited (pids.max), and a group within it for the programs.
class control_group {
 public:
  control_group() {
    std::filesystem::create_directories(inner());
    limit("max");
  }
  ~control_group() {
    std::error_code ignored;  // both are gone once their programs have ended
    for (const auto& each : {inner(), path_}) std::filesystem::remove(each, ignored);
  }
  control_group(const control_group&) = delete;
  control_group& operator=(const control_group&) = delete;

  void limit(const std::string& most) const {
    if (!(std::ofstream(path_ / "pids.max") << most << std::flush))
      throw std::runtime_error("expected to write to " + (path_ / "pids.max").string());
  }
  /// A command for `sh`, which then runs in the inner group.
  std::vector<std::string> in_group(std::vector<std::string> command) const {
    command.insert(command.begin(), {"-c", "echo $$ > \"$0\" && exec \"$@\"", inner() / "cgroup.procs"});
    return command;
  }

 private:
  /// The folder of the groups whose processes are counted: the unified hierarchy (version 2), or that of version 1.
  static std::filesystem::path counted() {
    const std::filesystem::path unified = "/sys/fs/cgroup";
    const bool is_unified = content_of(unified / "cgroup.subtree_control").find("pids") != std::string::npos;
    return is_unified ? unified : unified / "pids";
  }
  std::filesystem::path inner() const { return path_ / "inner"; }

  const std::filesystem::path path_ = counted() / ("troupe-test-" + std::to_string(::getpid()));
};

/// Preconditions of tests. Where they do not hold, they print "SKIPPED: " and the reason.
inline boost::test_tools::assertion_result is_root(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(::geteuid() == 0);
  if (!result) std::printf("SKIPPED: only root starts programs of another user\n");
  return result;
}
inline boost::test_tools::assertion_result makes_control_groups(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(true);
  try {
    const control_group probe;
  } catch (const std::exception& problem) {
    result = false;
    std::printf("SKIPPED: no control group can be made here: %s\n", problem.what());
  }
  return result;
}

}  // namespace troupe::apps::test
