// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe::support {

/// The memory of this process that is in RAM, in bytes; 0 if the system does not tell.
std::uint64_t resident_bytes() noexcept;

}  // namespace troupe::support
