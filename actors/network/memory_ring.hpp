// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::network {

/// The counters and flags of a ring, in memory that both sides map. Each side trusts its own counter and checks the counter of
/// the other side.
struct ring_control {
  static constexpr std::uint64_t not_begun = ~std::uint64_t{0};

  // Written by the writer:
  alignas(64) std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> skips_from{0};  // where the reader jumps to skips_to; valid once `written` is larger
  std::atomic<std::uint64_t> skips_to{0};
  std::atomic<std::uint64_t> begins_after{not_begun};  // bytes that the connection carried before the ring's first byte
  // Written by the reader:
  alignas(64) std::atomic<std::uint64_t> read{0};
  // Written by both:
  alignas(64) std::atomic<std::uint32_t> reader_sleeps{1};
  std::atomic<std::uint32_t> writer_waits{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// Carries bytes from one writer to one reader, which may be processes that do not trust each other's counters. If the ring
/// is empty, the writer may go back to the ring's beginning. So a ring with little traffic uses few pages and few cache lines.
/// A side that goes to sleep stores its sleep flag, then loads the counter of the other side. The other side stores this
/// counter, then loads the flag. All four operations are sequentially consistent, so at least one side sees what the other side
/// has stored (RI-3).
///   RI-1  every byte that was written is read once, in order.
///   RI-2  an impossible counter of the other side is an error; nothing outside the ring is read or written.
///   RI-3  a side may sleep once it has set its sleep flag and then found nothing to do. After the next read or write of the
///         other side, has_to_wake_reader() or has_to_wake_writer() tells the other side once to wake the sleeping side.
///   RI-4  once the writer has begun, the reader can read how many bytes the connection carried before the ring's first byte.
class ring_writer {
 public:
  static constexpr std::size_t capacity = std::size_t{1} << 20;
  /// The most bytes that one write copies, so that the reader can start while the rest is copied.
  static constexpr std::size_t most_at_once = std::size_t{64} << 10;
  /// A writer that waits for space is woken when this much is free.
  static constexpr std::size_t enough_space = capacity / 4;

  ring_writer(ring_control& shared, char* bytes) : shared_(shared), bytes_(bytes) {}

  /// Begins the ring, and tells the reader that the connection carries `after` bytes before the ring's first byte.
  void begin(std::uint64_t after);
  bool begun() const { return begun_; }

  /// Returns how many bytes the ring took, 0 if it is full; empty if the reader's counter is impossible.
  std::optional<std::size_t> write(const char* from, std::size_t bytes);
  /// After a write: whether the writer has to wake the reader.
  bool has_to_wake_reader();

  /// Sets the writer's sleep flag. Returns whether the writer may sleep; false if there is enough space now.
  bool may_sleep();

 private:
  static constexpr std::size_t rewinds_from = std::size_t{8} << 10;

  std::optional<std::size_t> free_space() const;

  ring_control& shared_;
  char* bytes_;
  std::uint64_t written_ = 0;
  std::uint64_t skipped_to_ = 0;
  bool begun_ = false;
};

class ring_reader {
 public:
  ring_reader(ring_control& shared, const char* bytes) : shared_(shared), bytes_(bytes) {}

  /// Whether the writer has begun the ring after exactly `bytes` bytes of the connection.
  bool has_begun_after(std::uint64_t bytes) const;
  /// Begins the reading if has_begun_after(). Returns whether the reading has begun, by this call or earlier.
  bool begin_after(std::uint64_t bytes) { return begun_ || (begun_ = has_begun_after(bytes)); }
  bool begun() const { return begun_; }

  /// Returns how many bytes were read; empty if the writer's counter is impossible.
  std::optional<std::size_t> read(char* to, std::size_t bytes);
  bool is_empty() const { return shared_.written.load() == read_; }
  /// Whether there are bytes to read, or the reader's sleep flag is set.
  bool has_news() const { return sleeps_ || !is_empty(); }
  /// After a read: whether the reader has to wake the writer.
  bool has_to_wake_writer();

  /// Sets the reader's sleep flag. Returns whether the reader may sleep; false if there are bytes to read.
  bool may_sleep();
  void wake();

 private:
  ring_control& shared_;
  const char* bytes_;
  std::uint64_t read_ = 0;
  bool begun_ = false;
  bool sleeps_ = true;
};

}  // namespace troupe::network
