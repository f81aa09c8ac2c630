// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "report.hpp"
#include "round_trips.hpp"
#include "tcp_floor.hpp"

namespace troupe::bench {

/// Whom the rows measure.
struct contestants {
  round_trips& peer;
  round_trips& troupe;
  tcp_floor& floor;
  std::uint16_t troupe_port;  // of troupe's next process
  bool quick;                 // two runs a row
};

struct definition {
  std::string name;
  std::function<row(const contestants&)> measure;
};

/// All rows of distributed_bench. Each checks its gradients and throws std::runtime_error when one is wrong.
std::vector<definition> distributed_rows();

}  // namespace troupe::bench
