// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/outgoing_pieces.hpp>

#include <algorithm>
#include <utility>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe::transfers {

namespace {

bool same_elements(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.nbytes() == b.nbytes();
}

}  // namespace

bool outgoing_pieces::any_large(const std::vector<at::Tensor>& tensors) {
  std::uint64_t together = 0;
  std::uint64_t largest = 0;
  for (const auto& each : tensors) {
    const auto bytes = payload_bytes(each);
    together += bytes;
    largest = std::max(largest, bytes);
  }
  return together > most_together && largest >= large_bytes;
}

void outgoing_pieces::add(const std::vector<at::Tensor>& tensors, sent_ahead& ahead, std::uint64_t& last, send_message send) {
  TROUPE_EXPECT(ahead.from != node_id{});
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

std::optional<outgoing_pieces::step> outgoing_pieces::next(bool direct, std::uint64_t limit, std::uint64_t piece_bytes) {
  if (queue_.empty()) return std::nullopt;
  if (auto* send = std::get_if<send_message>(&queue_.front())) {
    auto result = std::move(*send);
    queue_.pop_front();
    return result;
  }
  for (auto at = queue_.begin(); at != queue_.end(); ++at) {
    auto* each = std::get_if<transfer>(&*at);
    if (each == nullptr || each->how == way::refused || each->all_left()) continue;
    if (each->how == way::undecided) each->how = direct ? way::offers : way::pieces;
    if (each->how == way::offers) {
      if (offers_ >= most_offers) return std::nullopt;
      return next_offer(*each);
    }
    if (under_way_ >= limit) return std::nullopt;
    auto piece = next_piece(*each, piece_bytes);
    if (each->all_left()) queue_.erase(at);
    return piece;
  }
  return std::nullopt;
}

tensor_piece outgoing_pieces::next_piece(transfer& of, std::uint64_t most_bytes) {
  const auto total = of.form.nbytes();
  const auto bytes = std::min<std::uint64_t>(most_bytes, total - of.offset);
  const auto offset = std::exchange(of.offset, of.offset + bytes);
  under_way_ += bytes;
  return {of.from, of.number, total, offset, bytes_of(of.form, offset, bytes)};
}

tensor_offer outgoing_pieces::next_offer(transfer& of) {
  const auto total = of.form.nbytes();
  const auto bytes = std::min<std::uint64_t>(offer_bytes, total - of.offset);
  const auto offset = std::exchange(of.offset, of.offset + bytes);
  ++of.offered;
  ++offers_;
  const auto address = reinterpret_cast<std::uintptr_t>(of.form.const_data_ptr()) + offset;
  return {of.from, of.number, total, offset, bytes, address, 0, 0};
}

void outgoing_pieces::answered(std::uint64_t number, bool taken) {
  --offers_;
  const auto at = std::find_if(queue_.begin(), queue_.end(), [&](const entry& each) {
    const auto* found = std::get_if<transfer>(&each);
    return found != nullptr && found->number == number;
  });
  if (at == queue_.end()) return;
  auto& of = std::get<transfer>(*at);
  if (!taken) of.how = way::refused;
  if (--of.offered > 0) return;
  if (of.how == way::refused) {
    of.how = way::pieces;
    of.offset = 0;
  } else if (of.all_left()) {
    queue_.erase(at);
  }
}

}  // namespace troupe::transfers
