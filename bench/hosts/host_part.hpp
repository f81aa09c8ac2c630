// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/hosts/testbed.hpp"

namespace troupe::bench {

using values_of_part = std::map<std::string, std::string>;

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
  std::map<std::string, double> figures(std::chrono::seconds patience);
  /// Waits for a figure of a part that goes on. Throws std::runtime_error with what the part wrote if none comes in time.
  double figure(const std::string& name, std::chrono::seconds patience);

 private:
  std::string name_;
  hosts::program program_;
};

/// The last lines that a program wrote, each on a line of its own.
std::string last_words(hosts::program& of);

/// The options of a node that listens on all addresses of its host at this port (0: any free one) and joins these addresses.
std::vector<std::string> node_options(const std::string& name, int port, const std::vector<std::string>& join = {});

/// Runs the part that these arguments of main() name, as host_part starts it. Returns the exit status.
int run_part(int argc, char** argv);

}  // namespace troupe::bench
