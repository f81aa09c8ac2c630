// SPDX-License-Identifier: BSD-3-Clause
#include "support/simulated_memory.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include <c10/util/Exception.h>

namespace troupe::test::simulated {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t file_bytes = std::uint64_t{256} << 30;  // a hole takes no memory
constexpr std::uint64_t most_freed = std::uint64_t{256} << 20;
constexpr std::size_t most_blocks = 1 << 17;
constexpr std::size_t most_events = 1 << 12;
constexpr const char* file_name = "troupe simulated devices";

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

void* map(int file, std::uint64_t offset, std::uint64_t bytes) {
  auto* result = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, static_cast<off_t>(offset));
  TORCH_CHECK(result != MAP_FAILED, "the memory of a simulated device can't be mapped");
  return result;
}

}  // namespace

struct device_memory::table {
  struct block {
    std::atomic<std::uint64_t> number;  // 0: unused or closed
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  std::array<block, most_blocks> blocks;
  std::array<file_event, most_events> events;
};

device_memory& device_memory::all() {
  static auto* const only = new device_memory;  // streams may use it until the process ends
  return *only;
}

device_memory::device_memory() {
  file_ = ::memfd_create(file_name, MFD_CLOEXEC);
  TORCH_CHECK(file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(file_bytes)) == 0, "no memory for simulated devices");
  base_ = static_cast<char*>(map(file_, 0, file_bytes));
  ::madvise(base_, file_bytes, MADV_DONTDUMP);
  table_ = reinterpret_cast<table*>(base_);
  end_ = whole_pages(sizeof(table));
  for (std::uint32_t i = most_blocks; i-- > 0;) unused_blocks_.push_back(i);
  for (std::uint32_t i = most_events; i-- > 0;) unused_events_.push_back(i);
}

/// Returns the offset of an unused range; 0 if there is none.
std::uint64_t device_memory::take_range(std::uint64_t bytes) {
  if (auto& idle = idle_[bytes]; !idle.empty()) {
    const auto result = idle.back();
    idle.pop_back();
    return result;
  }
  if (bytes > file_bytes - end_) return 0;
  return std::exchange(end_, end_ + bytes);
}

void* device_memory::allocate(std::size_t bytes) {
  if (bytes < shared_bytes) return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  const std::lock_guard lock(mutex_);
  if (unused_blocks_.empty()) return nullptr;
  const auto offset = take_range(whole_pages(bytes));
  if (offset == 0) return nullptr;
  const auto entry = unused_blocks_.back();
  unused_blocks_.pop_back();
  auto& described = table_->blocks[entry];
  described.offset = offset;
  described.bytes = bytes;
  described.number = ++last_number_;
  blocks_.emplace(offset, entry);
  return base_ + offset;
}

void device_memory::close(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<std::uint64_t>(static_cast<char*>(block) - base_));
  if (found == blocks_.end()) return;
  table_->blocks[found->second].number = 0;
  unused_blocks_.push_back(found->second);
  blocks_.erase(found);
}

void device_memory::free(void* block, std::size_t bytes) {
  if (bytes < shared_bytes) {
    // Work that wrongly runs later may still touch the memory.
    static auto* kept = new std::vector<void*>;  // reachable, so that a leak checker does not report them
    const std::lock_guard lock(mutex_);
    kept->push_back(block);
    return;
  }
  const std::lock_guard lock(mutex_);
  freed_.push_back({static_cast<std::uint64_t>(static_cast<char*>(block) - base_), whole_pages(bytes)});
  freed_bytes_ += freed_.back().bytes;
  for (; freed_bytes_ > most_freed || (is_plain && !freed_.empty()); freed_.pop_front()) {
    const auto& first = freed_.front();
    if (!is_plain)
      ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first.offset),
                  static_cast<off_t>(first.bytes));
    idle_[first.bytes].push_back(first.offset);
    freed_bytes_ -= first.bytes;
  }
}

std::optional<std::pair<file_handle, std::uint64_t>> device_memory::find(const void* address) {
  const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(address) - base_);
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(offset);
  if (offset >= file_bytes || after == blocks_.begin()) return std::nullopt;
  const auto entry = (--after)->second;
  const auto& block = table_->blocks[entry];
  if (offset - block.offset >= block.bytes) return std::nullopt;
  return std::pair{file_handle{static_cast<std::uint64_t>(::getpid()), block.number, block.bytes, file_, entry, 0},
                   offset - block.offset};
}

std::pair<file_event*, file_handle> device_memory::add_event() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!unused_events_.empty(), "the simulated accelerator has no more events for other processes");
  const auto entry = unused_events_.back();
  unused_events_.pop_back();
  auto& event = table_->events[entry];
  event.asked = event.recorded = 0;
  event.number = ++last_number_;
  return {&event, {static_cast<std::uint64_t>(::getpid()), event.number, 0, file_, entry, 0}};
}

void device_memory::remove_event(file_event* which) {
  const std::lock_guard lock(mutex_);
  which->number = 0;
  unused_events_.push_back(static_cast<std::uint32_t>(which - table_->events.data()));
}

foreign_entry::mapping::mapping(int file, std::uint64_t offset, std::uint64_t bytes)
    : at_(map(file, offset, bytes)), bytes_(bytes) {}

foreign_entry::mapping::~mapping() {
  if (at_ != nullptr) ::munmap(at_, bytes_);
}

foreign_entry::foreign_entry(const file_handle& of) : of_(of) {
  const auto descriptor = "/proc/" + std::to_string(of.process) + "/fd/" + std::to_string(of.file);
  std::array<char, 64> name{};
  const bool is_memory = ::readlink(descriptor.c_str(), name.data(), name.size() - 1) > 0 &&
                         std::string(name.data()) == std::string("/memfd:") + file_name + " (deleted)";
  TORCH_CHECK(is_memory && of.entry < (of.bytes > 0 ? most_blocks : most_events), "process ", of.process,
              " shares nothing under this handle");
  const int file = ::open(descriptor.c_str(), O_RDWR | O_CLOEXEC);
  TORCH_CHECK(file >= 0, "the memory of the simulated devices of process ", of.process, " can't be opened");
  const std::unique_ptr<const int, void (*)(const int*)> closes(&file, [](const int* opened) { ::close(*opened); });
  table_ = mapping(file, 0, sizeof(device_memory::table));
  const auto& all = *static_cast<const device_memory::table*>(table_.at());
  if (of.bytes > 0) block_ = mapping(file, all.blocks[of.entry].offset, whole_pages(of.bytes));
  const bool is_there = of.bytes > 0 ? all.blocks[of.entry].number == of.number && all.blocks[of.entry].bytes == of.bytes
                                     : all.events[of.entry].number == of.number;
  TORCH_CHECK(is_there && of.number != 0, "process ", of.process, " has freed what the handle names");
  process_ = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(of.process), 0));
}

foreign_entry::~foreign_entry() {
  if (process_ >= 0) ::close(process_);
}

file_event& foreign_entry::event() const { return static_cast<device_memory::table*>(table_.at())->events[of_.entry]; }

bool foreign_entry::is_dead() const {
  pollfd end{process_, POLLIN, 0};
  return process_ < 0 || ::poll(&end, 1, 0) != 0;
}

}  // namespace troupe::test::simulated
