// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

/// The memory of the simulated devices. The memory of a process is one file without a name (memfd), which other processes of the
/// user can map. The file begins with a table of its allocations and events.
namespace troupe::test::simulated {

/// Blocks of at least this many bytes are in the file. Smaller ones are ordinary memory, whose ends a sanitizer watches.
inline constexpr std::size_t shared_bytes = 4096;

/// An event in the file. Each record() asks for a new version, as in simulated_streams.hpp.
struct file_event {
  std::atomic<std::uint64_t> number;  // 0: unused. Each use of the entry has a number of its own
  std::atomic<std::uint64_t> asked;
  std::atomic<std::uint64_t> recorded;
};

/// What another process has to know of an allocation or of an event.
struct file_handle {
  std::uint64_t process;
  std::uint64_t number;  // of the allocation or event; no number is used twice
  std::uint64_t bytes;   // 0: an event
  std::int32_t file;     // descriptor in that process
  std::uint32_t entry;   // in the table
  std::int64_t device;
};

/// The memory of this process.
class device_memory {
 public:
  static device_memory& all();
  static inline std::atomic<bool> is_plain{false};  // see use_plain_memory()

  /// Returns a block. Null if there is no memory.
  void* allocate(std::size_t bytes);
  /// From now on nobody can open the block. Its elements stay as they are.
  void close(void* block);
  /// The block is used no more. Its elements stay as they are until other freed blocks have 256 MiB.
  void free(void* block, std::size_t bytes);

  /// The handle of the block that holds the address, and the address's offset in the block. Nothing if other processes can open
  /// no such block.
  std::optional<std::pair<file_handle, std::uint64_t>> find(const void* address);

  /// Returns an unused event, and its handle.
  std::pair<file_event*, file_handle> add_event();
  void remove_event(file_event* which);

 private:
  struct table;
  struct range {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  friend class foreign_entry;

  device_memory();
  std::uint64_t take_range(std::uint64_t bytes);

  std::mutex mutex_;
  int file_ = -1;
  char* base_ = nullptr;
  table* table_ = nullptr;
  std::uint64_t end_ = 0;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::uint32_t> blocks_;  // entries by offset
  std::vector<std::uint32_t> unused_blocks_;
  std::vector<std::uint32_t> unused_events_;
  std::deque<range> freed_;  // the first to be freed is at the front
  std::uint64_t freed_bytes_ = 0;
  std::map<std::uint64_t, std::vector<std::uint64_t>> idle_;  // offsets by size
};

/// A block or an event in the file of another process, mapped as long as the object lives.
class foreign_entry {
 public:
  /// Throws c10::Error if the handle names nothing that is there.
  explicit foreign_entry(const file_handle& of);
  ~foreign_entry();
  foreign_entry(const foreign_entry&) = delete;
  foreign_entry& operator=(const foreign_entry&) = delete;

  void* block() const { return block_.at(); }
  file_event& event() const;
  /// Whether the process has ended.
  bool is_dead() const;

 private:
  class mapping {
   public:
    mapping() = default;
    mapping(int file, std::uint64_t offset, std::uint64_t bytes);
    ~mapping();
    mapping(mapping&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
    mapping& operator=(mapping&& other) noexcept {
      std::swap(at_, other.at_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    void* at() const { return at_; }

   private:
    void* at_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  file_handle of_;
  int process_ = -1;  // descriptor
  mapping table_;
  mapping block_;
};

}  // namespace troupe::test::simulated
