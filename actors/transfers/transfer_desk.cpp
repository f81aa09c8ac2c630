// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/transfer_desk.hpp>

#include <sys/random.h>
#include <algorithm>
#include <cassert>
#include <chrono>
#include <concepts>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <caf/duration.hpp>
#include <caf/send.hpp>
#include <caf/unit.hpp>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/network/waiting_bytes.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/outbox.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/transfers/transfers_ahead.hpp>
#include <troupe/devices/arrivals.hpp>
#include <troupe/devices/landing.hpp>
#include <troupe/devices/present_sharing.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/foreign_memory.hpp>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe::transfers {

namespace {

constexpr std::chrono::milliseconds looks_again_after{2};
constexpr std::chrono::nanoseconds least_for_writer =
  std::chrono::milliseconds(100);  // CAF's writer gets this time even if the deadline of the wish is nearer

constexpr std::chrono::seconds trims_after{1};

/// Frees memory of transfers from time to time, until little of it is kept. `waits`: whether the clock has an alarm for this.
/// The clock stops before `arriving` goes.
void trim_later(support::deadline_clock& clock, arriving_tensors& arriving, const std::shared_ptr<std::atomic<bool>>& waits) {
  if (waits->exchange(true)) return;
  clock.set(trims_after, [&clock, &arriving, waits] {
    *waits = false;
    if (arriving.trim()) trim_later(clock, arriving, waits);
  });
}

}  // namespace

bool transfer_desk::goes_ahead(node_id to, const std::vector<at::Tensor>& tensors) const {
  return here_.network.arriving != nullptr && to != here_.self.id() && any_large(tensors) && here_.directory.gateway(to);
}

void transfer_desk::ship(node_id to, const std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& destinations,
                         sent_ahead& ahead, std::function<void()> send, std::function<void(const error& why)> fail) {
  assert(here_.directory.gateway(to));
  ahead.from = here_.self.id();
  auto large = transfers_ahead(tensors, destinations, ahead, last_, leaving_);
  for (const auto& each : large) {
    auto& leaves = leaving_.at(each.number);
    for (const auto& [device, made] : ahead.made)
      if (each.on_device && leaves.elements.device() == device) leaves.made = made;
  }
  ahead.made.clear();
  const auto unfinished = std::exchange(ahead.unfinished, nullptr);
  const auto coming = unfinished ? mark_coming(large, *unfinished) : coming_tensors();
  messages_.emplace(++last_, following_message{std::move(send), std::move(fail), ahead});
  const bool may_read = here_.options.direct_memory && is_loopback(here_.directory.host(to));
  take(shipment_begun{to, std::move(large), last_, may_read});
  for (const auto& [number, copy] : coming) follow(to, number, *copy);
}

/// Marks the transfers whose elements still come. Returns their copies, by number of the transfer.
transfer_desk::coming_tensors transfer_desk::mark_coming(std::vector<transfer>& large, const devices::unfinished& rest) const {
  coming_tensors result;
  for (auto& each : large) {
    const auto& elements = leaving_.at(each.number).elements;
    if (!elements.is_cpu()) continue;
    const auto found = std::find_if(rest.coming.begin(), rest.coming.end(),
                                    [&](const auto& copy) { return copy.host.const_data_ptr() == elements.const_data_ptr(); });
    if (found == rest.coming.end()) continue;
    each.comes = true;
    result.emplace_back(each.number, &*found);
  }
  TROUPE_EXPECT(result.size() == rest.coming.size());
  return result;
}

/// Makes the courier tell the gateway of each part of the copy.
void transfer_desk::follow(node_id to, std::uint64_t transfer, const devices::copy_in_parts& copy) {
  for (const auto& part : copy.parts) {
    devices::staged one;
    one.events.push_back(part.copied);
    const auto came = std::make_shared<contracts::host_copy>(contracts::host_copy{to, transfer, part.end, {}, {}});
    here_.departures->post(
      std::move(one), [] {},
      [came, device = part.copied->device(), gateway = here_.actors.gateway](const std::exception_ptr& failure) {
        if (failure) came->failure = contracts::not_copied(failure, {device});
        caf::anon_send(gateway, came);
      });
  }
}

