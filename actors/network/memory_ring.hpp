// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::network {

/// What the two sides of a ring tell each other, in memory that both map. Each side trusts its own counter and checks the other's.
struct ring_control {
  static constexpr std::uint64_t not_begun = ~std::uint64_t{0};

  // The writer's:
  alignas(64) std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> skips_from{0};  // valid once `written` is beyond
  std::atomic<std::uint64_t> skips_to{0};
  std::atomic<std::uint64_t> begins_after{not_begun};  // so many bytes that the connection carried
  // The reader's:
  alignas(64) std::atomic<std::uint64_t> read{0};
  // Of both:
  alignas(64) std::atomic<std::uint32_t> reader_sleeps{1};
  std::atomic<std::uint32_t> writer_waits{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// A stream of bytes from one writer to one reader, which may be processes that do not trust each other's counters. An empty
/// ring is written from its begin again: a quiet one keeps to few pages, and few lines of a cache.
///   RI-1  what was written is read once, in its order.
///   RI-2  a counter of the other side that can't be is an error; nothing outside the ring is read or written.
///   RI-3  a side that said that it sleeps, and saw nothing to do after that, is to be woken by the other one, which is told so
///         once, by what it does next that matters. Who says so stores its flag and then loads the other's counter, the
///         other one stores that counter and then loads the flag, all four sequentially consistent: one sees what the other did.
///   RI-4  once the writer has begun, the reader knows after how many bytes of the connection that was.
class ring_writer {
 public:
  static constexpr std::size_t capacity = std::size_t{1} << 20;
  /// So much at once: the reader begins while the rest is written.
  static constexpr std::size_t most_at_once = std::size_t{64} << 10;
  /// Who waits for room does so for this much.
  static constexpr std::size_t enough_room = capacity / 4;

  ring_writer(ring_control& shared, char* bytes) : shared_(shared), bytes_(bytes) {}

  void begin(std::uint64_t after);
  bool begun() const { return begun_; }

  /// How much it took, 0 where the ring is full; nothing if the reader's counter can't be.
  std::optional<std::size_t> write(const char* from, std::size_t bytes);
  /// Whether the reader is to be woken, after a write.
  bool has_to_wake_reader();

  /// Says that the writer waits; false if there is no need to.
  bool may_sleep();

 private:
  static constexpr std::size_t rewinds_from = std::size_t{8} << 10;

  std::optional<std::size_t> room() const;

  ring_control& shared_;
  char* bytes_;
  std::uint64_t written_ = 0;
  std::uint64_t skipped_to_ = 0;
  bool begun_ = false;
};

/// The other side of it.
class ring_reader {
 public:
  ring_reader(ring_control& shared, const char* bytes) : shared_(shared), bytes_(bytes) {}

  /// Whether the writer has begun, after so many bytes of the connection.
  bool has_begun_after(std::uint64_t streamed) const;

  /// How much there was; nothing if the writer's counter can't be.
  std::optional<std::size_t> read(char* to, std::size_t bytes);
  bool is_empty() const { return shared_.written.load() == read_; }
  /// Whether there is something to read, or a sleep to end.
  bool has_news() const { return sleeps_ || !is_empty(); }
  /// Whether the writer is to be woken, after a read.
  bool has_to_wake_writer();

  /// Says that the reader sleeps; false if something is there.
  bool may_sleep();
  void wake();

 private:
  ring_control& shared_;
  const char* bytes_;
  std::uint64_t read_ = 0;
  bool sleeps_ = true;
};

}  // namespace troupe::network
