// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::support {

/// How a checksum is computed: XXH3 with 64 bits, or as in the checkpoints of format 1.
enum class checksum_kind { xxh3, format_1 };

/// "xxh3_64" or "format_1".
std::string to_text(checksum_kind kind);

/// The kind that the text names; throws troupe::error (misuse) for any other text.
checksum_kind checksum_kind_named(const std::string& text);

/// A checksum of a stream of bytes. It detects damage, not forgery, and does not depend on how the stream is cut into updates.
class checksum {
 public:
  explicit checksum(checksum_kind kind = checksum_kind::xxh3);
  ~checksum();

  void update(const void* data, std::size_t size) noexcept;
  std::uint64_t value() const noexcept;

 private:
  class algorithm;
  class xxh3;
  class format_1;

  std::unique_ptr<algorithm> algorithm_;
};

}  // namespace troupe::support
