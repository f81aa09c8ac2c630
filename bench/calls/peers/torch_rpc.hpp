// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "../round_trips.hpp"

namespace troupe::bench {

/// A driver on PyTorch's TensorPipe agent and distributed engine. `meeting_file`: a file for this run only, through which the
/// processes find each other.
std::unique_ptr<round_trips> make_torch_driver(const std::string& meeting_file);

/// What another process runs, at `rank` in the chain: answers calls until `stop` can be read.
void serve_torch(const std::string& meeting_file, int rank, int stop);

}  // namespace troupe::bench
