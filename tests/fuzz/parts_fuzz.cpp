// SPDX-License-Identifier: BSD-3-Clause
// Reads an input as a part of a checkpoint that another node has sent.
#include <exception>

#include <ATen/ATen.h>

#include <troupe/actors/objects/checkpoint.hpp>

#include "fuzzer.hpp"

namespace troupe::fuzz {

void read_input(std::string_view bytes) {
  auto tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  bytes.copy(static_cast<char*>(tensor.mutable_data_ptr()), bytes.size());
  try {
    objects::parse_part(tensor, "part.safetensors", objects::digest_of(tensor), "0123456789abcdef");
  } catch (const std::exception& refused) {
    static_cast<void>(refused);
  }
}

}  // namespace troupe::fuzz
