// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/outgoing_pieces.hpp>

#include <algorithm>
#include <utility>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe {

namespace {

bool same_elements(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.nbytes() == b.nbytes();
}

}  // namespace

bool outgoing_pieces::any_large(const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& each) { return payload_bytes(each) >= large_bytes; });
}

void outgoing_pieces::add(const std::vector<at::Tensor>& tensors, sent_ahead& ahead, std::uint64_t& last, send_message send) {
  wire::Tensors unused;
  travelling_tensors forms;
  describe_tensors(tensors, unused, forms);
  ahead.transfers.assign(forms.size(), 0);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (forms[i].nbytes() < large_bytes) continue;
    for (std::size_t before = 0; before < i; ++before)
      if (same_elements(forms[before], forms[i])) ahead.transfers[i] = ahead.transfers[before];
    if (ahead.transfers[i] == 0) queue_.emplace_back(transfer{ahead.from, ahead.transfers[i] = ++last, forms[i]});
  }
  queue_.emplace_back(std::move(send));
}

std::optional<std::variant<tensor_piece, outgoing_pieces::send_message>> outgoing_pieces::next() {
  if (queue_.empty()) return std::nullopt;
  if (auto* send = std::get_if<send_message>(&queue_.front())) {
    auto result = std::move(*send);
    queue_.pop_front();
    return result;
  }
  if (under_way_ == window) return std::nullopt;
  ++under_way_;
  const auto& [from, number, form] = std::get<transfer>(queue_.front());
  const auto total = form.nbytes();
  const auto bytes = std::min<std::uint64_t>(piece_bytes, total - offset_);
  tensor_piece result{from, number, total, offset_, bytes_of(form, offset_, bytes)};
  offset_ += bytes;
  if (offset_ == total) {
    offset_ = 0;
    queue_.pop_front();
  }
  return result;
}

}  // namespace troupe