/// A message that leaves may begin another shipment. The effects of that shipment are then carried out after those in `due_`.
void transfer_desk::take(const shipping_event& event) {
  const bool is_outermost = due_.empty();
  for (auto& each : shipments_.on(event, support::steady_ns())) due_.push_back(std::move(each));
  if (!is_outermost) return;
  for (; !due_.empty(); due_.pop_front()) std::visit([this](const auto& effect) { carry_out(effect); }, due_.front());
}

void transfer_desk::call_off(node_id to, const sent_ahead& ahead) const {
  const auto gateway = here_.directory.gateway(to);
  if (!gateway) return;
  for (const auto number : ahead.transfers)
    if (number != 0) caf::anon_send(gateway, tensor_piece{here_.self.id(), number, 0, 0, {}});
}

/// Sends the question, and calls then(error, answer) when the node has answered. `answer`: 0 if the node sends no value. then()
/// is not called if the node goes down before.
template <class Question, class F>
void transfer_desk::ask(node_id to, const contracts::gateway_actor& gateway, Question question, F then) {
  const auto request = self_->request(gateway, caf::infinite, std::move(question));
  asked_.add(to, request.id());
  auto answered = [this, to, id = request.id(), then = std::move(then)](const caf::error& why, std::int64_t answer) {
    if (asked_.answered(to, id)) then(why, answer);
  };
  auto failed = [answered](const caf::error& why) { answered(why, 0); };
  if constexpr (std::same_as<Question, tensor_piece>)
    request.then([answered](std::int64_t answer) { answered({}, answer); }, failed);
  else
    request.then([answered] { answered({}, 0); }, failed);
}

void transfer_desk::send(const contracts::outgoing_gradients_ptr& what) {
  auto& message = what->message;
  if (!goes_ahead(what->to, message.gradients)) return send_now(what);
  ship(
    what->to, message.gradients, what->devices, message.ahead, [this, what] { send_now(what); },
    [this, what](const error& why) { fail(*what, why); });
}

void transfer_desk::fail(const contracts::outgoing_gradients& what, const error& why) const {
  const auto& message = what.message;
  const auto initiator = here_.directory.gateway(message.context.node);
  if (!initiator) return;
  const auto text =
    "backward on node '" + message.from + "' failed: gradients for node '" + here_.directory.name(what.to) + "': " + why.what();
  caf::anon_send(initiator, participant_failed{message.context, message.pass, here_.self.id(),
                                               static_cast<std::uint8_t>(errc::function_failed), text});
}

void transfer_desk::send_now(const contracts::outgoing_gradients_ptr& what) {
  const auto to = what->to;
  const auto gateway = here_.directory.gateway(to);
  if (!gateway) return;
  if (!what->credit) return caf::anon_send(gateway, std::move(what->message));
  ask(to, gateway, std::move(what->message), [what](const caf::error&, std::int64_t) { what->credit.give_back(); });
}

void transfer_desk::when_taken(node_id by, std::function<void()> taken) {
  if (const auto gateway = here_.directory.gateway(by))
    ask(by, gateway, tensor_piece{here_.self.id(), 0, 0, 0, {}},
        [taken = std::move(taken)](const caf::error&, std::int64_t) { taken(); });
}

/// Asks a node for a mark. A node that draws a mark can read this process's memory, until it refuses an offer.
void transfer_desk::carry_out(const ask_for_mark& what) {
  const auto to = what.of;
  const auto request =
    self_->request(here_.directory.gateway(to), here_.options.deadline, request_mark{here_.self.id(), this_process()});
  const auto id = request.id();
  asked_.add(to, id);
  request.then(
    [this, to, id](const memory_mark& drawn) {
      if (!asked_.answered(to, id)) return;  // the node went down meanwhile
      direct_.keep(to, drawn);
      take(mark_drawn{to, drawn.read_at_once, is_of_this_process(to)});
    },
    [this, to, id](const caf::error& why) {
      if (asked_.answered(to, id)) here_.outbox.go_over_the_host(to, to_exception(why).what());
    });
}

/// Sends a piece. The receiver answers when it has the elements, or with an error.
void transfer_desk::carry_out(const send_piece& what) {
  const auto gateway = here_.directory.gateway(what.to);
  if (!gateway) return;  // went_down() follows
  const auto& leaves = leaving_.at(what.transfer);
  tensor_piece piece{
    here_.self.id(),   what.transfer, what.total, what.offset, bytes_of(leaves.elements, what.offset, what.bytes),
    leaves.destination};
  ask(what.to, gateway, std::move(piece),
      [this, to = what.to, number = what.piece](const caf::error& why, std::int64_t taken_ns) {
        take(piece_answered{to, number, why ? std::nullopt : std::optional(taken_ns)});
      });
}

