// SPDX-License-Identifier: BSD-3-Clause
#include "apps/kits_in_memory.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <troupe/actors/certificates/authority.hpp>
#include <troupe/actors/certificates/kit.hpp>

namespace troupe::apps {

namespace {

using certificates::authority;

constexpr std::size_t most_bytes_of_kit = std::size_t{64} << 10;
constexpr std::string_view end_of_certificate = "-----END CERTIFICATE-----\n";
constexpr auto role = "member";
constexpr auto no_memory = "no memory for the certificates of the cluster";

/// Makes a file in memory that only this user may open. `failure`: the text of the error if there is no memory.
support::owned_descriptor memory_file(const char* failure) {
  support::owned_descriptor file(::memfd_create("troupe-kit", MFD_CLOEXEC));
  if (!file || ::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) throw std::system_error(errno, std::generic_category(), failure);
  return file;
}

}  // namespace

kit_from_stdin::kit_from_stdin(int input, std::chrono::milliseconds patience)
    : memory_(memory_file("--certificates -: no memory for the kit")) {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::string last;  // the last bytes that were read
  std::size_t all = 0;
  for (int certificates = 0; certificates < 2; ++all) {
    if (all == most_bytes_of_kit)
      throw std::runtime_error("--certificates -: expected a kit on stdin, but what came is longer than a kit");
    const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - std::min(until, std::chrono::steady_clock::now())).count();
    pollfd watched{input, POLLIN, 0};
    if (left == 0 || ::poll(&watched, 1, static_cast<int>(left)) <= 0)
      throw std::runtime_error("--certificates -: expected a kit on stdin within " + std::to_string(patience.count() / 1000) +
                               " s");
    char byte = 0;
    if (::read(input, &byte, 1) != 1 || ::write(memory_.get(), &byte, 1) != 1)
      throw std::runtime_error("--certificates -: expected a kit on stdin, but it ended after " + std::to_string(all) +
                               " bytes");
    last += byte;
    if (last.size() > end_of_certificate.size()) last.erase(0, 1);
    certificates += last == end_of_certificate ? 1 : 0;
  }
}

launch_certificates::launch_certificates()
    : authority_(std::make_unique<const authority>(authority::in_memory("launched", std::chrono::system_clock::now()))),
      drivers_kit_(memory_file(no_memory)) {
  const auto kit = kit_of("driver");
  if (::write(drivers_kit_.get(), kit.data(), kit.size()) != static_cast<ssize_t>(kit.size()))
    throw std::system_error(errno, std::generic_category(), no_memory);
}

launch_certificates::~launch_certificates() = default;

std::string launch_certificates::kit_of(const std::string& node) const {
  return certificates::text_of(authority_->issue(node, role, {}, std::chrono::system_clock::now(), authority::own_life));
}

std::string launch_certificates::drivers_kit() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(drivers_kit_.get());
}

}  // namespace troupe::apps
