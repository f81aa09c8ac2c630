// SPDX-License-Identifier: BSD-3-Clause
#include "apps/kit_from_stdin.hpp"

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

namespace troupe::apps {

namespace {

constexpr std::size_t most_bytes_of_kit = std::size_t{64} << 10;
constexpr std::string_view end_of_certificate = "-----END CERTIFICATE-----\n";

}  // namespace

kit_from_stdin::kit_from_stdin(int input, std::chrono::milliseconds patience)
    : memory_(::memfd_create("troupe-kit", MFD_CLOEXEC)) {
  if (!memory_ || ::fchmod(memory_.get(), S_IRUSR | S_IWUSR) != 0)
    throw std::system_error(errno, std::generic_category(), "--certificates -: no memory for the kit");
  const auto until = std::chrono::steady_clock::now() + patience;
  std::string last;  // the end of what has come
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

std::string kit_from_stdin::path() const { return "/proc/self/fd/" + std::to_string(memory_.get()); }

}  // namespace troupe::apps
