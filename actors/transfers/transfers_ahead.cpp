// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/transfers_ahead.hpp>

#include <algorithm>
#include <cstddef>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe::transfers {

namespace {

bool same_elements(const at::Tensor& a, const at::Tensor& b) {
  return a.is_cpu() && b.is_cpu() && a.const_data_ptr() == b.const_data_ptr() && a.nbytes() == b.nbytes();
}

}  // namespace

bool any_large(const std::vector<at::Tensor>& tensors) {
  std::uint64_t together = 0;
  std::uint64_t largest = 0;
  for (const auto& each : tensors) {
    if (each.defined() && !each.is_cpu()) return true;
    const auto bytes = payload_bytes(each);
    together += bytes;
    largest = std::max(largest, bytes);
  }
  return together > most_together && largest >= large_bytes;
}

std::vector<transfer> transfers_ahead(const std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& destinations,
                                      sent_ahead& ahead, std::uint64_t& last,
                                      std::unordered_map<std::uint64_t, leaving_elements>& leaving) {
  wire::Tensors unused;
  travelling_tensors forms;
  describe_tensors(tensors, unused, forms);
  ahead.transfers.assign(forms.size(), 0);
  std::vector<c10::Device> to;  // the destination of each component
  for (std::size_t i = 0; i < destinations.size(); ++i)
    if (tensors[i].defined()) to.insert(to.end(), tensors[i].is_sparse() ? 2 : 1, destinations[i]);
  std::vector<transfer> result;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (forms[i].is_cpu() && forms[i].nbytes() < large_bytes) continue;
    for (std::size_t before = 0; before < i; ++before)
      if (same_elements(forms[before], forms[i])) ahead.transfers[i] = ahead.transfers[before];
    if (const auto shared = leaving.find(ahead.transfers[i]); shared != leaving.end()) {
      shared->second.destination = c10::Device(c10::kCPU);  // memory for a device is for one tensor
      continue;
    }
    ahead.transfers[i] = ++last;
    leaving.emplace(last, leaving_elements{forms[i], i < to.size() ? to[i] : c10::Device(c10::kCPU)});
    result.push_back({last, forms[i].nbytes(), !forms[i].is_cpu(), std::max<int>(forms[i].device().index(), 0)});
  }
  return result;
}

}  // namespace troupe::transfers
