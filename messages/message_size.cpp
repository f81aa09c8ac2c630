// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/message_size.hpp>

#include <atomic>
#include <string>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

namespace {

std::atomic<std::uint64_t> longest{max_message_bytes};

}  // namespace

void check_sum_travels(const std::vector<at::Tensor>& tensors, std::string_view what) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    const bool counts = tensor.defined() && !tensor.is_nested() && (tensor.is_sparse() || tensor.layout() == at::kStrided);
    bytes += counts ? payload_bytes(tensor) : 0;  // others are refused one by one
  }
  if (bytes > max_payload_bytes) {
    throw error{errc::unsupported_tensor, std::string{what} + ": the tensors have " + std::to_string(bytes) +
                                            " bytes together, at most " + std::to_string(max_payload_bytes) +
                                            " travel in one message; send them in several"};
  }
}

std::uint64_t longest_message() noexcept { return longest; }

void set_longest_message(std::uint64_t bytes) noexcept { longest = bytes; }

}  // namespace troupe
