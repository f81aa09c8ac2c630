// SPDX-License-Identifier: BSD-3-Clause
#include "support/simulated_accelerator.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <troupe/engine/torch_version.hpp>

#include "support/simulated_memory.hpp"
#include "support/simulated_streams.hpp"

namespace troupe::test::simulated {

namespace {

thread_local c10::DeviceIndex current_device = 0;
std::atomic<c10::DeviceIndex> installed{2};
std::atomic<c10::DeviceIndex> first_unused{most_devices};
std::atomic<int> times_set{0};
std::atomic<bool> refuses_events{false};
std::atomic<c10::StreamId> captured_stream{-1};
thread_local std::array<c10::StreamId, most_devices> current_streams{};

c10::Stream current_stream(c10::DeviceIndex index) {
  return c10::Stream(c10::Stream::UNSAFE, device(index), current_streams.at(static_cast<std::size_t>(index)));
}

c10::DeviceIndex index_of(c10::Device which) { return which.has_index() ? which.index() : current_device; }

/// Holds up the threads that ask for events while the driver is stuck.
struct questions {
  static questions& all() {
    static auto* const only = new questions;  // threads may wait in it until the process ends
    return *only;
  }
  void pass() {
    std::unique_lock lock(mutex);
    if (!is_stuck) return;
    is_asked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return !is_stuck; });
  }
  void set(bool stuck) {
    const std::lock_guard lock(mutex);
    is_stuck = stuck;
    is_asked = false;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_asked; });
  }

  std::mutex mutex;  // guards is_stuck and is_asked
  std::condition_variable changed;
  bool is_stuck = false;
  bool is_asked = false;
};

// Sets every bit, which is a NaN in each floating point type.
void poison(void* memory, std::size_t bytes) {
  if (!device_memory::is_plain) std::memset(memory, 0xff, bytes);
}

struct block {
  void* memory;
  std::size_t bytes;
  c10::Stream allocated_on;
  std::vector<c10::Stream> used_on;
};

// Negative: something was refused.
std::atomic<int> tensors_left{std::numeric_limits<int>::max()};
std::atomic<std::size_t> bytes_in_use{0};

// A caching allocator would give this memory away when every stream that used it has come to this point.
void free_block(void* context) {
  const std::unique_ptr<block> freed(static_cast<block*>(context));
  if (freed->bytes == 0) return;
  bytes_in_use -= freed->bytes;
  device_memory::all().close(freed->memory);
  auto& streams = stream_set::all();
  freed->used_on.push_back(freed->allocated_on);
  const auto left = std::make_shared<std::size_t>(freed->used_on.size());
  for (const auto& stream : freed->used_on) {
    streams.push(stream, [left, memory = freed->memory, bytes = freed->bytes] {
      stream_set::all().change([&] {
        if (--*left > 0) return;
        poison(memory, bytes);
        device_memory::all().free(memory, bytes);
      });
    });
  }
}

struct device_allocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const bool is_there = bytes == 0 || tensors_left-- > 0;
    auto* memory = bytes == 0 || !is_there ? nullptr : device_memory::all().allocate(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, memory != nullptr || bytes == 0, "simulated:", static_cast<int>(current_device),
                     " has no memory of ", bytes, " bytes");
    if (memory != nullptr) poison(memory, bytes);
    bytes_in_use += bytes;
    auto* context = new block{memory, bytes, current_stream(current_device), {}};
    return {memory, context, free_block, device(current_device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    synchronize();
    std::memcpy(to, from, bytes);
  }
};

/// Page-locked memory: the sizes of its blocks, by address.
struct pinned_memory {
  static pinned_memory& all() {
    static auto* memory = new pinned_memory;
    return *memory;
  }
  std::mutex mutex;
  std::map<const char*, std::size_t> blocks;
  std::atomic<bool> is_refused{false};
  std::function<void()> before_free;  // runs without the lock
};

