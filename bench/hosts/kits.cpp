// SPDX-License-Identifier: BSD-3-Clause
#include "kits.hpp"

#include <chrono>
#include <filesystem>

#include "host_part.hpp"

namespace troupe::bench {

namespace {

std::chrono::system_clock::time_point now() { return std::chrono::system_clock::now(); }

}  // namespace

kits::kits() : authority_(certificates::authority::create(folder_.path() / "authority", "bench", now())) {}

std::string kits::file(const std::string& node) const {
  auto result = (folder_.path() / (node + ".pem")).string();
  if (!std::filesystem::exists(result)) certificates::write_kit(authority_.issue(node, "member", {}, now()), result);
  return result;
}

std::vector<std::string> kits::options(const std::string& name, int port, const std::vector<std::string>& join) const {
  auto result = node_options(name, port, join);
  std::erase(result, "--insecure");
  result.push_back("--certificates=" + file(name));
  return result;
}

}  // namespace troupe::bench
