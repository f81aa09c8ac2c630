// SPDX-License-Identifier: BSD-3-Clause
#include "apps/launch_certificates.hpp"

#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include <troupe/actors/certificates/authority.hpp>

namespace troupe::apps {

namespace {

using certificates::authority;

constexpr auto role = "member";

std::filesystem::path new_folder() {
  auto name = (std::filesystem::temp_directory_path() / "troupe-launch-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "no folder for the certificates of the cluster: " + name);
  return name;
}

}  // namespace

launch_certificates::launch_certificates() : folder_(new_folder()) {
  const auto now = std::chrono::system_clock::now();
  authority_ = std::make_unique<const authority>(authority::create(folder_ / "authority", "launched", now));
  certificates::write_kit(authority_->issue("driver", role, {}, now, authority::own_life), drivers_kit());
}

launch_certificates::~launch_certificates() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string launch_certificates::kit_of(const std::string& node) const {
  return certificates::text_of(authority_->issue(node, role, {}, std::chrono::system_clock::now(), authority::own_life));
}

std::string launch_certificates::drivers_kit() const { return (folder_ / "driver.pem").string(); }

}  // namespace troupe::apps
