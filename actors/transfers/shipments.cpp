// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/shipments.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::transfers {

shipments::effects shipments::on(const shipping_event& event, std::int64_t now_ns) {
  now_ = now_ns;
  std::visit([this](const auto& what) { take(what); }, event);
  return std::exchange(out_, {});
}

bool shipments::is_idle() const {
  return std::all_of(receivers_.begin(), receivers_.end(), [](const auto& each) {
    const auto& at = each.second;
    return at.queue.empty() && at.dropped.empty() && at.pieces.empty() && at.offers == 0;
  });
}

void shipments::take(const shipment_begun& what) {
  auto& at = receivers_[what.to];
  if (what.may_read && at.reads == memory::unknown) {
    at.reads = memory::asked;
    out_.emplace_back(ask_for_mark{what.to});
  }
  for (const auto& each : what.ahead) at.queue.emplace_back(queued_transfer{each});
  at.queue.emplace_back(message{what.message});
  send_on(what.to, at);
}

void shipments::take(const mark_drawn& what) {
  const auto at = receivers_.find(what.by);
  if (at == receivers_.end() || at->second.reads != memory::asked) return;
  at->second.reads = what.devices_only ? memory::can_not : memory::reads;
  at->second.at_once = what.at_once;
}

/// A refused piece is not sent again, nor is a refused offer whose message has left. The receiver then can't read the message
/// to which the transfer belongs: a call fails, and a pass fails at its deadline at the latest.
void shipments::take(const piece_answered& what) {
  const auto found = receivers_.find(what.by);
  if (found == receivers_.end()) return;
  auto& at = found->second;
  const auto sent = at.pieces.extract(what.piece);
  if (!sent) return;
  at.window.answered(sent.mapped(), now_, what.taken_ns);
  at.under_way -= sent.mapped().bytes;
  send_on(what.by, at);
}

void shipments::take(const offer_answered& what) {
  using answer = offer_answered::answer;
  const auto found = receivers_.find(what.by);
  if (found == receivers_.end()) return;
  auto& at = found->second;
  const auto is_offered = [&](const auto& each) {
    const auto* of = std::get_if<queued_transfer>(&each);
    return of != nullptr && of->what.number == what.transfer && of->offered > 0;
  };
  if (at.offered.erase(what.transfer) > 0) {  // its message has left
    --at.offers;
    note(at, what.how, false);
    out_.emplace_back(let_go{what.transfer});
    return send_on(what.by, at);
  }
  const auto dropped = std::find_if(at.dropped.begin(), at.dropped.end(),
                                    [&](const auto& each) { return each.what.number == what.transfer && each.offered > 0; });
  if (dropped != at.dropped.end()) {
    --dropped->offered;
    --offers_beside(at, dropped->what);
    note(at, what.how, dropped->what.on_device);
    let_go_if_unused(at, dropped);
    return send_on(what.by, at);
  }
  const auto entry = std::find_if(at.queue.begin(), at.queue.end(), is_offered);
  if (entry == at.queue.end()) return;
  auto& of = std::get<queued_transfer>(*entry);
  --of.offered;
  --offers_beside(at, of.what);
  note(at, what.how, of.what.on_device);
  if (what.how != answer::taken || of.how == way::refused) {
    refuse(of);
  } else if (of.all_left() && of.offered == 0) {
    out_.emplace_back(let_go{of.what.number});
    at.queue.erase(entry);
  }
  send_on(what.by, at);
}

/// Notes what the answer to an offer says of the receiver. `on_device`: whether the offered elements are on a device.
void shipments::note(receiver& at, offer_answered::answer how, bool on_device) {
  if (!on_device) at.has_read = how == offer_answered::answer::taken;
  if (how != offer_answered::answer::unreadable) return;
  if (on_device)
    at.reads_devices = false;
  else
    at.reads = memory::can_not;
  for (auto& each : at.queue)
    if (auto* other = std::get_if<queued_transfer>(&each);
        other != nullptr && other->how == way::offers && other->what.on_device == on_device)
      refuse(*other);
}

void shipments::take(const copied_to_host& what) {
  const auto found = receivers_.find(what.to);
  if (found == receivers_.end()) return;
  auto& at = found->second;
  const auto is_copied = [&](const queued_transfer& of) { return of.what.number == what.transfer && of.how == way::copies; };
  const auto dropped = std::find_if(at.dropped.begin(), at.dropped.end(), is_copied);
  if (dropped != at.dropped.end()) {
    --at.copies[dropped->what.device];
    dropped->how = way::pieces;
    let_go_if_unused(at, dropped);
    return send_on(what.to, at);
  }
  const auto entry = std::find_if(at.queue.begin(), at.queue.end(), [&](const auto& each) {
    const auto* of = std::get_if<queued_transfer>(&each);
    return of != nullptr && is_copied(*of);
  });
  if (entry == at.queue.end()) return;
  auto& of = std::get<queued_transfer>(*entry);
  --at.copies[of.what.device];
  of = {{of.what.number, of.what.bytes}};
  if (what.failure) fail(what.to, at, what.transfer, *what.failure);
  send_on(what.to, at);
}

void shipments::take(const elements_came& what) {
  const auto found = receivers_.find(what.to);
  if (found == receivers_.end()) return;
  auto& at = found->second;
  const auto entry = std::find_if(at.queue.begin(), at.queue.end(), [&](const auto& each) {
    const auto* of = std::get_if<queued_transfer>(&each);
    return of != nullptr && of->what.number == what.transfer;
  });
  if (entry == at.queue.end()) return;
  auto& of = std::get<queued_transfer>(*entry);
  of.there = std::max(of.there, what.end);
  if (what.failure) fail(what.to, at, what.transfer, *what.failure);
  send_on(what.to, at);
}

