// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <chrono>
#include <map>
#include <vector>

#include <troupe/actors/certificates/authority.hpp>

#include "../support/scratch_folder.hpp"
#include "tests/hosts/testbed.hpp"

namespace troupe::bench {

using values_by_name = std::map<std::string, std::string>;
using figures_by_name = std::map<std::string, double>;

inline constexpr auto longest_process = std::chrono::seconds(300);
inline constexpr int port_of_nodes = 4001;

/// A process of a row: a process of this program on one of the hosts. The process ends with the object.
/// `name`: one of host_processes(). `node`: options of troupe::settings. `values`: what else the process has to know.
class host_process {
 public:
  host_process(const hosts::host& on, const std::string& name, const std::vector<std::string>& node,
               const values_by_name& values);

  pid_t pid() const noexcept { return program_.pid(); }
  /// Waits until the process says that it is ready. Returns the port that the process names, or 0. Throws std::runtime_error with
  /// what the process wrote if that does not happen in time.
  std::uint16_t ready();
  /// Waits until the process ends, and returns the figures that it printed. Throws std::runtime_error with what the process wrote if it
  /// fails or still runs after `patience`.
  figures_by_name figures(std::chrono::seconds patience = longest_process);
  /// Waits for a figure of a process that goes on. Throws std::runtime_error with what the process wrote if none comes in time.
  double figure(const std::string& name, std::chrono::seconds patience = longest_process);

 private:
  std::string name_;
  hosts::program program_;
};

/// The last lines that a program wrote, each on a line of its own.
std::string last_words(hosts::program& of);

/// The options of a node that listens on all addresses of its host at this port (0: any free one) and joins these addresses.
std::vector<std::string> node_options(const std::string& name, int port, const std::vector<std::string>& join = {});

/// What a process on the host h1 finds, with the node a and these values, which talks to the node b on the host h2. `process_of_b`: what b runs.
figures_by_name figures_of_two(const hosts::testbed& all, const std::string& process, const values_by_name& values,
                               const std::string& process_of_b = "node");

/// Limits the rate of the links of h1 and h2.
void limit_both(hosts::testbed& all, const std::string& rate);

/// Runs the process that these arguments of main() name, as host_process starts it. Returns the exit status.
int run_process(int argc, char** argv);

/// Kits of one cluster, as long as the object lives.
class kits {
 public:
  kits();

  /// The file of a node's kit. `addresses`: where the node is; troupe asks for names of nodes alone.
  std::string file(const std::string& node, const std::vector<std::string>& addresses = {}) const;
  /// The options of node_options(), with a kit instead of --insecure.
  std::vector<std::string> options(const std::string& name, int port, const std::vector<std::string>& join = {}) const;

 private:
  scratch_folder folder_;
  certificates::authority authority_;
};

}  // namespace troupe::bench
