// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <caffe2/serialize/inline_container.h>

namespace troupe::test {

/// An archive (ZIP) with two lists of its records. The list that every reader of ZIP finds first has the small record "data.pkl" alone. The
/// list of ZIP64, which libtorch reads, also has the record "data/0": `zeros` zeros, compressed.
inline std::string archive_of_two_lists(std::size_t zeros) {
  constexpr std::size_t end_bytes = 22;
  constexpr std::size_t locator_bytes = 20;
  constexpr std::size_t large_end_bytes = 56;
  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
    if (size > 0) bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  const std::string elements(zeros, '\0');
  writer.writeRecord("data.pkl", "x", 1);
  writer.writeRecord("data/0", elements.data(), elements.size(), true);
  writer.writeEndOfFile();
  const auto put = [](std::string& to, std::size_t at, std::uint64_t number, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) to[at + i] = static_cast<char>(number >> (8 * i));
  };
  auto end = bytes.substr(bytes.size() - end_bytes - locator_bytes - large_end_bytes);
  bytes.resize(bytes.size() - end.size());
  const auto first = bytes.find("PK\1\2");
  const auto harmless = bytes.substr(first, bytes.find("PK\1\2", first + 1) - first);
  put(end, large_end_bytes + 8, bytes.size() + harmless.size(), 8);  // where the end of ZIP64 begins
  put(end, large_end_bytes + locator_bytes + 12, harmless.size(), 4);
  put(end, large_end_bytes + locator_bytes + 16, bytes.size(), 4);
  return bytes + harmless + end;
}

}  // namespace troupe::test
