// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_rules_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include <caf/fwd.hpp>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::gate {

/// Stores the questions that actors of this process have sent to one other actor system, and that are not answered yet. CAF
/// accepts an answer from any node that sends the number of a question, and numbers can be guessed. Used by the leader thread
/// only (see network_threads).
///   OQ-1  a question is answered once, by the node that was asked.
///   OQ-2  at most twice `most` questions are remembered. Beyond this number the oldest questions are forgotten, and nobody can
///         answer them any more.
class open_questions {
 public:
  static constexpr std::size_t most = std::size_t{1} << 18;

  /// `actor`: the actor that asks. `number`: CAF's number of the question, which counts up for each actor.
  void add(std::uint64_t actor, std::uint64_t number) {
    if (recent_.size() == most) older_ = std::exchange(recent_, {});
    recent_.insert({actor, number});
  }
  /// Removes the question. Returns false if the node was not asked this question, or has answered it.
  bool take(std::uint64_t actor, std::uint64_t number) {
    return recent_.erase({actor, number}) > 0 || older_.erase({actor, number}) > 0;
  }

  bool empty() const noexcept { return recent_.empty() && older_.empty(); }

 private:
  struct question {
    std::uint64_t actor;
    std::uint64_t number;
    bool operator==(const question&) const = default;
  };
  struct hash {
    std::size_t operator()(const question& of) const noexcept {
      constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // spreads numbers that follow each other
      return std::hash<std::uint64_t>()((of.actor * odd) ^ of.number);
    }
  };
  using questions = std::unordered_set<question, hash>;

  questions recent_;
  questions older_;
};

/// Stores which certificate each connected actor system has. CAF calls an actor system a node, and makes its id from the host
/// and the number of the process. So other programs can guess the id. Any thread may use it.
///   NI-1  as long as a connection has reserved an id, no connection with another certificate gets the id.
///   NI-2  the questions to an actor system outlive its last connection: once it is connected again, it may answer them. For
///         each certificate, the questions to the `most_parted` ids whose connections ended last are kept.
///   NI-3  a certificate has at most `most_connections` connections on which at least a part of a handshake of CAF has come.
///         Their unfinished messages have at most `most_unfinished` bytes in all.
class node_ids : public std::enable_shared_from_this<node_ids> {
 public:
  /// Reserves an id for as long as the pointer lives (NI-1). Points to the open questions to the actor system with this id.
  using hold = std::shared_ptr<open_questions>;
  /// Counts one connection of a certificate for as long as the pointer lives (NI-3).
  using connection_count = std::shared_ptr<const void>;

  static constexpr std::size_t most_connections = 32;
  static constexpr std::size_t most_parted = 256;
  static constexpr std::size_t most_unfinished = std::size_t{8} << 30;

  /// Counts the bytes of the unfinished message of one connection, until the object is destroyed.
  class unfinished_message {
   public:
    unfinished_message(std::shared_ptr<node_ids> all, std::string node) : all_(std::move(all)), node_(std::move(node)) {}
    ~unfinished_message() { has(0); }
    unfinished_message(const unfinished_message&) = delete;
    unfinished_message& operator=(const unfinished_message&) = delete;

    /// Says that the unfinished message has `bytes` bytes. Returns false if the connections of the certificate have more than
    /// `most_unfinished` bytes in all.
    bool has(std::size_t bytes) noexcept;

   private:
    const std::shared_ptr<node_ids> all_;
    const std::string node_;
    std::size_t bytes_ = 0;
  };

  /// Counts a connection with the certificate of this name. Returns null if the certificate has `most_connections` connections
  /// already.
  connection_count add_connection(const std::string& node);
  /// Reserves the id for a connection with the certificate `who`. `id`: the id as CAF writes it (bytes_of). Returns null if a
  /// connection with the certificate of another node has reserved the id.
  hold take(const std::string& id, const certificates::identity& who);
  /// The id of this process itself; empty until set_own() is called.
  void set_own(std::string id);
  std::string own() const;
  /// The certificate of the connection that has reserved the id; nothing if no connection has.
  std::optional<certificates::identity> find(const std::string& id) const;

 private:
  struct entry {
    certificates::identity who;
    std::size_t holds = 0;
    open_questions questions{};
  };

  open_questions* hold_questions(const std::string& id, const certificates::identity& who);
  void give_back(const std::string& id) noexcept;
  void end_connection(const std::string& node) noexcept;

  mutable checked_mutex mutex_;
  std::string own_ TROUPE_GUARDED_BY(mutex_);
  std::map<std::string, entry> all_ TROUPE_GUARDED_BY(mutex_);
  // How many, by the name in the certificate.
  std::map<std::string, std::size_t, std::less<>> connections_ TROUPE_GUARDED_BY(mutex_);
  // Bytes, by the name in the certificate.
  std::map<std::string, std::size_t, std::less<>> unfinished_ TROUPE_GUARDED_BY(mutex_);
  /// Ids that no connection has reserved, with their open questions, by the name in the certificate; the oldest first.
  std::map<std::string, std::deque<std::pair<std::string, open_questions>>, std::less<>> parted_ TROUPE_GUARDED_BY(mutex_);
};

/// Returns the id of an actor system as CAF writes it into messages (see message_outline).
std::string bytes_of(const caf::node_id& who);

}  // namespace troupe::gate
