// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/arriving_tensors.hpp>

#include <cstring>
#include <string>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/deserializer.hpp>
#include <caf/execution_unit.hpp>

#include <troupe/messages/foreign_memory.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

const char* arriving_tensors::add(const tensor_piece& about, caf::span<const caf::byte> elements) {
  checked_lock lock(mutex_);
  const key which{about.from.value, about.transfer};
  if (about.total == 0) {
    end(which);
    return elements.size() == 0 ? nullptr : "a piece that calls a transfer off brings elements";
  }
  arrival* found = nullptr;
  if (const char* why = begin(which, {about.total, about.offset, elements.size(), about.destination}, found)) return why;
  std::memcpy(static_cast<char*>(found->elements.mutable_data()) + about.offset, elements.data(), elements.size());
  found->came += elements.size();
  return nullptr;
}

trailing_place arriving_tensors::place(const tensor_piece& about, std::uint64_t bytes) {
  checked_lock lock(mutex_);
  arrival* found = nullptr;
  const auto* why = begin({about.from.value, about.transfer}, {about.total, about.offset, bytes, about.destination}, found);
  if (why != nullptr) return {bytes, {}, {}, 0, why};
  const auto owner = std::make_shared<c10::Storage>(found->elements);
  return {bytes, {static_cast<char*>(owner->mutable_data()) + about.offset, bytes}, owner, found->number};
}

const char* arriving_tensors::add_trailing(const tensor_piece& about, const trailing_place& from) {
  if (from.refusal != nullptr) return from.refusal;
  checked_lock lock(mutex_);
  const auto found = find({about.from.value, about.transfer}, from.arrival);
  if (found == arrivals_.end()) return "a transfer ended before the elements of a piece had come";
  found->second.came += from.bytes;
  return nullptr;
}

void arriving_tensors::limit_sender(std::uint64_t bytes, std::size_t transfers) {
  checked_lock lock(mutex_);
  most_of_sender_ = bytes;
  most_transfers_ = transfers;
}

void arriving_tensors::use_memory_for_devices(memory_for_device make) {
  checked_lock lock(mutex_);
  memory_for_device_ = make;
}

void arriving_tensors::take_offers(node_id sender, std::uint64_t process, const memory_mark& drawn) {
  checked_lock lock(mutex_);
  marks_[sender.value] = {drawn, process};
}

std::optional<errc> arriving_tensors::read_at_once(const tensor_offer& offer) noexcept try {
  if (!offer.allocation.empty() || offer.offset != 0 || offer.bytes != offer.total || offer.bytes > most_read_at_once)
    return std::nullopt;
  prepared_piece piece;
  auto failed = prepare(offer, piece);
  if (!failed) failed = read(offer, piece);
  return failed ? failed->code() : errc::none;
} catch (...) {  // no memory
  return errc::function_failed;
}

std::optional<error> arriving_tensors::prepare(const tensor_offer& offer, prepared_piece& piece) {
  const key which{offer.from.value, offer.transfer};
  checked_lock lock(mutex_);
  const auto drawn = marks_.find(offer.from.value);
  if (drawn == marks_.end() || drawn->second.process != offer.process) {
    end(which);
    return error(errc::refused, "an offer from node " + to_string(offer.from) + " of the memory of process " +
                                  std::to_string(offer.process) + ", which has no mark");
  }
  arrival* found = nullptr;
  const bool on_device = !offer.allocation.empty();
  const auto* wrong = on_device ? (offer.bytes != offer.total ? "elements on a device are offered in parts" : nullptr)
                                : (offer.bytes > most_offered ? "a piece that is offered is too large" : nullptr);
  const char* why =
    wrong != nullptr ? refuse(which, wrong) : begin(which, {offer.total, offer.offset, offer.bytes}, found, on_device);
  if (why != nullptr) return error(errc::malformed_message, why);
  piece = {found->number, drawn->second.mark};
  return std::nullopt;
}

std::optional<error> arriving_tensors::read(const tensor_offer& offer, const prepared_piece& piece) {
  const auto ended = [] { return error(errc::malformed_message, "a transfer ended before it was read"); };
  c10::Storage elements;
  {
    checked_lock lock(mutex_);
    const auto found = find(offer, piece);
    if (found == arrivals_.end()) return ended();
    elements = found->second.elements;
  }
  const foreign_memory memory{offer.process, offer.mark};
  auto failed = memory.read(piece.mark, offer.address, static_cast<char*>(elements.mutable_data()) + offer.offset, offer.bytes);
  checked_lock lock(mutex_);
  const auto found = find(offer, piece);
  if (found == arrivals_.end()) return failed ? failed : ended();
  if (failed)
    end(found);
  else
    found->second.came += offer.bytes;
  return failed;
}

arriving_tensors::found_arrival arriving_tensors::find(const key& which, std::uint64_t number) {
  const auto found = arrivals_.find(which);
  return found != arrivals_.end() && found->second.number == number ? found : arrivals_.end();
}

arriving_tensors::found_arrival arriving_tensors::find(const tensor_offer& offer, const prepared_piece& piece) {
  return find({offer.from.value, offer.transfer}, piece.arrival);
}

/// Returns the arrival that still waits for a device, or the end of the arrivals.
arriving_tensors::found_arrival arriving_tensors::expected(const tensor_offer& offer, const prepared_piece& piece) {
  const auto found = find(offer, piece);
  return found != arrivals_.end() && found->second.on_device && !found->second.elements ? found : arrivals_.end();
}

