// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>

namespace troupe::objects {

/// The values of an archive that torch::serialize::OutputArchive has written. A part may come from another node, and
/// torch::serialize::InputArchive would run what the archive holds as code. Throws std::exception for bytes that are no such archive.
///   PV-1  no code of the archive is read. An archive is one object of plain values: another class, or an object in an object, is
///         refused.
///   PV-2  a tensor that says that it has more elements than its record has bytes for is refused.
///   PV-3  an archive whose records are together much larger than the archive is refused before any of them is read. So is an archive
///         with two lists of its records.
///   PV-4  a record of elements is read once, however many tensors name it; a pickle that asks for it again is refused.
///   PV-5  the pickle of the values is looked through before libtorch reads it (check_plain_pickle).
class part_archive {
 public:
  /// Reads up to `size` bytes from `position` on; returns how many came.
  using reader = std::function<std::size_t(std::uint64_t position, void* to, std::size_t size)>;

  part_archive(reader read, std::size_t size);

  /// Throws c10::Error if the archive has no such value, or one of another type.
  template <class T>
  T value(const std::string& name) const {
    return find(name).to<T>();
  }

 private:
  c10::IValue find(const std::string& name) const;

  std::optional<c10::impl::GenericDict> values_;
};

}  // namespace troupe::objects
