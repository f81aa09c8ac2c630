// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/hosts/testbed.hpp"

namespace troupe::bench {

/// `troupe train` with two stages: nodes that other processes serve, each on one of these hosts.
class host_training {
 public:
  /// Starts the nodes stage1 and stage2. The driver will run on the host `driver`.
  host_training(const hosts::testbed& all, const std::string& driver, const std::string& stage1, const std::string& stage2);

  /// Trains, as small a model as possible if `quick`, without what is not training: verification, traces, checkpoints on the way.
  /// Returns the tokens per second. Throws std::runtime_error with what the run wrote if it fails.
  double tokens_per_second(int steps, bool quick);

 private:
  const hosts::host& driver_;
  std::filesystem::path cluster_;
  std::vector<std::unique_ptr<hosts::program>> stages_;
};

/// Starts `troupe node` on a host, at this port, and waits until the node is ready. Throws std::runtime_error with what the node
/// wrote if it is not ready in time.
std::unique_ptr<hosts::program> started_node(const hosts::host& on, const std::string& name, int port,
                                             const std::vector<std::string>& more = {});

/// The bytes that the interface of the host in network 0 has sent and received so far.
double link_bytes(const hosts::host& of);

}  // namespace troupe::bench
