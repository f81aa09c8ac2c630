// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/messages/ids.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe {

/// Identifies a gradient, in the same way in each step of a training. It is made of the node that gets the gradient, the key of
/// the call that had the tensor (see `call_key_of`), and the tensor's index in the message.
struct residual_key {
  node_id peer;
  std::uint64_t call_key = 0;
  std::uint64_t index = 0;
  auto operator<=>(const residual_key&) const = default;
};

}  // namespace troupe

template <>
struct std::hash<troupe::residual_key> {
  std::size_t operator()(const troupe::residual_key& key) const noexcept {
    return troupe::hash_words(troupe::hash_words(key.peer.value, key.call_key), key.index);
  }
};

namespace troupe {

/// Stores residuals: the rounding errors of gradients that were sent as int8. A residual is added to the next gradient with the
/// same key (error feedback). So the sum of all gradients that were sent misses only the last residual. Any thread may use the
/// book.
///   ER-1  take() hands a residual to one thread alone. If a second thread gives a residual back for the same key, the two are
///         added: nothing is lost.
///   ER-2  a residual counts only for a gradient of the same sizes and strides on the same device; for another gradient take()
///         finds nothing.
///   ER-3  the book holds at most `limit` bytes. The residuals that were used longest ago are dropped first, and a residual
///         that is larger than the limit is not stored. The first time, the process gets a warning.
class residual_book {
 public:
  explicit residual_book(std::uint64_t limit) : limit_(limit) {}

  /// Removes and returns the residual for a gradient; undefined if there is none.
  at::Tensor take(const residual_key& key, const at::Tensor& gradient);
  void give(const residual_key& key, const at::Tensor& gradient, at::Tensor residual);
  /// Drops all residuals for a peer that is gone.
  void forget(node_id peer);
  std::uint64_t bytes() const;

 private:
  struct entry {
    residual_key key;
    std::vector<std::int64_t> shape;  // sizes, then strides
    at::Tensor residual;
  };
  using entries = std::list<entry>;

  void erase(entries::iterator which) TROUPE_REQUIRES(mutex_);

  const std::uint64_t limit_;
  mutable checked_mutex mutex_;
  entries all_ TROUPE_GUARDED_BY(mutex_);  // the newest is at the back
  std::unordered_map<residual_key, entries::iterator> found_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t bytes_ TROUPE_GUARDED_BY(mutex_) = 0;
};

/// Returns the key of a call for the gradients of its arguments (or of its results). The key is the same in each step of a
/// training. The key follows from the name of the function or method, the number of its object, and the order of the calls
/// that led to this call. The key does not depend on how many functions the threads of the calls have recorded, because that
/// count grows from step to step. Never 0.
std::uint64_t call_key_of(const std::string& label, std::uint64_t object, const program_place& place, bool is_of_results);

}  // namespace troupe