std::optional<error> arriving_tensors::add(const tensor_offer& offer, const prepared_piece& piece, c10::Storage elements) {
  checked_lock lock(mutex_);
  const auto found = expected(offer, piece);
  if (found == arrivals_.end()) return error(errc::malformed_message, "a transfer ended while a device copied it");
  found->second.elements = std::move(elements);
  found->second.came += offer.bytes;
  return std::nullopt;
}

void arriving_tensors::give_up(const tensor_offer& offer, const prepared_piece& piece) {
  checked_lock lock(mutex_);
  if (const auto found = expected(offer, piece); found != arrivals_.end()) end(found);
}

std::optional<std::uint64_t> arriving_tensors::process_of(node_id sender) {
  checked_lock lock(mutex_);
  const auto drawn = marks_.find(sender.value);
  return drawn == marks_.end() ? std::nullopt : std::optional(drawn->second.process);
}

const char* arriving_tensors::refuse(const key& which, const char* why) {
  end(which);
  return why;
}

arriving_tensors::found_arrival arriving_tensors::end(found_arrival which) {
  const auto sender = waiting_.find(which->first.first);
  sender->second.begun -= which->second.begun;
  sender->second.announced -= which->second.total;
  if (--sender->second.transfers == 0) waiting_.erase(sender);
  return arrivals_.erase(which);
}

void arriving_tensors::end(const key& which) {
  if (const auto found = arrivals_.find(which); found != arrivals_.end()) end(found);
}

/// Whether the limits of a sender allow one more piece. A piece with offset 0 begins a transfer, so it needs space for a
/// transfer too.
bool arriving_tensors::may_come(const account& sender, const extent& piece) const {
  if (sender.begun > most_of_sender_ || piece.bytes > most_of_sender_ - sender.begun) return false;
  if (piece.offset > 0) return true;
  const auto most_announced = announced_factor * most_of_sender_;
  return sender.transfers < most_transfers_ && sender.announced <= most_announced &&
         piece.total <= most_announced - sender.announced;
}

const char* arriving_tensors::begin(const key& which, const extent& piece, arrival*& target, bool on_device) {
  if (piece.total < least_bytes || piece.total > max_payload_bytes)
    return refuse(which, "a piece is of a tensor that is too small to come in pieces, or too large to travel");
  if (piece.offset > piece.total || piece.bytes > piece.total - piece.offset)
    return refuse(which, "a piece lies beyond the end of its tensor");
  if (piece.bytes < least_bytes && piece.bytes != piece.total - piece.offset)
    return refuse(which, "a piece is smaller than a page, and not the last one");
  if (piece.offset == 0) end(which);
  const auto sender = waiting_.find(which.first);
  if (!may_come(sender == waiting_.end() ? account{} : sender->second, piece))
    return refuse(which, "more elements of its sender wait for their messages than this node keeps of one sender");
  if (piece.offset == 0) {
    auto elements = on_device ? c10::Storage() : memory_for(piece);  // first, because it may throw
    auto& of = waiting_[which.first];
    arrivals_[which] = {++last_, std::move(elements), piece.total, 0, 0, on_device};
    of.announced += piece.total;
    ++of.transfers;
  }
  const auto found = arrivals_.find(which);
  if (found == arrivals_.end() || found->second.on_device != on_device || found->second.total != piece.total ||
      found->second.begun != piece.offset)
    return refuse(which, "a piece does not go on where the one before it ended");
  found->second.begun += piece.bytes;
  waiting_.at(which.first).begun += piece.bytes;
  target = &found->second;
  return nullptr;
}

c10::Storage arriving_tensors::memory_for(const extent& piece) {
  if (memory_for_device_ != nullptr && !piece.destination.is_cpu())
    if (auto elements = memory_for_device_(piece.destination, piece.total)) return elements;
  return memory_.make(piece.total);
}

c10::Storage arriving_tensors::take(node_id from, std::uint64_t transfer, std::uint64_t bytes) {
  checked_lock lock(mutex_);
  const auto found = arrivals_.find({from.value, transfer});
  if (found == arrivals_.end()) return {};
  const arrival taken = found->second;
  end(found);
  return taken.came == taken.total && taken.total == bytes ? taken.elements : c10::Storage{};
}

std::pair<c10::Storage, std::uint64_t> arriving_tensors::look_at(node_id from, std::uint64_t transfer) const {
  checked_lock lock(mutex_);
  const auto found = arrivals_.find({from.value, transfer});
  return found != arrivals_.end() ? std::pair(found->second.elements, found->second.came) : std::pair(c10::Storage(), 0UL);
}

void arriving_tensors::end(node_id from, std::uint64_t transfer) {
  checked_lock lock(mutex_);
  end(key{from.value, transfer});
}

void arriving_tensors::drop(node_id from) {
  checked_lock lock(mutex_);
  marks_.erase(from.value);
  for (auto each = arrivals_.lower_bound({from.value, 0}); each != arrivals_.end() && each->first.first == from.value;)
    each = end(each);
}

std::uint64_t arriving_tensors::bytes() const {
  checked_lock lock(mutex_);
  std::uint64_t result = 0;
  for (const auto& [key, arrival] : arrivals_) result += arrival.came;
  return result;
}

bool arriving_tensors::trim() {
  std::optional<tensor_memory> memory;
  {
    checked_lock lock(mutex_);
    memory = memory_;
  }
  return memory->trim();
}

arriving_tensors* arriving_at(caf::deserializer& source) noexcept {
  auto* unit = source.context();
  if (unit == nullptr) return nullptr;
  const auto* taker = dynamic_cast<const tensor_receiver*>(&unit->system().config());
  return taker != nullptr ? &taker->arriving() : nullptr;
}

}  // namespace troupe
