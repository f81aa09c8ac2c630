// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/attributes.hpp>

namespace troupe::apps::charlm {

struct model_shape {
  std::int64_t vocabulary = 0;
  std::int64_t blocks = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t context = 64;

  bool operator==(const model_shape&) const = default;

  /// Throws std::runtime_error that says which number is not possible, and which numbers are.
  void check() const;
  attributes to_attributes() const;
  static model_shape from_attributes(const attributes& values);
  /// "4 blocks of width 128 with 4 heads, context 64, 86 characters"
  std::string describe() const;
};

}  // namespace troupe::apps::charlm
