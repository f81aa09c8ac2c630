// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// Counts, for each caller, the bytes of answers that this node has sent and that the caller has not taken yet. After an answer
/// this node may send the caller a question (see worker_desk). When the caller answers the question, it has taken all answers
/// that left before the question. One question may follow several small answers.
///   AU-1  a caller has credit while less than `limit` bytes are under way to it. Calls of a caller without credit do not
///         start. So only the answers of calls that ran already can exceed `limit`.
///   AU-2  a question follows as soon as `step()` bytes have left since the last question. So fewer than `step()` bytes still
///         count although the caller has taken them. `step()` is at most `limit`.
class answers_under_way {
 public:
  explicit answers_under_way(std::uint64_t limit = 1) : limit_(limit) {}

  bool has_credit(node_id caller) const {
    const auto found = all_.find(caller);
    return found == all_.end() || found->second.bytes < limit_;
  }
  /// To be called when a call has its answer.
  void add(node_id caller, std::uint64_t bytes) { all_[caller].bytes += bytes; }
  /// To be called when the answer has left. If a question has to follow, returns how many bytes the answer to the question
  /// confirms.
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
  /// To be called when the caller went down. The answers to the caller count no longer.
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
    std::uint64_t not_asked = 0;  // the part of `bytes` that has left since the last question
  };

  std::uint64_t limit_;
  std::unordered_map<node_id, balance> all_;
};

}  // namespace troupe::calls
