// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/ids.hpp>

namespace troupe {

std::string to_string(node_id id) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = digits[(id.value >> (4 * i)) & 15];
  return text;
}

std::string to_string(const context_id& id) { return id ? std::to_string(id.number) + '@' + to_string(id.node) : "none"; }

std::string to_string(const message_id& id) { return std::to_string(id.number) + '@' + to_string(id.node); }

std::string to_string(const object_id& id) { return id ? std::to_string(id.number) + '@' + to_string(id.node) : "none"; }

}  // namespace troupe
