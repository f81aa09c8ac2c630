// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/byte.hpp>
#include <caf/span.hpp>

namespace troupe {

/// True if the outermost fields of a protobuf message end within the message. libprotobuf does not check this first.
/// libprotobuf reserves memory for a string by the length that a nested message claims (up to 50 MB), and only later finds that
/// the message is shorter.
bool fields_are_within(caf::span<const caf::byte> message) noexcept;

}  // namespace troupe
