// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// Whether this program was built where gRPC is installed.
bool has_grpc();

/// The file of the program grpc_echo, which calls by gRPC (bench/support/grpc_echo.cpp). Throws std::runtime_error if there is none.
std::string grpc_program();

/// The microseconds of each call, from the lines that grpc_echo wrote. Throws std::runtime_error unless there are `runs`.
std::vector<double> times_of_grpc(const std::vector<std::string>& lines, int runs);

}  // namespace troupe::bench
