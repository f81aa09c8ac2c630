// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::test {

/// Plays what no node would send to a node with certificates: bytes before, in and after the handshake of TLS, BASP messages in wrong
/// orders and with wrong ids, troupe's own messages with random contents and damaged ones, and connections that stall. The same
/// seed plays the same inputs. One thread at a time may use it.
class hostile_client {
 public:
  /// `kit`: the file of a kit of the cluster. The client needs the kit to get through the handshake of TLS, for the inputs that come
  /// after it.
  hostile_client(std::string address, std::uint16_t port, const std::string& kit, std::uint64_t seed);
  ~hostile_client();
  hostile_client(const hostile_client&) = delete;
  hostile_client& operator=(const hostile_client&) = delete;

  /// Plays so many inputs: an input is what is sent on a connection before its proof, or one message after it.
  /// Throws std::runtime_error if nobody takes a connection any more.
  void play(std::uint64_t count);

  /// Sends the bytes on a connection of their own: instead of the handshake of TLS, or after it. True if the node then closes the
  /// connection within 20 seconds.
  bool is_closed_after(const std::string& bytes, bool proven_first);

  std::uint64_t connections() const noexcept { return connections_; }
  /// How many messages a node has got after the proof of this client.
  std::uint64_t messages() const noexcept { return messages_; }

  /// The handshake of BASP, of a caller that no other node is.
  static std::string handshake();
  /// The bytes of a BASP message of troupe with random contents, as CAF writes it. `gateway`: the number of the actor it is for.
  static std::string random_message(std::mt19937_64& random, std::uint64_t gateway, node_id self);

 private:
  struct proven;

  support::owned_descriptor connect();
  void before_the_proof();
  void stall();
  std::unique_ptr<proven> prove();
  std::string next_message(const proven& by);
  void damage(std::string& bytes);

  const std::string address_;
  const std::uint16_t port_;
  const std::shared_ptr<gate::credentials> own_;
  const node_id self_;
  std::mt19937_64 random_;
  std::string hello_;  // a ClientHello of TLS
  std::deque<support::owned_descriptor> stalled_;
  std::unique_ptr<proven> open_;
  std::uint64_t connections_ = 0;
  std::uint64_t messages_ = 0;
};

}  // namespace troupe::test