void free_pinned(void* context) {
  auto& pinned = pinned_memory::all();
  std::unique_lock lock(pinned.mutex);
  const auto before_free = pinned.before_free;
  lock.unlock();
  if (before_free) before_free();
  lock.lock();
  const auto found = pinned.blocks.find(static_cast<char*>(context));
  poison(context, found->second);
  pinned.blocks.erase(found);
  std::free(context);
}

struct pinned_allocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto& pinned = pinned_memory::all();
    TORCH_CHECK(!pinned.is_refused, "the simulated accelerator has no more pinned memory");
    auto* memory = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
    poison(memory, bytes);
    const std::lock_guard lock(pinned.mutex);
    pinned.blocks.emplace(static_cast<char*>(memory), bytes);
    return {memory, memory, free_pinned, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return free_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

void check_device_of(const event_ptr& which) {
  TORCH_CHECK(!stream_set::all().broken(which), "the simulated device is broken");
}

struct guard_impl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return at::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device to) const override { return device(std::exchange(current_device, to.index())); }
  c10::Device getDevice() const override { return device(current_device); }
  void setDevice(c10::Device to) const override { uncheckedSetDevice(to); }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    ++times_set;
    current_device = to.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  c10::Stream getStream(c10::Device of) const override { return current_stream(index_of(of)); }
  c10::Stream getDefaultStream(c10::Device of) const override {
    return c10::Stream(c10::Stream::DEFAULT, device(index_of(of)));
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(stream.id()) * most_devices +
                                   static_cast<std::uintptr_t>(stream.device_index()) + 1);
  }
  c10::Stream getNewStream(c10::Device of, int) const override { return new_stream(index_of(of)); }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool) const override { return new_stream(index_of(of)); }
  c10::Stream exchangeStream(c10::Stream to) const override {
    const auto index = static_cast<std::size_t>(to.device_index());
    return c10::Stream(c10::Stream::UNSAFE, to.device(), std::exchange(current_streams.at(index), to.id()));
  }
  bool queryStream(const c10::Stream& stream) const override { return stream_set::all().idle(stream); }
#if TROUPE_TORCH_HAS_CAPTURE_CHECKS
  bool isStreamCapturing(const c10::Stream& stream) const override { return stream.id() == captured_stream; }
#endif
  void synchronizeStream(const c10::Stream& stream) const override { stream_set::all().synchronize(stream); }
  void synchronizeDevice(c10::DeviceIndex) const override { simulated::synchronize(); }

  void record(void** which, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    TORCH_CHECK(!refuses_events, "the simulated device records no event");
    if (*which == nullptr) *which = new event_ptr(std::make_shared<event>());
    stream_set::all().record(*static_cast<event_ptr*>(*which), stream);
  }
  void block(void* which, const c10::Stream& stream) const override {
    stream_set::all().wait(*static_cast<event_ptr*>(which), stream);
  }
  bool queryEvent(void* which) const override {
    questions::all().pass();
    check_device_of(*static_cast<event_ptr*>(which));
    return stream_set::all().done(*static_cast<event_ptr*>(which));
  }
  void synchronizeEvent(void* which) const override {
    check_device_of(*static_cast<event_ptr*>(which));
    stream_set::all().synchronize(*static_cast<event_ptr*>(which));
  }
  void destroyEvent(void* which, c10::DeviceIndex) const noexcept override { delete static_cast<event_ptr*>(which); }

  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    if (memory.get_deleter() == free_block) static_cast<simulated::block*>(memory.get_context())->used_on.push_back(stream);
  }
};

