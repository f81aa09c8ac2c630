// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/unlocked.cpp
#pragma once

#include <mutex>

// clang checks who holds which mutex (-Wthread-safety). For other compilers the macros are empty. They are macros, because an
// attribute in [[]] cannot name a member that is declared further down.
#ifdef __clang__
#define TROUPE_LOCKING(attribute) __attribute__((attribute))
#else
#define TROUPE_LOCKING(attribute)
#endif
/// After the name of a member: only a thread that holds the mutex may use the member.
#define TROUPE_GUARDED_BY(mutex) TROUPE_LOCKING(guarded_by(mutex))
/// After the parameters of a function: the caller holds the mutex before and after the call.
#define TROUPE_REQUIRES(mutex) TROUPE_LOCKING(requires_capability(mutex))

namespace troupe {

/// As std::mutex, for members with TROUPE_GUARDED_BY. A mutex that guards no member, or whose lock moves, is a std::mutex.
class TROUPE_LOCKING(capability("mutex")) checked_mutex : public std::mutex {
 public:
  void lock() TROUPE_LOCKING(acquire_capability()) { std::mutex::lock(); }
  void unlock() TROUPE_LOCKING(release_capability()) { std::mutex::unlock(); }
};

/// As std::lock_guard.
class TROUPE_LOCKING(scoped_lockable) checked_lock {
 public:
  explicit checked_lock(checked_mutex& held) TROUPE_LOCKING(acquire_capability(held)) : guard_(held) {}
  ~checked_lock() TROUPE_LOCKING(release_capability()) {}

 private:
  const std::lock_guard<std::mutex> guard_;
};

/// As std::unique_lock; std::condition_variable takes it.
class TROUPE_LOCKING(scoped_lockable) checked_unique_lock : public std::unique_lock<std::mutex> {
 public:
  explicit checked_unique_lock(checked_mutex& held) TROUPE_LOCKING(acquire_capability(held))
      : std::unique_lock<std::mutex>(held) {}
  ~checked_unique_lock() TROUPE_LOCKING(release_capability()) {}
  void lock() TROUPE_LOCKING(acquire_capability()) { std::unique_lock<std::mutex>::lock(); }
  void unlock() TROUPE_LOCKING(release_capability()) { std::unique_lock<std::mutex>::unlock(); }
};

}  // namespace troupe
