// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/io/basp/message_type.hpp>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/network/peer_messages.hpp>

namespace troupe::test {

/// The bytes of a BASP message: a header, and a payload that begins with `number`.
inline std::string basp_message(std::uint64_t source, std::size_t payload, std::uint32_t number = 0, std::uint64_t target = 9) {
  network::message_head head;
  head.operation = static_cast<std::uint8_t>(caf::io::basp::message_type::direct_message);
  head.payload = static_cast<std::uint32_t>(payload);
  head.source = source;
  head.target = target;
  std::string result(network::message_head::bytes + payload, '\0');
  head.write(result.data());
  for (std::size_t i = 0; i < payload; ++i)
    result[network::message_head::bytes + i] = static_cast<char>(i * 7 + i / 251 + source);
  for (std::size_t i = 0; i < std::min<std::size_t>(payload, 4); ++i)
    result[network::message_head::bytes + i] = static_cast<char>(number >> (8 * i));
  return result;
}

/// Gets bytes as a connection does and hands them to a broker that wants a header, then the payload of the header.
class broker_at_the_end {
 public:
  /// `most`: bytes of a payload beyond which feed() says that the bytes are wrong.
  explicit broker_at_the_end(bool reads_fragments = true, std::size_t most = SIZE_MAX) : most_(most) {
    if (reads_fragments) judge.begin({});
    want_next();
  }

  /// False: the bytes are wrong.
  bool feed(std::string bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
      const auto more = std::min(bytes.size() - at, chunk_.size() - collected_);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), more,
                  chunk_.begin() + static_cast<std::ptrdiff_t>(collected_));
      at += more;
      collected_ += more;
      if (collected_ == chunk_.size() && !hand_on()) return false;
    }
    return true;
  }

  gate::known_peers known;
  network::peer_messages judge{known};
  network::fragment_reader& reader = judge.frames();
  std::vector<std::string> messages;
  std::size_t fragments = 0;
  std::size_t trailing = 0;       // how many bytes trail the payload of a message with trailing elements
  std::vector<std::string> came;  // the elements that trailed messages

 private:
  bool hand_on() {
    if (reader.now() == network::fragment_reader::state::trailing) {
      came.emplace_back(chunk_.begin(), chunk_.end());
      chunk_.swap(held_);
    }
    const auto outcome = judge.sort(chunk_);
    if (outcome == network::fragment_reader::outcome::wrong) return false;
    if (outcome == network::fragment_reader::outcome::kept && reader.now() == network::fragment_reader::state::fragment)
      ++fragments;
    if (outcome == network::fragment_reader::outcome::for_broker) take();
    if (head_ && network::message_head::read(head_->data()).payload > most_) return false;
    want_next();
    return true;
  }

  void take() {
    if (!head_) {
      head_ = std::string(chunk_.begin(), chunk_.end());
      if (network::message_head::read(chunk_.data()).payload > 0) return;
      chunk_.clear();
    }
    messages.push_back(*std::exchange(head_, std::nullopt) + std::string(chunk_.begin(), chunk_.end()));
  }

  void want_next() {
    collected_ = 0;
    if (reader.now() == network::fragment_reader::state::trailing) {
      chunk_.swap(held_);
      chunk_.resize(trailing);
    } else if (reader.has_wish())
      collected_ = reader.prepare(chunk_);
    else
      chunk_.resize(head_ ? network::message_head::read(head_->data()).payload : network::message_head::bytes);
  }

  const std::size_t most_;
  std::vector<char> chunk_;
  std::vector<char> held_;  // the payload that elements trail, while they come
  std::size_t collected_ = 0;
  std::optional<std::string> head_;
};

}  // namespace troupe::test