void transfer_desk::carry_out(const send_offer& what) {
  const auto gateway = here_.directory.gateway(what.to);
  if (!gateway) return;  // went_down() follows
  tensor_offer offer{here_.self.id(), what.transfer, what.total, what.offset, what.bytes, 0, 0, 0, {}, {}, {}};
  using answer = offer_answered::answer;
  if (!complete(offer, what.to)) return take(offer_answered{what.to, what.transfer, answer::refused});
  const bool on_device = !offer.allocation.empty();
  ask(what.to, gateway, std::move(offer),
      [this, to = what.to, number = what.transfer, on_device](const caf::error& why, std::int64_t) {
        const bool is_unreadable = why == errc::refused;
        if (is_unreadable && on_device) here_.outbox.go_over_the_host(to, to_exception(why).what());
        if (why && !is_unreadable && on_device) note_over_the_host(to, to_exception(why).what());
        if (is_unreadable && !on_device) direct_.forget(to);
        take(offer_answered{to, number, is_unreadable ? answer::unreadable : why ? answer::refused : answer::taken});
      });
}

/// Says in the offer where the elements lie. False if other processes can't read this memory of the device.
bool transfer_desk::complete(tensor_offer& offer, node_id to) {
  auto& leaves = leaving_.at(offer.transfer);
  const auto& elements = leaves.elements;
  if (elements.is_cpu()) {
    offer.address = reinterpret_cast<std::uintptr_t>(elements.const_data_ptr()) + offer.offset;
    direct_.complete(offer, to);
    return true;
  }
  offer.process = this_process();
  if (is_of_this_process(to)) {
    leaves.offer = devices::own_offers::all().add({elements, leaves.made});
    offer.allocation = *leaves.offer;
    return true;
  }
  try {
    const auto place = devices::sharing_of(elements.device().type())->share(elements);
    offer.address = place.offset;
    offer.allocation = place.allocation;
    offer.event = leaves.made->handle();
    return true;
  } catch (const c10::Error& why) {
    note_over_the_host(to, why.what_without_backtrace());
    return false;
  }
}

bool transfer_desk::is_of_this_process(node_id to) const {
  const auto gateway = here_.directory.gateway(to);
  return gateway && membership::process_beyond(*here_.actors.system, gateway.node()) == this_process();
}

/// Says in the log that one tensor of a device goes over the host. Others are still offered.
void transfer_desk::note_over_the_host(node_id to, const std::string& why) const {
  here_.log.warn(
    "transfers", [&] { return "a tensor of a device goes to node '" + here_.directory.name(to) + "' over the host: " + why; },
    [&] { return std::hash<node_id>()(to); });
}

/// The copy may make its thread wait (ST-1). So the courier begins the copy, when the elements are made.
void transfer_desk::carry_out(const copy_to_host& what) {
  auto& leaves = leaving_.at(what.transfer);
  leaves.offer = nullptr;
  const auto elements = leaves.elements;
  const auto made = std::exchange(leaves.made, nullptr);
  const auto copied = std::make_shared<contracts::host_copy>(contracts::host_copy{what.to, what.transfer, 0, {}, {}});
  const auto running = std::make_shared<devices::staged>();
  const auto tell = [copied, device = elements.device(), gateway = here_.actors.gateway](const std::exception_ptr& failure) {
    if (failure) copied->failure = contracts::not_copied(failure, {device});
    caf::anon_send(gateway, copied);
  };
  auto begin = [elements, made, running, departures = &*here_.departures] {
    *running = departures->stage.to_host_after(elements, *made);
  };
  const auto begun = [copied, running, tell, departures = &*here_.departures](const std::exception_ptr& failure) {
    if (failure) return tell(failure);
    copied->elements = running->tensors.at(0);
    departures->post(
      std::exchange(*running, {}), [] {}, tell);
  };
  try {
    here_.departures->post(devices::staging::after(*made, elements.device()), std::move(begin), begun);
  } catch (const std::exception&) {
    tell(std::current_exception());
  }
}

