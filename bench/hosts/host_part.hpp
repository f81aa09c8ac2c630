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

using values_of_part = std::map<std::string, std::string>;
using figures_of_part = std::map<std::string, double>;

inline constexpr auto longest_part = std::chrono::seconds(300);
inline constexpr int port_of_nodes = 4001;

/// A part of a row: a process of this program on one of the hosts. The part ends with the object.
/// `name`: one of hosts_parts(). `node`: options of troupe::settings. `values`: what else the part has to know.
class host_part {
 public:
  host_part(const hosts::host& on, const std::string& name, const std::vector<std::string>& node, const values_of_part& values);

  pid_t pid() const noexcept { return program_.pid(); }
  /// Waits until the part says that it is ready. Returns the port that the part names, or 0. Throws std::runtime_error with
  /// what the part wrote if that does not happen in time.
  std::uint16_t ready();
  /// Waits until the part ends, and returns the figures that it printed. Throws std::runtime_error with what the part wrote if it
  /// fails or still runs after `patience`.
  figures_of_part figures(std::chrono::seconds patience = longest_part);
  /// Waits for a figure of a part that goes on. Throws std::runtime_error with what the part wrote if none comes in time.
  double figure(const std::string& name, std::chrono::seconds patience = longest_part);

 private:
  std::string name_;
  hosts::program program_;
};

/// The last lines that a program wrote, each on a line of its own.
std::string last_words(hosts::program& of);

/// The options of a node that listens on all addresses of its host at this port (0: any free one) and joins these addresses.
std::vector<std::string> node_options(const std::string& name, int port, const std::vector<std::string>& join = {});

/// What a part on the host h1 finds, with the node a and these values, which talks to the node b on the host h2. `part_of_b`: what b runs.
figures_of_part figures_of_two(const hosts::testbed& all, const std::string& part, const values_of_part& values,
                               const std::string& part_of_b = "node");

/// Limits the rate of the links of h1 and h2.
void limit_both(hosts::testbed& all, const std::string& rate);

/// Runs the part that these arguments of main() name, as host_part starts it. Returns the exit status.
int run_part(int argc, char** argv);

/// Kits of one cluster, as long as the object lives.
class kits {
 public:
  kits();

  /// The file of a node's kit.
  std::string file(const std::string& node) const;
  /// The options of node_options(), with a kit instead of --insecure.
  std::vector<std::string> options(const std::string& name, int port, const std::vector<std::string>& join = {}) const;

 private:
  scratch_folder folder_;
  certificates::authority authority_;
};

}  // namespace troupe::bench
