// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

namespace troupe::engine {

/// Each thread keeps one object for its next use. Short passes would otherwise spend most of their time in the allocator.
///   KO-1  an object that a thread keeps is deleted at the end of the thread at the latest. This holds for a thread that only
///         keeps objects and takes none, and for objects that other thread-local objects keep while they end.
/// The kept object is a plain pointer, because each use of a thread-local object with a destructor first checks whether the
/// object exists.
template <class Kept, class Delete = std::default_delete<Kept>>
class spare_of_thread {
 public:
  /// Returns the kept object, which the caller owns now; null if the thread keeps none.
  static Kept* take() noexcept { return std::exchange(kept_, nullptr); }

  /// Keeps `next`, and deletes the object that was kept before.
  static void keep(Kept* next) noexcept {
    static thread_local const at_threads_end owner;
    static_cast<void>(owner);
    if (!has_ended_) std::swap(kept_, next);
    if (next != nullptr) Delete()(next);
  }

 private:
  struct at_threads_end {
    ~at_threads_end() {
      has_ended_ = true;
      if (Kept* const last = take()) Delete()(last);
    }
  };

  static inline constinit thread_local Kept* kept_ = nullptr;
  static inline constinit thread_local bool has_ended_ = false;
};

}  // namespace troupe::engine
