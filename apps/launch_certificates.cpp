// SPDX-License-Identifier: BSD-3-Clause
#include "apps/launch_certificates.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include <troupe/actors/certificates/authority.hpp>
#include <troupe/actors/certificates/kit.hpp>

namespace troupe::apps {

namespace {

using certificates::authority;

constexpr auto role = "member";

}  // namespace

launch_certificates::launch_certificates()
    : authority_(std::make_unique<const authority>(authority::in_memory("launched", std::chrono::system_clock::now()))),
      drivers_kit_(::memfd_create("troupe-kit", MFD_CLOEXEC)) {
  const auto kit = kit_of("driver");
  if (!drivers_kit_ || ::fchmod(drivers_kit_.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::write(drivers_kit_.get(), kit.data(), kit.size()) != static_cast<ssize_t>(kit.size()))
    throw std::system_error(errno, std::generic_category(), "no memory for the certificates of the cluster");
}

launch_certificates::~launch_certificates() = default;

std::string launch_certificates::kit_of(const std::string& node) const {
  return certificates::text_of(authority_->issue(node, role, {}, std::chrono::system_clock::now(), authority::own_life));
}

std::string launch_certificates::drivers_kit() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(drivers_kit_.get());
}

}  // namespace troupe::apps