void transfer_desk::was_copied(const contracts::host_copy& what) {
  if (what.end > 0) return take(elements_came{what.to, what.transfer, what.end, what.failure});
  const auto found = leaving_.find(what.transfer);
  if (found != leaving_.end() && !what.failure) found->second.elements = what.elements;
  take(copied_to_host{what.to, what.transfer, what.failure});
}

void transfer_desk::carry_out(const send_message& what) {
  const auto following = std::move(messages_.extract(what.message).mapped());
  following.send();
}

void transfer_desk::carry_out(const fail_message& what) {
  const auto failed = std::move(messages_.extract(what.message).mapped());
  if (what.why.code() != errc::stopping)
    here_.log.warn(
      "transfers", [&] { return "a message to node '" + here_.directory.name(what.to) + "' failed: " + what.why.what(); },
      [&] { return std::hash<node_id>()(what.to); });
  call_off(what.to, failed.ahead);
  failed.fail(what.why);
}

std::int64_t transfer_desk::came(const tensor_piece& piece) {
  TROUPE_EXPECT(here_.network.arriving != nullptr);
  if (here_.directory.is_down(piece.from))
    here_.network.arriving->drop(piece.from);
  else if (!piece.destination.is_cpu())
    move_on(piece);
  trim_later(here_.deadlines, *here_.network.arriving, will_trim_);
  return support::steady_ns();
}

/// Lets another thread begin the copy of the elements that have come for a device. If this thread is late, the move of the
/// whole tensor copies the rest. If the elements come in ordinary memory, the other thread prepares page-locked memory for the
/// next tensor.
void transfer_desk::move_on(const tensor_piece& piece) {
  const auto [elements, there] = here_.network.arriving->look_at(piece.from, piece.transfer);
  if (!elements) return;
  if (const auto* const landed = devices::landing::of(elements)) {
    if (there / devices::part_bytes == piece.offset / devices::part_bytes) return;
    auto copy = [weak = elements.getWeakStorageImpl(), there = there] {
      const c10::Storage still(weak.lock());
      if (auto* const to = devices::landing::of(still)) to->copy_on(there);
    };
    here_.departures->run_for_arrival(landed->device(), std::move(copy));
  } else if (piece.offset == 0 && devices::landing::may_land(piece.destination, piece.total) && !prepares_->exchange(true)) {
    here_.departures->run_for_arrival(piece.destination,
                                      [device = piece.destination, bytes = piece.total, prepares = prepares_] {
                                        *prepares = false;
                                        devices::landing::prepare(device, bytes);
                                      });
  }
}

/// The error if this node may not read the memory of `process`, a process of node `from`; empty if this node may. The kernel
/// says which process is at the other end of the connection, and that it is of the same user (LD-1). The claim of the node
/// would not be enough.
caf::error transfer_desk::why_not_read(node_id from, std::uint64_t process) const {
  const auto refused = [&](const char* why) {
    return make_error(errc::refused,
                      "node '" + here_.self.name() + "' reads no memory of node " + to_string(from) + ": " + why);
  };
  if (!here_.options.direct_memory) return refused("direct memory is turned off there");
  const auto gateway = here_.directory.gateway(from);
  if (!gateway) return refused("that is not up here");
  if (!is_loopback(here_.directory.host(from))) return refused("that does not listen on loopback");
  const auto proven = membership::process_beyond(*here_.actors.system, gateway.node());
  if (!proven) return refused("the connection to it goes on in no shared memory");
  if (*proven != process) return refused("it says that it is another process than the one at the other end of its connection");
  return {};
}

caf::result<memory_mark> transfer_desk::draw_mark(const request_mark& from) {
  if (auto why = why_not_read(from.from, from.process)) return why;
  const bool may_copy = here_.options.short_work.count() > 0;
  memory_mark drawn{{}, may_copy ? arriving_tensors::most_read_at_once : 0};
  if (::getrandom(drawn.words.data(), sizeof drawn.words, 0) != sizeof drawn.words)
    return make_error(errc::refused, "no mark, because the system gives no random numbers");
  here_.network.arriving->take_offers(from.from, from.process, drawn);
  return drawn;
}

