// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <caf/binary_serializer.hpp>

#include <troupe/messages/inspect.hpp>

namespace troupe::simulation {

/// The bytes of a struct of messages.hpp on the wire, without what CAF puts before it.
template <travelling Struct>
std::uint64_t wire_bytes(const Struct& what) {
  thread_local std::vector<char> buffer;
  buffer.clear();
  caf::binary_serializer sink(nullptr, buffer);
  if (const auto failed = write_message(sink, &what)) return 0;
  return buffer.size();
}

}  // namespace troupe::simulation
