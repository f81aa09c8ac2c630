// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/transfer_desk.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <caf/duration.hpp>
#include <caf/send.hpp>
#include <caf/unit.hpp>

#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/actors/network/waiting_bytes.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/foreign_memory.hpp>

namespace troupe::transfers {

namespace {

constexpr std::chrono::milliseconds looks_again_after{2};

}  // namespace

bool transfer_desk::goes_ahead(node_id to, const std::vector<at::Tensor>& tensors) const {
  return here_.arriving() != nullptr && to != here_.id() && outgoing_pieces::any_large(tensors) && here_.directory().gateway(to);
}

void transfer_desk::ship(node_id to, const std::vector<at::Tensor>& tensors, sent_ahead& ahead,
                         outgoing_pieces::send_message send) {
  ahead.from = here_.id();
  ask_for_mark(to);
  leaving_[to].add(tensors, ahead, last_, std::move(send));
  send_pieces(to);
}

void transfer_desk::call_off(node_id to, const sent_ahead& ahead) const {
  const auto gateway = here_.directory().gateway(to);
  if (!gateway) return;
  for (const auto number : ahead.transfers)
    if (number != 0) caf::anon_send(gateway, tensor_piece{here_.id(), number, 0, 0, {}});
}

/// Asks, and calls then(error, answer) when the node has answered. `answer`: 0 if there is none. No effect if the node goes down before.
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
  ship(what->to, message.gradients, message.ahead, [this, what] { send_now(what); });
}

void transfer_desk::send_now(const contracts::outgoing_gradients_ptr& what) {
  const auto to = what->to;
  const auto gateway = here_.directory().gateway(to);
  if (!gateway) return;
  if (!what->credit) return caf::anon_send(gateway, std::move(what->message));
  ask(to, gateway, std::move(what->message), [what](const caf::error&, std::int64_t) { what->credit.give_back(); });
}

void transfer_desk::when_taken(node_id by, std::function<void()> taken) {
  if (const auto gateway = here_.directory().gateway(by))
    ask(by, gateway, tensor_piece{here_.id(), 0, 0, 0, {}},
        [taken = std::move(taken)](const caf::error&, std::int64_t) { taken(); });
}

/// Asks the node for a mark, once, if the node listens on loopback and settings::direct_memory is on. Large tensors are offered to
/// a node that gave a mark, until the node refuses an offer because it can't read this process's memory. Without a mark, tensors
/// leave in pieces.
void transfer_desk::ask_for_mark(node_id to) {
  if (!here_.options().direct_memory || !direct_.ask(to) || !is_loopback(here_.directory().host(to))) return;
  const auto request =
    self_->request(here_.directory().gateway(to), here_.options().deadline, request_mark{here_.id(), this_process()});
  const auto id = request.id();
  asked_.add(to, id);
  request.then(
    [this, to, id](const memory_mark& drawn) {
      asked_.answered(to, id);
      direct_.keep(to, drawn);
    },
    [this, to, id](const caf::error&) { asked_.answered(to, id); });
}

/// Sends all that may leave for the node now. Called again whenever the node has taken or refused a piece.
void transfer_desk::send_pieces(node_id to) {
  const auto found = leaving_.find(to);
  const auto gateway = here_.directory().gateway(to);
  if (found == leaving_.end() || !gateway) return;
  auto& window = windows_[to];
  // A piece that leaves may shrink the window.
  while (auto step = found->second.next(direct_.reads_here(to), window.size(), window.piece_bytes()))
    if (auto* message = std::get_if<outgoing_pieces::send_message>(&*step))
      (*message)();
    else if (auto* offer = std::get_if<tensor_offer>(&*step))
      send(to, gateway, std::move(*offer));
    else
      send(to, gateway, std::move(std::get<tensor_piece>(*step)));
  if (found->second.empty()) leaving_.erase(found);
}

/// Sends a piece; the receiver answers when it has the elements, or with an error. After either answer the next piece may leave.
/// A refused piece is not sent again. The receiver then can't read the message to which the tensor belongs: a call fails, and a
/// pass fails at its deadline at the latest.
void transfer_desk::send(node_id to, const contracts::gateway_actor& gateway, tensor_piece piece) {
  const auto bytes = static_cast<std::uint64_t>(piece.elements.nbytes());
  const auto measured = windows_[to].leaves(bytes, leaving_.at(to).under_way(), support::steady_ns());
  ask(to, gateway, std::move(piece), [this, to, measured](const caf::error& why, std::int64_t taken_ns) {
    if (const auto at = windows_.find(to); at != windows_.end())
      at->second.answered(measured, support::steady_ns(), why ? std::nullopt : std::optional(taken_ns));
    if (const auto at = leaving_.find(to); at != leaving_.end()) at->second.piece_taken(measured.bytes);
    send_pieces(to);
  });
}

void transfer_desk::send(node_id to, const contracts::gateway_actor& gateway, tensor_offer offer) {
  const auto number = offer.transfer;
  if (!direct_.reads_here(to)) return leaving_.at(to).refused(number);  // the node refused an offer since the transfer began
  direct_.complete(offer, to);
  ask(to, gateway, std::move(offer), [this, to, number](const caf::error& why, std::int64_t) {
    if (why == errc::refused) direct_.refused(to);
    if (const auto at = leaving_.find(to); at != leaving_.end()) why ? at->second.refused(number) : at->second.taken(number);
    send_pieces(to);
  });
}

