// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/byte.hpp>
#include <caf/span.hpp>

namespace troupe {

/// True if the outermost fields of a protobuf message end within it. libprotobuf reserves memory for a string by the
/// length that a nested message claims (up to 50 MB), and finds out only later that the message is not that long.
bool fields_are_within(caf::span<const caf::byte> message) noexcept;

}  // namespace troupe
