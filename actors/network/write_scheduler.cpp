// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/write_scheduler.hpp>

#include <cassert>

#include <caf/io/basp/message_type.hpp>

#include <troupe/messages/expect.hpp>

namespace troupe::network {

// An open block holds less than `full_block` bytes, so another message of at most `full_block` bytes fits.
constexpr std::size_t block_capacity = 2 * write_queue::full_block;

void write_queue::seal() {
  if (open_.size() >= full_block) close_block();
}

void write_queue::close_block() {
  if (open_.empty()) return;
  sealed_bytes_ += open_.size();
  sealed_.push_back({std::exchange(open_, take_spare())});
}

void write_queue::close_block(trailing_bytes trailing) {
  assert(!open_.empty());
  sealed_bytes_ += open_.size() + trailing.bytes.size();
  sealed_.push_back({std::exchange(open_, {}), std::move(trailing)});
}

void write_queue::rest() {
  if (empty()) shrink();
}

void write_queue::begin_block() {
  assert(!empty());
  if (leaving_.size() > 0) return;
  if (sealed_.empty()) {
    leaving_.bytes.swap(open_);
  } else {
    spare(std::exchange(leaving_, std::move(sealed_.front())).bytes);
    sealed_.pop_front();
    sealed_bytes_ -= leaving_.size();
  }
}

std::size_t write_queue::front_block() {
  begin_block();
  return leaving_.size() - left_;
}

std::span<const char> write_queue::front() {
  begin_block();
  const auto& [bytes, trailing] = leaving_;
  if (left_ < bytes.size()) return std::span(bytes).subspan(left_);
  return trailing.bytes.subspan(left_ - bytes.size());
}

void write_queue::pop(std::size_t bytes) {
  assert(bytes <= leaving_.size() - left_);
  left_ += bytes;
  if (left_ < leaving_.size()) return;
  left_ = 0;
  round_ += leaving_.bytes.size();
  leaving_.bytes.clear();
  leaving_.trailing = {};
  if (empty()) shrink();
}

std::size_t write_queue::held() const noexcept {
  auto result = leaving_.bytes.capacity() + open_.capacity();
  for (const auto& each : sealed_) result += each.bytes.capacity();
  for (const auto& each : spares_) result += each.capacity();
  return result;
}

std::vector<char> write_queue::take_spare() {
  std::vector<char> result;
  if (spares_.empty()) {
    result.reserve(block_capacity);
  } else {
    result = std::move(spares_.back());
    spares_.pop_back();
  }
  return result;
}

void write_queue::spare(std::vector<char> block) {
  const bool fits = block.capacity() >= full_block && block.capacity() <= 2 * block_capacity;
  if (fits && spares_.size() < most_spares) spares_.push_back(std::move(block));
}

/// Frees memory that was not needed lately. Pre: the queue is empty.
void write_queue::shrink() {
  assert(empty());
  const auto needed = std::max(peak_.add(std::exchange(round_, 0)), kept_bytes);
  if (needed < full_block) spares_.clear();
  for (auto* each : {&leaving_.bytes, &open_})
    if (each->capacity() > 2 * needed) *each = std::vector<char>();
}

void write_scheduler::announce_reading() noexcept {
  if (announcement_ == announcement::none) announcement_ = announcement::due;
}

void write_scheduler::split_large(std::uint64_t unordered) noexcept {
  if (!unordered_) unordered_ = unordered;
}

void write_scheduler::seal(trailing_bytes trailing) {
  if (announcement_ == announcement::due && open().size() - sorted_ >= message_head::bytes) {
    announcement_ = announcement::made;
    message_head::set_note(open().data() + sorted_, message_head::reads_fragments | message_head::reads_trailing);
  }
  if (!trailing.bytes.empty()) note_trailing();
  if (unordered_) sort_messages();
  if (trailing.bytes.empty())
    prompt_.seal();
  else
    prompt_.close_block(std::move(trailing));
  sorted_ = open().size();
}

/// Says in the last message that elements trail it.
void write_scheduler::note_trailing() {
  char* last = nullptr;
  for_each_new([&, at = sorted_](const message_head& head) mutable {
    last = open().data() + at;
    at += message_head::bytes + head.payload;
  });
  TROUPE_EXPECT(lets_trail_ && last != nullptr && message_head::read(last).source == unordered_);
  message_head::set_note(last, message_head::read(last).note | message_head::has_trailing);
}

/// The header at this position of the open block.
message_head write_scheduler::head_at(std::size_t position) {
  const auto result = message_head::read(open().data() + position);
  assert(result.operation <= static_cast<std::uint8_t>(caf::io::basp::message_type::heartbeat));  // it is a message of BASP
  return result;
}

void write_scheduler::sort_messages() {
  while (open().size() - sorted_ >= message_head::bytes) {
    const auto head = head_at(sorted_);
    const auto before = prompt_left_ + prompt_.waiting() - (open().size() - sorted_);
    const message next{{head.source, head.target}, message_head::bytes + head.payload, before};
    if (next.bytes > open().size() - sorted_) return;
    if (belongs_in_bulk(head))
      move_to_bulk(sorted_, next);
    else
      sorted_ += next.bytes;
  }
}

bool write_scheduler::belongs_in_bulk(const message_head& head) const {
  if (head.payload > most_whole) return true;
  if (head.target != 0) return ordered_in_bulk_.contains({head.source, head.target});
  const auto found = ordered_in_bulk_.lower_bound({head.source, 0});
  return found != ordered_in_bulk_.end() && found->first.first == head.source;
}

void write_scheduler::move_to_bulk(std::size_t at, const message& which) {
  in_bulk_.push_back(which);
  if (which.between.first != unordered_) ++ordered_in_bulk_[which.between];
  const bool is_alone = which.bytes == open().size();
  if (is_alone && which.bytes >= write_queue::full_block) bulk_.close_block();
  if (is_alone && bulk_.open().empty()) {
    bulk_.open().swap(open());
  } else {
    const auto begin = open().begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(which.bytes);
    bulk_.open().insert(bulk_.open().end(), begin, end);
    open().erase(begin, end);
  }
  bulk_.seal();
}

std::span<const char> write_scheduler::front() {
  if (unit_.left == 0) begin_unit();
  front_is_part_ = true;
  if (unit_.head_left > 0) return std::span<const char>(unit_.head).last(unit_.head_left);
  const auto next = (unit_.of == queue::bulk ? bulk_ : prompt_).front();
  front_is_part_ = next.size() < unit_.left;
  return next.first(std::min(next.size(), unit_.left));
}

void write_scheduler::begin_unit() {
  const bool is_bulks_turn = prompt_.empty() || unit_.of == queue::prompt;
  if (!bulk_.empty() && is_bulks_turn && !bulk_has_to_wait()) return begin_bulk_unit();
  unit_.of = queue::prompt;
  unit_.left = prompt_.front_block();
  sorted_ = open().size();  // front() may have taken the open block
}

/// Whether the end of the next bulk message has to wait, because messages that were added before it leave first. These may be
/// pieces of its tensors, or earlier messages of its sender.
bool write_scheduler::bulk_has_to_wait() const {
  const auto& next = in_bulk_.front();
  const bool ends = split_.left > 0 ? split_.left <= fragment_bytes : next.bytes <= message_head::bytes + most_whole;
  return ends && prompt_left_ < next.after;
}

void write_scheduler::begin_bulk_unit() {
  unit_.of = queue::bulk;
  if (split_.left == 0) {
    const auto next = in_bulk_.front().bytes;
    if (next <= message_head::bytes + most_whole) {
      unit_.left = next;
      return;
    }
    std::copy_n(bulk_.front().begin(), message_head::bytes, split_.head.begin());
    bulk_.pop(message_head::bytes);
    split_.left = next - message_head::bytes;
  }
  unit_.left = std::min(split_.left, fragment_bytes);
  split_.left -= unit_.left;
  unit_.head_left = message_head::bytes;
  if (split_.left > 0) {
    message_head{message_head::fragment, 0, static_cast<std::uint32_t>(unit_.left), 0}.write(unit_.head.data());
  } else {
    unit_.head = split_.head;
    message_head::set_note(unit_.head.data(), message_head::read(unit_.head.data()).note | message_head::follows_fragments);
  }
}

void write_scheduler::pop(std::size_t bytes) {
  if (unit_.head_left > 0) {
    unit_.head_left -= bytes;
    return;
  }
  unit_.left -= bytes;
  if (unit_.of == queue::prompt) {
    prompt_left_ += bytes;
    prompt_.pop(bytes);
    if (prompt_.empty()) bulk_.rest();
    return;
  }
  if (unit_.left == 0 && split_.left == 0) end_bulk_message();
  bulk_.pop(bytes);
}

void write_scheduler::end_bulk_message() {
  const auto found = ordered_in_bulk_.find(in_bulk_.front().between);
  in_bulk_.pop_front();
  if (found != ordered_in_bulk_.end() && --found->second == 0) ordered_in_bulk_.erase(found);
}

}  // namespace troupe::network
