// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>

namespace troupe::objects {

/// Why the elements of the tensor can't be overwritten; null if they can.
inline const char* why_not_overwritable(const at::Tensor& tensor) {
  if (tensor.is_inference()) return "an inference tensor, which can't be overwritten; clone it";
  if (tensor.layout() == at::kStrided && at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
    return "an expanded tensor, which can't be overwritten; clone it";
  return nullptr;
}

}  // namespace troupe::objects
