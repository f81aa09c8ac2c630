// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/transfers/earlier_builds_test.cpp, tests/actors/direct_reads_test.cpp, tests/actors/slow_readers_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <caf/error.hpp>
#include <caf/make_message.hpp>  // CAF needs this header before result.hpp
#include <caf/result.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/support/open_requests.hpp>
#include <troupe/actors/transfers/direct_memory.hpp>
#include <troupe/actors/transfers/memory_reader.hpp>
#include <troupe/actors/transfers/shipments.hpp>
#include <troupe/actors/transfers/transfers_ahead.hpp>

namespace troupe::transfers {

/// The desk of the `gateway` actor for large tensors. Large tensors leave ahead of their messages (GW-6), in pieces or as
/// offers. They come as pieces, or this node reads them out of the memory of the process that offers them (GW-8). Its core is
/// `shipments`.
class transfer_desk {
 public:
  using used_services = uses<with_options, with_log, with_self, with_directory, with_network, with_actors, with_deadlines,
                             with_is_ending, with_departures, with_outbox>;

  transfer_desk(support::desk_actor self, const used_services& here, lazy_memory_readers& readers)
      : self_(self), here_(here), readers_(readers) {}

  /// Whether some of these tensors are large and have to leave ahead of their message.
  bool goes_ahead(node_id to, const std::vector<at::Tensor>& tensors) const;
  /// Sends the large tensors of a message, then calls `send`. Calls `fail` instead if a tensor could not be copied from its
  /// device; the receiver then drops the transfers. Calls neither if the node goes down before. Pre: the node is up.
  /// `destinations`: for each tensor the device to which the receiver probably moves it; or empty.
  void ship(node_id to, const std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& destinations, sent_ahead& ahead,
            std::function<void()> send, std::function<void(const error& why)> fail);
  /// Makes the receiver drop the pieces of a message that will not leave (GW-7).
  void call_off(node_id to, const sent_ahead& ahead) const;
  /// Sends gradients. Gradients that count for the send limit leave as a request: the other node answers when it has taken them
  /// (GW-14).
  void send(const contracts::outgoing_gradients_ptr& what);
  /// Calls `taken` when the node has taken all messages that were sent to it before. For this it sends a piece of transfer 0,
  /// which changes nothing and is answered. `taken` is not called if the node goes down before.
  void when_taken(node_id by, std::function<void()> taken);

  /// To be called when a piece has come. The elements are in arriving_tensors already, because reading the message put them
  /// there. Returns the time of the arrival by the clock of this process, in nanoseconds (see piece_window).
  std::int64_t came(const tensor_piece& piece);
  caf::result<memory_mark> draw_mark(const request_mark& from);
  /// Answers the offer if its elements were read with it. Otherwise a memory reader gets it, and was_read() answers it later.
  caf::result<void> read(const tensor_offer& offer);
  void was_read(contracts::incoming_offer& job);
  void was_copied(const contracts::host_copy& what);

  /// Fulfils a wish for send capacity (GW-15). CAF sends the messages of a user's own actors, so the node can only tell the
  /// senders when to wait.
  void wish(const contracts::capacity_wish_ptr& what);

  void went_down(node_id who);

 private:
  struct following_message {
    std::function<void()> send;
    std::function<void(const error& why)> fail;
    sent_ahead ahead;
  };

  using coming_tensors = std::vector<std::pair<std::uint64_t, const devices::copy_in_parts*>>;

  coming_tensors mark_coming(std::vector<transfer>& large, const devices::unfinished& rest) const;
  void follow(node_id to, std::uint64_t transfer, const devices::copy_in_parts& copy);
  template <class Question, class F>
  void ask(node_id to, const contracts::gateway_actor& gateway, Question question, F then);
  void send_now(const contracts::outgoing_gradients_ptr& what);
  void fail(const contracts::outgoing_gradients& what, const error& why) const;
  void take(const shipping_event& event);
  void carry_out(const ask_for_mark& what);
  void carry_out(const send_piece& what);
  void carry_out(const send_offer& what);
  void carry_out(const copy_to_host& what);
  void carry_out(const send_message& what);
  void carry_out(const drop_message& what) { messages_.erase(what.message); }
  void carry_out(const fail_message& what);
  void carry_out(const let_go& what) { leaving_.erase(what.transfer); }
  bool complete(tensor_offer& offer, node_id to);
  bool is_of_this_process(node_id to) const;
  void note_over_the_host(node_id to, const std::string& why) const;
  caf::error why_not_read(node_id from, std::uint64_t process) const;
  void was_read(const tensor_offer& offer);
  void move_on(const tensor_piece& piece);
  void look_for_capacity(const contracts::capacity_wish_ptr& what) const;

  support::desk_actor self_;
  const used_services here_;
  lazy_memory_readers& readers_;
  shipments shipments_;
  std::unordered_map<std::uint64_t, leaving_elements> leaving_;    // by number of the transfer
  std::unordered_map<std::uint64_t, following_message> messages_;  // messages that follow transfers, by number
  std::deque<shipping_effect> due_;                                // not empty while effects are carried out
  support::open_requests asked_;
  const std::shared_ptr<std::atomic<bool>> will_trim_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<std::atomic<bool>> prepares_ = std::make_shared<std::atomic<bool>>(false);  // memory for a device
  direct_memory direct_;    // after leaving_: its marks are overwritten before the elements are freed
  std::uint64_t last_ = 0;  // number of the newest transfer or message
};

}  // namespace troupe::transfers
