// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/curves.hpp"
#include "host_process.hpp"

namespace troupe::bench {

/// "1,2".
std::string list_of(const std::vector<std::int64_t>& numbers);

/// What asks on h1 and is answered on h2.
struct way {
  std::string name;
  role as;
  std::string other_side;  // the process on h2
  std::string prefix{};    // of the names of the processes on h1
  std::vector<std::string> options_there{};
  std::vector<std::string> options_here{};

  /// A node on each host. `proofs`: with TLS.
  static way of_troupe(std::string name, role as, const kits* proofs);
  static way of_caf() { return {"a request of CAF", role::peer, "caf_echo", "caf_"}; }
  static way of_tcp() { return {"bare TCP", role::floor, "echo", "tcp_"}; }

  /// The figures of a process on h1, with these values.
  figures_by_name figures(const hosts::testbed& all, const std::string& name_of_process, values_by_name values) const;
};

/// A way by its figures "sizes": see processes.hpp. `bytes`: how many travel together for each of `sizes`.
struct sizes_of_way {
  std::string name;
  role as;
  std::function<figures_by_name(const std::vector<std::int64_t>& sizes, std::int64_t bytes)> figures;
};

/// Bare TCP, CAF, gRPC where it is installed, TensorPipe, and troupe over TCP. They last as long as `all`.
std::vector<sizes_of_way> plain_ways(const hosts::testbed& all);
/// Those, and what has TLS.
std::vector<sizes_of_way> ways(const hosts::testbed& all, const kits& proofs);

}  // namespace troupe::bench
