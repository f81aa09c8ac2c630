// SPDX-License-Identifier: BSD-3-Clause
#include "grpc_calls.hpp"

#include <cstddef>
#include <cstdlib>
#include <stdexcept>

#ifndef TROUPE_GRPC_ECHO
#define TROUPE_GRPC_ECHO ""
#endif

namespace troupe::bench {

bool has_grpc() { return *TROUPE_GRPC_ECHO != '\0'; }

std::string grpc_program() {
  if (!has_grpc()) throw std::runtime_error("the benchmark was built without gRPC");
  return TROUPE_GRPC_ECHO;
}

std::vector<double> times_of_grpc(const std::vector<std::string>& lines, int runs) {
  std::vector<double> taken;
  for (const auto& line : lines) {  // gRPC's own log may stand between them
    char* end = nullptr;
    const double time = std::strtod(line.c_str(), &end);
    if (!line.empty() && *end == '\0') taken.push_back(time);
  }
  if (taken.size() != static_cast<std::size_t>(runs))
    throw std::runtime_error("grpc_echo wrote " + std::to_string(taken.size()) + " times, expected " + std::to_string(runs));
  return taken;
}

}  // namespace troupe::bench
