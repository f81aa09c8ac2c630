// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// Counts the bytes of answers that a node sends and that its callers have not taken yet. A caller has taken the bytes when it
/// has answered a question that was sent after them (see worker_desk). Not every answer is followed by a question: small
/// answers share one.
///   AU-1  a caller has room while less than `limit` bytes are under way to it. Calls of a caller without room do not start, so
///         beside `limit` bytes only the answers of calls that ran already are under way.
///   AU-2  a question follows as soon as `step()` bytes have left since the last one. So at most `step()` bytes, less than
///         `limit`, still count after the caller has taken them.
class answers_under_way {
 public:
  explicit answers_under_way(std::uint64_t limit = 1) : limit_(limit) {}

  bool has_room(node_id caller) const {
    const auto found = all_.find(caller);
    return found == all_.end() || found->second.bytes < limit_;
  }
  /// To be called when a call has its answer.
  void add(node_id caller, std::uint64_t bytes) { all_[caller].bytes += bytes; }
  /// To be called when the answer has left. If a question has to follow, returns how many bytes its answer stands for.
  std::optional<std::uint64_t> left(node_id caller, std::uint64_t bytes) {
    const auto found = all_.find(caller);
    if (found == all_.end()) return std::nullopt;
    auto& it = found->second;
    if ((it.not_asked += bytes) < step()) return std::nullopt;
    return std::exchange(it.not_asked, 0);
  }
  /// To be called when the caller has answered a question.
  void taken(node_id caller, std::uint64_t bytes) {
    const auto found = all_.find(caller);
    if (found == all_.end()) return;
    found->second.bytes -= std::min(bytes, found->second.bytes);
    if (found->second.bytes == 0) all_.erase(found);
  }
  /// To be called when the caller went down: its answers are dropped.
  void forget(node_id caller) { all_.erase(caller); }

  std::uint64_t bytes(node_id caller) const {
    const auto found = all_.find(caller);
    return found == all_.end() ? 0 : found->second.bytes;
  }
  std::uint64_t step() const { return std::max<std::uint64_t>(1, std::min(most_step, limit_ / 4)); }

 private:
  static constexpr std::uint64_t most_step = std::uint64_t{256} << 10;

  struct balance {
    std::uint64_t bytes = 0;
    std::uint64_t not_asked = 0;  // of these, bytes that have left and after which no question was sent
  };

  std::uint64_t limit_;
  std::unordered_map<node_id, balance> all_;
};

}  // namespace troupe::calls
