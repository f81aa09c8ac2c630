// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/fragment_reader.hpp>

#include <cassert>
#include <limits>
#include <utility>

#include <troupe/actors/network/write_scheduler.hpp>

namespace troupe::network {

constexpr std::size_t most_payload = std::numeric_limits<std::uint32_t>::max();

void fragment_reader::begin() noexcept {
  if (state_ == state::off) state_ = state::head;
}

fragment_reader::outcome fragment_reader::wrong(std::string why) {
  problem_ = std::move(why);
  return outcome::wrong;
}

fragment_reader::outcome fragment_reader::sort(std::vector<char>& chunk) {
  switch (state_) {
    case state::off:
      break;
    case state::head:
      return chunk.size() == message_head::bytes ? sort_head(chunk.data()) : wrong("a header of another size");
    case state::payload:
      state_ = (head_.note & message_head::has_trailing) != 0 ? state::trailing : state::head;
      if (state_ == state::trailing) return outcome::kept;
      trailed_in_row_ = 0;
      break;
    case state::trailing:
      state_ = state::head;
      ++trailed_in_row_;
      break;
    case state::fragment:
      state_ = state::head;
      chunk.swap(ahead_);
      return outcome::kept;
  }
  return outcome::for_broker;
}

fragment_reader::outcome fragment_reader::sort_head(char* head) {
  const auto came = message_head::read(head);
  next_ = came.payload;
  if (came.operation == message_head::fragment) {
    const bool fits = next_ > 0 && next_ <= write_scheduler::fragment_bytes && ahead_.size() + next_ < most_payload;
    if (fits) state_ = state::fragment;
    return fits ? outcome::kept : wrong("a fragment of " + std::to_string(next_) + " bytes");
  }
  if ((came.note & message_head::reads_fragments) != 0) other_end_reads_ = true;
  if ((came.note & message_head::reads_trailing) != 0) other_end_reads_trailing_ = true;
  const bool follows = (came.note & message_head::follows_fragments) != 0;
  if ((came.note & message_head::has_trailing) != 0 && (next_ == 0 || follows))
    return wrong("elements that trail no payload, or one in fragments");
  if (follows) {
    if (ahead_.empty() || ahead_.size() >= next_ || next_ - ahead_.size() > write_scheduler::fragment_bytes)
      return wrong("a message of " + std::to_string(next_) + " bytes after " + std::to_string(ahead_.size()) + " in fragments");
    ahead_of_payload_ = true;
  }
  head_ = came;
  message_head::set_note(head, 0);
  if (next_ > 0) state_ = state::payload;
  return outcome::for_broker;
}

std::size_t fragment_reader::prepare(std::vector<char>& chunk) {
  assert(has_wish());
  chunk.swap(ahead_);
  ahead_.clear();
  const auto came = chunk.size();
  chunk.resize(state_ == state::fragment ? came + next_ : next_);
  ahead_of_payload_ = false;
  return came;
}

}  // namespace troupe::network
