// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::objects {

/// Looks through the pickle of an archive before libtorch reads it. libtorch reserves the memory that a length claims, and follows values
/// within values without an end. Throws c10::Error with what is wrong:
///   PK-1  an operation that torch::serialize::OutputArchive does not write, or one whose operands are not there.
///   PK-2  a text that is longer than the bytes that follow, or a value kept under a number that is not the next one.
///   PK-3  values that are nested deeper than `most_nested`. Containers that other values hold are not fetched again, so none holds itself.
///   PK-4  more than `most_pickle_bytes` bytes: libtorch may need 16 bytes for each of them.
void check_plain_pickle(std::string_view bytes);

inline constexpr int most_nested = 16;
inline constexpr std::size_t most_pickle_bytes = std::size_t{16} << 20;  // about 100,000 tensors

}  // namespace troupe::objects