/// Fails the message to which the transfer belongs.
void shipments::fail(node_id to, receiver& at, std::uint64_t transfer, const error& why) {
  const auto is_failed = [&](const auto& each) {
    const auto* of = std::get_if<queued_transfer>(&each);
    return of != nullptr && of->what.number == transfer;
  };
  const auto is_message = [](const auto& each) { return std::holds_alternative<message>(each); };
  const auto failed = std::find_if(at.queue.begin(), at.queue.end(), is_failed);
  const auto last = std::find_if(failed, at.queue.end(), is_message);
  const auto first = std::find_if(std::make_reverse_iterator(failed), at.queue.rend(), is_message).base();
  out_.emplace_back(fail_message{to, std::get<message>(*last).number, why});
  for (auto each = first; each != last; ++each) {
    const auto& of = std::get<queued_transfer>(*each);
    if (of.offered > 0 || of.how == way::copies)
      at.dropped.push_back(of);
    else
      out_.emplace_back(let_go{of.what.number});
  }
  at.queue.erase(first, std::next(last));
}

void shipments::let_go_if_unused(receiver& at, const std::deque<queued_transfer>::iterator& which) {
  if (which->offered > 0 || which->how == way::copies) return;
  out_.emplace_back(let_go{which->what.number});
  at.dropped.erase(which);
}

void shipments::take(const receiver_down& what) {
  const auto gone = receivers_.extract(what.who);
  if (!gone) return;
  for (const auto number : gone.mapped().offered) out_.emplace_back(let_go{number});
  for (const auto& each : gone.mapped().dropped) out_.emplace_back(let_go{each.what.number});
  for (const auto& each : gone.mapped().queue) {
    if (const auto* of = std::get_if<queued_transfer>(&each))
      out_.emplace_back(let_go{of->what.number});
    else
      out_.emplace_back(drop_message{std::get<message>(each).number});
  }
}

/// Makes the whole transfer leave in pieces, once all its offers are answered.
void shipments::refuse(queued_transfer& of) {
  of.how = way::refused;
  if (of.offered > 0) return;
  of.offset = 0;
  of.how = of.what.on_device ? way::host : way::pieces;
}

void shipments::send_on(node_id to, receiver& at) {
  while (send_next(to, at)) continue;
}

/// Lets the next message leave whose transfers are gone or are read first. False if none may leave now.
bool shipments::send_next_message(receiver& at) {
  bool waits = false;
  bool is_late = false;
  auto first = at.queue.begin();  // of the transfers of the message
  for (auto each = first; each != at.queue.end(); ++each) {
    if (const auto* of = std::get_if<queued_transfer>(&*each)) {
      waits = waits || !is_read_first(at, *of);
      is_late = is_late || of->is_late();
    } else if (!waits) {
      out_.emplace_back(send_message{std::get<message>(*each).number});
      for (auto read = first; read != each; ++read) at.offered.insert(std::get<queued_transfer>(*read).what.number);
      at.queue.erase(first, std::next(each));
      return true;
    } else if (!is_late) {
      return false;
    } else {
      waits = is_late = false;
      first = std::next(each);
    }
  }
  return false;
}

/// The number of offers that count with those of the transfer.
int& shipments::offers_beside(receiver& at, const transfer& of) {
  return of.on_device ? at.device_offers[of.device] : at.offers;
}

/// Lets the next message, piece or offer leave. False if nothing may leave now.
bool shipments::send_next(node_id to, receiver& at) {
  if (send_next_message(at)) return true;
  for (auto next = at.queue.begin(); next != at.queue.end(); ++next) {
    auto* of = std::get_if<queued_transfer>(&*next);
    if (of == nullptr || of->how == way::refused || of->how == way::copies || of->offset == of->there) continue;
    if (of->how == way::waits) {
      const bool has_mark = at.reads == memory::reads || at.reads == memory::can_not;
      const bool offers = of->what.on_device ? has_mark && at.reads_devices : at.reads == memory::reads;
      of->how = offers ? way::offers : of->what.on_device ? way::host : way::pieces;
    }
    if (of->how == way::host) {
      int& copies = at.copies[of->what.device];
      if (copies >= most_copies) continue;
      ++copies;
      of->how = way::copies;
      out_.emplace_back(copy_to_host{to, of->what.number});
      continue;
    }
    if (of->how == way::offers) {
      int& offers = offers_beside(at, of->what);
      if (offers >= most_offers && of->what.on_device) continue;
      if (offers >= most_offers) return false;
      ++offers;
      ++of->offered;
      out_.emplace_back(send_offer{cut(to, *of, of->what.on_device ? of->what.bytes : offer_bytes)});
      return true;
    }
    if (at.under_way >= at.window.size()) return false;
    send_piece piece{cut(to, *of, at.window.piece_bytes()), ++last_piece_};
    at.under_way += piece.bytes;
    at.pieces.emplace(piece.piece, at.window.leaves(piece.bytes, at.under_way, now_));
    out_.emplace_back(piece);
    if (of->all_left()) {
      out_.emplace_back(let_go{of->what.number});
      at.queue.erase(next);
    }
    return true;
  }
  return false;
}

/// Whether the receiver reads the transfer, which was offered, before it reads the next message.
bool shipments::is_read_first(const receiver& at, const queued_transfer& of) {
  return of.how == way::offers && !of.what.on_device && !of.what.comes && of.all_left() && at.has_read &&
         of.what.bytes <= std::min(at.at_once, offer_bytes);
}

transfer_section shipments::cut(node_id to, queued_transfer& of, std::uint64_t most_bytes) {
  const auto bytes = std::min(most_bytes, of.there - of.offset);
  return {to, of.what.number, of.what.bytes, std::exchange(of.offset, of.offset + bytes), bytes};
}

}  // namespace troupe::transfers
