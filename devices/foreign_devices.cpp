// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/foreign_devices.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/devices/own_offers.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/devices/present_sharing.hpp>
#include <troupe/devices/tensor_packing.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/foreign_memory.hpp>

namespace troupe::devices {

namespace {

error not_opened(const tensor_offer& offer, const std::string& why) {
  return error(errc::refused, "the memory of a device of process " + std::to_string(offer.process) + " can't be read: " + why);
}

}  // namespace

foreign_copy::~foreign_copy() {
  try {
    if (!begun_ || (done_ && done_->query())) return;
  } catch (...) {  // the device has failed
  }
  static_cast<void>(new memory_sharing::opened_memory(std::move(from_)));  // leaks, because the device may still read it
}

bool foreign_copy::is_done() { return done_->query(); }

std::unique_ptr<foreign_copy> foreign_devices::copy(const tensor_offer& offer) {
  const auto type = accelerator_type();
  auto* const sharing = type ? sharing_of(*type) : nullptr;
  if (sharing == nullptr) throw not_opened(offer, "this process shares no memory of devices");
  auto [from, made] = opened_with_event(*sharing, offer);
  if (offer.address > from.bytes || offer.bytes > from.bytes - offer.address)
    throw error(errc::malformed_message, "elements on a device that are offered lie beyond the end of their allocation");
  try {
    const auto stream = stream_for(offer.process, from.device);
    const c10::StreamGuard own(stream);
    const auto to = at::empty({static_cast<std::int64_t>(offer.bytes)}, at::device(from.device).dtype(at::kByte));
    auto result = std::make_unique<foreign_copy>(from, made, to.storage());
    made->block(stream);
    result->begun_ = true;
    to.copy_(bytes_at(static_cast<char*>(from.elements.get()) + offer.address, offer.bytes, from.device), true);
    auto done = std::make_unique<c10::Event>(*type);
    done->record(stream);
    result->done_ = std::move(done);
    return result;
  } catch (const c10::Error& failed) {
    throw error(errc::function_failed, "elements that were offered could not be copied to " + from.device.str() + ": " +
                                         failed.what_without_backtrace());
  }
}

std::pair<memory_sharing::opened_memory, std::shared_ptr<shared_event>> foreign_devices::opened_with_event(
  memory_sharing& sharing, const tensor_offer& offer) {
  if (offer.process == this_process()) {
    const auto own = own_offers::all().find(offer.allocation);
    if (!own) throw not_opened(offer, "its node does not offer it any more");
    const auto elements = std::make_shared<at::Tensor>(own->elements);
    return {{{elements, const_cast<void*>(elements->const_data_ptr())}, elements->nbytes(), elements->device()}, own->made};
  }
  try {
    auto memory = opened(sharing, offer);
    auto made = sharing.open_event(offer.process, offer.event, memory.device);
    return {std::move(memory), std::move(made)};
  } catch (const c10::Error& why) {
    throw not_opened(offer, why.what_without_backtrace());
  }
}

memory_sharing::opened_memory foreign_devices::opened(memory_sharing& sharing, const tensor_offer& offer) {
  const key of{offer.process, offer.allocation};
  {
    const checked_lock lock(mutex_);
    if (const auto* known = find(of)) return *known;
  }
  auto result = sharing.open(offer.process, offer.allocation);
  std::list<open_allocation> closed;  // freed without the lock, because closing is slow; so is `result`
  const checked_lock lock(mutex_);
  if (const auto* known = find(of)) return *known;  // another thread has opened it meanwhile
  open_.push_front({of, result});
  if (open_.size() > most_open_) closed.splice(closed.begin(), open_, std::prev(open_.end()));
  return result;
}

/// The open allocation, which becomes the one that was used last; null if it is not open.
const memory_sharing::opened_memory* foreign_devices::find(const key& of) {
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const auto& each) { return each.of == of; });
  if (found == open_.end()) return nullptr;
  open_.splice(open_.begin(), open_, found);
  return &open_.front().memory;
}

c10::Stream foreign_devices::stream_for(std::uint64_t process, c10::Device device) {
  const checked_lock lock(mutex_);
  const std::pair of(process, device.index());
  const auto known = streams_.find(of);
  if (known != streams_.end()) return known->second;
  return streams_.emplace(of, c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)).first->second;
}

void foreign_devices::forget(std::uint64_t process) {
  std::list<open_allocation> closed;
  const checked_lock lock(mutex_);
  for (auto each = open_.begin(); each != open_.end();) {
    const auto next = std::next(each);
    if (each->of.first == process) closed.splice(closed.begin(), open_, each);
    each = next;
  }
  std::erase_if(streams_, [&](const auto& each) { return each.first.first == process; });
}

}  // namespace troupe::devices
