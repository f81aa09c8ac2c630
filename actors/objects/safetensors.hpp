// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <troupe/actors/module.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

/// Files of tensors in the format safetensors, which other programs read and write too: the length of the header (8 bytes, the
/// lowest first), the header, and the elements. The header is JSON: `"name": {"dtype": "F32", "shape": [2, 3], "data_offsets":
/// [0, 24]}` for each tensor, and `"__metadata__"`, an object of texts.
///   WF-1  a file gives back the tensors that were written: names, shapes, dtypes and bits. A view is written without the rest
///         of its storage. Names must be UTF-8 and differ, and tensors must be dense.
///   WF-2  elements begin at a multiple of their size, so a program may map the file into memory.
///   WF-3  a file may come from anybody. The reader takes memory for a tensor only after the whole header was found to fit the
///         bytes: each range has the bytes of its shape, and the ranges cover all bytes without a gap or an overlap.
///   WF-4  a header that is too long or nested too deep is refused before it is parsed, or where the depth is reached.
namespace troupe::objects {

inline constexpr std::uint64_t most_header_bytes = std::uint64_t{16} << 20;  // about 100,000 tensors

using texts_by_name = std::map<std::string, std::string>;

/// A file that is to be written. Keeps the tensors, and copies none before write().
class tensor_writer {
 public:
  /// Throws troupe::error (misuse) with the name of a tensor that a file can't hold, and with the reason.
  explicit tensor_writer(named_tensors tensors, const texts_by_name& metadata = {});

  /// The size of the file.
  std::uint64_t bytes() const noexcept { return 8 + header_.size() + element_bytes_; }
  /// Hands the bytes of the file to `sink`, in order.
  void write(const std::function<void(const void* data, std::size_t size)>& sink) const;

 private:
  named_tensors tensors_;  // in the order of their elements
  std::string header_;
  std::uint64_t element_bytes_ = 0;
};

struct tensor_file {
  named_tensors tensors;  // in the order of their elements
  texts_by_name metadata;
};

/// Reads an open file. Throws std::runtime_error with what was expected and what came, and troupe::error (function_failed) with
/// the path if the bytes can't be read, or if there is too little memory for them.
tensor_file read_tensors(const support::owned_descriptor& file, const std::string& path);
/// Reads the bytes of a file, which are a tensor of one dimension and type Byte.
tensor_file read_tensors(const at::Tensor& bytes, const std::string& path = "the bytes");

}  // namespace troupe::objects