std::int64_t transfer_desk::came(const tensor_piece& piece) {
  if (here_.directory().is_down(piece.from)) here_.arriving()->drop(piece.from);
  return support::steady_ns();
}

/// Why this node may not read the memory of this process of node `from`; no error if this node may. The kernel says which process is at
/// the other end of the connection, and that it is of the same user (LD-1): what the node says would not do.
caf::error transfer_desk::why_not_read(node_id from, std::uint64_t process) const {
  const auto refused = [&](const char* why) {
    return make_error(errc::refused, "node '" + here_.name() + "' reads no memory of node " + to_string(from) + ": " + why);
  };
  if (!here_.options().direct_memory) return refused("direct memory is turned off there");
  const auto gateway = here_.directory().gateway(from);
  if (!gateway) return refused("that is not up here");
  if (!is_loopback(here_.directory().host(from))) return refused("that does not listen on loopback");
  const auto proven = membership::process_beyond(here_.system(), gateway.node());
  if (!proven) return refused("the connection to it goes on in no shared memory");
  if (*proven != process) return refused("it says that it is another process than the one at the other end of its connection");
  if (process == this_process()) return refused("it is of the same process");
  return {};
}

caf::result<memory_mark> transfer_desk::draw_mark(const request_mark& from) {
  if (auto why = why_not_read(from.from, from.process)) return why;
  const auto* drawn = direct_.draw(from.from, from.process);
  if (drawn == nullptr) return make_error(errc::refused, "no mark, because the system gives no random numbers");
  return *drawn;
}

caf::result<void> transfer_desk::read(const tensor_offer& offer) {
  const auto* given = direct_.drawn(offer.from);
  if (given == nullptr || given->process != offer.process) {
    here_.arriving()->add({offer.from, offer.transfer, 0, 0, {}}, {});  // drops what has come of the transfer
    return make_error(errc::refused, "an offer from node " + to_string(offer.from) + " of the memory of process " +
                                       std::to_string(offer.process) + ", which has no mark");
  }
  auto job = std::make_shared<contracts::incoming_offer>(contracts::incoming_offer{offer, given->mark, {}, {}});
  auto promise = job->promise = self_->response_promise();
  try {
    if (!reader_.read(std::move(job))) promise.deliver(make_error(errc::stopping, "node '" + here_.name() + "' is stopping"));
  } catch (const std::system_error& none) {
    promise.deliver(
      make_error(errc::refused, "node '" + here_.name() + "' can't start the thread that reads memory: " + none.what()));
  }
  return promise;
}

void transfer_desk::was_read(contracts::incoming_offer& job) {
  const auto from = job.offer.from;
  reader_.was_read();
  if (here_.directory().is_down(from)) here_.arriving()->drop(from);
  if (job.failure) {
    job.promise.deliver(make_error(job.failure->code(), job.failure->what()));
    return;
  }
  here_.directory().read(from, job.offer.bytes);
  job.promise.deliver(caf::unit);
}

void transfer_desk::wish(const contracts::room_wish_ptr& what) {
  if (here_.arriving() == nullptr || what->to == here_.id()) return what->result.set_value({});
  if (std::exchange(what->has_asked, true)) return look_for_room(what);
  // CAF's writer answers after it has written the messages that came before.
  const auto gateway = here_.directory().gateway(what->to);
  if (!gateway) return look_for_room(what);
  self_->request(network::message_writer(here_.system()), caf::infinite, caf::get_atom::value, gateway.node())
    .then([this, what](const caf::node_id&, const std::string&, std::uint16_t) { look_for_room(what); },
          [this, what](const caf::error&) { look_for_room(what); });
}

void transfer_desk::look_for_room(const contracts::room_wish_ptr& what) const {
  const auto& limit = here_.options().send_limit;
  const auto gateway = here_.directory().gateway(what->to);
  const auto fail = [&](errc code, const std::string& why) { what->result.set_error(error(code, "waiting for room: " + why)); };
  const auto who = "node '" + here_.directory().name(what->to) + "'";
  if (!gateway && here_.is_ending()) return fail(errc::stopping, "this node has stopped");
  if (!gateway) return fail(errc::peer_down, who + " is down");
  const auto waiting = network::waiting_bytes(here_.system(), gateway.node());
  if (waiting < limit) return what->result.set_value({});
  if (support::steady_ns() >= what->until_ns)
    return fail(errc::deadline_passed, std::to_string(waiting) + " bytes wait to leave for " + who +
                                         " (settings::send_limit is " + std::to_string(limit) + ")");
  self_->send_later(here_.deadlines(), looks_again_after, support::room_atom::value, what);
}

void transfer_desk::went_down(node_id who) {
  direct_.forget(who);
  leaving_.erase(who);
  windows_.erase(who);
  asked_.fail(self_->ctrl(), who, make_error(errc::peer_down, "it went down"));
  if (auto* arriving = here_.arriving()) arriving->drop(who);
}

}  // namespace troupe::transfers