struct hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex which) const override { return which < first_unused; }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device; }
  void setCurrentDevice(c10::DeviceIndex to) const override { current_device = to; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex to) const override { return std::exchange(current_device, to); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex to) const override { return exchangeDevice(to); }
  at::Device getDeviceFromPtr(void*) const override { return device(current_device); }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static auto* allocator = new pinned_allocator;
    return allocator;
  }
  bool isPinnedPtr(const void* memory) const override {
    auto& pinned = pinned_memory::all();
    const std::lock_guard lock(pinned.mutex);
    const auto* address = static_cast<const char*>(memory);
    auto after = pinned.blocks.upper_bound(address);
    return after != pinned.blocks.begin() && address < (--after)->first + after->second;
  }
};

}  // namespace

broken_device::broken_device(std::optional<c10::DeviceIndex> which) {
  for (c10::DeviceIndex index = 0; index < device_count(); ++index)
    stream_set::all().set_broken(index, which.value_or(index) == index);
}
broken_device::~broken_device() {
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) stream_set::all().set_broken(index, false);
}

no_events::no_events() { refuses_events = true; }
no_events::~no_events() { refuses_events = false; }

unused_devices::unused_devices(c10::DeviceIndex begin) {
  times_set = 0;
  first_unused = begin;
}
unused_devices::~unused_devices() { first_unused = most_devices; }
int unused_devices::uses() { return times_set; }

scarce_memory::scarce_memory(int tensors) { tensors_left = tensors; }
scarce_memory::~scarce_memory() { tensors_left = std::numeric_limits<int>::max(); }
bool scarce_memory::refused() { return tensors_left < 0; }

std::size_t used_bytes() { return bytes_in_use; }

no_pinned_memory::no_pinned_memory() { pinned_memory::all().is_refused = true; }
no_pinned_memory::~no_pinned_memory() { pinned_memory::all().is_refused = false; }

captured::captured(c10::Stream stream) { captured_stream = stream.id(); }
captured::~captured() { captured_stream = -1; }

stuck_driver::stuck_driver() { questions::all().set(true); }

stuck_driver::~stuck_driver() { questions::all().set(false); }

void stuck_driver::wait_for_question() { questions::all().wait(); }

before_pinned_memory_is_freed::before_pinned_memory_is_freed(std::function<void()> what) {
  auto& pinned = pinned_memory::all();
  const std::lock_guard lock(pinned.mutex);
  pinned.before_free = std::move(what);
}

before_pinned_memory_is_freed::~before_pinned_memory_is_freed() {
  auto& pinned = pinned_memory::all();
  const std::lock_guard lock(pinned.mutex);
  pinned.before_free = nullptr;
}

c10::Device device(c10::DeviceIndex index) { return {at::kPrivateUse1, index}; }

std::size_t pinned_bytes() {
  auto& pinned = pinned_memory::all();
  const std::lock_guard lock(pinned.mutex);
  std::size_t bytes = 0;
  for (const auto& [address, size] : pinned.blocks) bytes += size;
  return bytes;
}

c10::Stream stream_of_handle(void* handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle) - 1;
  return c10::Stream(c10::Stream::UNSAFE, device(static_cast<c10::DeviceIndex>(number % most_devices)),
                     static_cast<c10::StreamId>(number / most_devices));
}

void use_plain_memory() { device_memory::is_plain = true; }

c10::DeviceIndex device_count() { return installed; }

void install(c10::DeviceIndex devices) {
  static const bool once = [devices] {
    TORCH_CHECK(devices > 0 && devices <= most_devices, "expected 1 to ", static_cast<int>(most_devices),
                " simulated devices, got ", static_cast<int>(devices));
    installed = devices;
    c10::register_privateuse1_backend("simulated");
    static const c10::impl::DeviceGuardImplRegistrar guard(at::kPrivateUse1, new guard_impl);
    c10::SetAllocator(at::kPrivateUse1, new device_allocator);
    at::RegisterPrivateUse1HooksInterface(new hooks);
    return true;
  }();
  TORCH_CHECK(once && devices == device_count(), "this program has ", static_cast<int>(device_count()),
              " simulated devices, not ", static_cast<int>(devices));
}

}  // namespace troupe::test::simulated