caf::result<void> transfer_desk::read(const tensor_offer& offer) {
  const auto name = "node '" + here_.self.name() + "'";
  if (here_.network.arriving == nullptr) return make_error(errc::refused, name + " has no network");
  if (offer.read_at_once) {
    if (*offer.read_at_once != errc::none)
      return make_error(*offer.read_at_once, name + " could not read the elements with the offer");
    was_read(offer);
    return caf::unit;
  }
  auto promise = self_->response_promise();
  try {
    auto job = std::make_shared<contracts::incoming_offer>(contracts::incoming_offer{offer, {}, promise, {}, {}});
    if (const auto why = here_.network.arriving->prepare(offer, job->piece))
      promise.deliver(make_error(why->code(), why->what()));
    else if (!readers_.read(std::move(job)))
      promise.deliver(make_error(errc::stopping, name + " is stopping"));
  } catch (const std::system_error& none) {
    promise.deliver(make_error(errc::refused, name + " can't start the thread that reads memory: " + none.what()));
  } catch (const std::exception& none) {  // no memory
    promise.deliver(make_error(errc::function_failed, name + " can't read an offer: " + none.what()));
  }
  return promise;
}

void transfer_desk::was_read(contracts::incoming_offer& job) {
  const auto from = job.offer.from;
  readers_.was_read();
  if (here_.directory.is_down(from)) readers_.forget(job.offer.process);
  if (job.failure) {
    job.promise.deliver(make_error(job.failure->code(), job.failure->what()));
    return;
  }
  was_read(job.offer);
  job.promise.deliver(caf::unit);
}

/// The elements of the offer have come. Of a sender that went down meanwhile nothing is kept.
void transfer_desk::was_read(const tensor_offer& offer) {
  if (here_.directory.is_down(offer.from)) here_.network.arriving->drop(offer.from);
  here_.directory.traffic.read(offer.from, offer.bytes);
  trim_later(here_.deadlines, *here_.network.arriving, will_trim_);
}

void transfer_desk::wish(const contracts::capacity_wish_ptr& what) {
  if (here_.network.arriving == nullptr || what->to == here_.self.id()) return what->result.set_value({});
  if (std::exchange(what->has_asked, true)) return look_for_capacity(what);
  // CAF's writer answers after it has written the messages that came before.
  const auto gateway = here_.directory.gateway(what->to);
  if (!gateway) return look_for_capacity(what);
  const auto left = std::max(std::chrono::nanoseconds(what->until_ns - support::steady_ns()), least_for_writer);
  what->overdue = self_->send_later(here_.deadlines, left, support::capacity_atom::value, what);
  const auto written = [this, what] {
    here_.deadlines.call_off(std::exchange(what->overdue, {}));
    look_for_capacity(what);
  };
  self_->request(network::message_writer(*here_.actors.system), caf::infinite, caf::get_atom::value, gateway.node())
    .then([written](const caf::node_id&, const std::string&, std::uint16_t) { written(); },
          [written](const caf::error&) { written(); });
}

void transfer_desk::look_for_capacity(const contracts::capacity_wish_ptr& what) const {
  const auto& limit = here_.options.send_limit;
  const auto gateway = here_.directory.gateway(what->to);
  const auto fail = [&](errc code, const std::string& why) {
    what->result.set_error(error(code, "waiting for send capacity: " + why));
  };
  const auto who = "node '" + here_.directory.name(what->to) + "'";
  if (!gateway && here_.is_ending) return fail(errc::stopping, "this node has stopped");
  if (!gateway) return fail(errc::peer_down, who + " is down");
  const auto waiting = network::waiting_bytes(*here_.actors.system, gateway.node());
  const bool is_written = what->overdue == support::deadline_clock::alarm{};
  if (is_written && waiting < limit) return what->result.set_value({});
  if (!is_written && waiting < limit && support::steady_ns() >= what->until_ns)
    return fail(errc::deadline_passed, "messages that were sent to " + who + " before wait to be written");
  if (support::steady_ns() >= what->until_ns)
    return fail(errc::deadline_passed, std::to_string(waiting) + " bytes wait to leave for " + who +
                                         " (settings::send_limit is " + std::to_string(limit) + ")");
  self_->send_later(here_.deadlines, looks_again_after, support::capacity_atom::value, what);
}

void transfer_desk::went_down(node_id who) {
  direct_.forget(who);
  take(receiver_down{who});
  asked_.fail(self_->ctrl(), who, make_error(errc::peer_down, "it went down"));
  if (auto* arriving = here_.network.arriving) {
    if (const auto process = arriving->process_of(who)) readers_.forget(*process);
    arriving->drop(who);
  }
}

}  // namespace troupe::transfers
