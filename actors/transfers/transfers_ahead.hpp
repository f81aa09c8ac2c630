// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/transfers/transfers_ahead_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/actors/transfers/shipments.hpp>
#include <troupe/devices/own_offers.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::transfers {

/// If the tensors of a message have more bytes than this together, large ones leave ahead of the message.
inline constexpr std::uint64_t most_together = std::uint64_t{256} << 10;
/// Tensors with fewer bytes leave with their message. A tensor on a device always leaves ahead.
inline constexpr std::uint64_t large_bytes = std::uint64_t{64} << 10;

/// Whether any of these tensors leaves ahead of its message.
bool any_large(const std::vector<at::Tensor>& tensors);

/// What leaves in a transfer.
struct leaving_elements {
  at::Tensor elements;
  c10::Device destination = c10::Device(c10::kCPU);  // to which the receiver probably moves the elements
  std::shared_ptr<devices::shared_event> made = {};  // on a device: when the elements are made
  devices::own_offers::kept offer = {};              // to a node of this process
};

/// Returns the transfers of the large tensors of a message (of a sparse tensor: of its large components), with numbers from
/// `last` + 1 on. Sets `last` and `ahead` to these numbers, and adds the components by number to `leaving`. Components on the
/// CPU with the same elements are one transfer. `destinations`: one for each tensor, or empty.
std::vector<transfer> transfers_ahead(const std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& destinations,
                                      sent_ahead& ahead, std::uint64_t& last,
                                      std::unordered_map<std::uint64_t, leaving_elements>& leaving);

}  // namespace troupe::transfers
