// SPDX-License-Identifier: BSD-3-Clause
#include "support/simulated_sharing.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <troupe/devices/present_sharing.hpp>
#include <troupe/messages/foreign_memory.hpp>

#include "support/simulated_memory.hpp"
#include "support/simulated_streams.hpp"

namespace troupe::test::simulated {

namespace {

std::atomic<c10::DeviceIndex> first_out_of_reach{most_devices};
std::atomic<std::size_t> times_opened{0};
std::atomic<std::size_t> now_opened{0};
std::atomic<const watched_sharing*> watcher{nullptr};

std::string text_of(const file_handle& of) { return {reinterpret_cast<const char*>(&of), sizeof of}; }

// Returns the handle in the text, if it is of the process.
file_handle handle_in(const std::string& text, std::uint64_t process) {
  file_handle result{};
  TORCH_CHECK(text.size() == sizeof result, "no handle of a simulated device");
  std::memcpy(&result, text.data(), sizeof result);
  TORCH_CHECK(result.process == process, "a handle of process ", result.process, " came from process ", process);
  return result;
}

/// An event of this process.
class own_event final : public devices::shared_event {
 public:
  explicit own_event(const c10::Stream& on) : entry_(std::make_shared<entry>()) {
    handle_ = entry_->of;
    handle_.device = on.device_index();
    const auto current = c10::impl::VirtualGuardImpl(at::kPrivateUse1).getDevice();
    TORCH_CHECK(current == on.device(), "an event of ", on.device(), " is recorded while the current device is ", current);
    entry_->in_file->asked = 1;
    stream_set::all().push(on, [entry = entry_] { stream_set::all().change([&] { entry->in_file->recorded = 1; }); });
  }
  void block(const c10::Stream& stream) override {
    stream_set::all().hold(stream, [entry = entry_] { return entry->in_file->recorded == 1; });
  }
  std::string handle() const override { return text_of(handle_); }

 private:
  // The stream uses the entry until it has recorded the event.
  struct entry {
    entry() { std::tie(in_file, of) = device_memory::all().add_event(); }
    ~entry() { device_memory::all().remove_event(in_file); }
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;
    file_event* in_file = nullptr;
    file_handle of{};
  };

  std::shared_ptr<entry> entry_;
  file_handle handle_{};
};

/// An event of another process.
class foreign_event final : public devices::shared_event {
 public:
  explicit foreign_event(const file_handle& of) : of_(of), entry_(std::make_shared<foreign_entry>(of)) {}
  void block(const c10::Stream& stream) override {
    stream_set::all().hold(
      stream,
      [entry = entry_, number = of_.number] {
        const auto& event = entry->event();
        return event.recorded > 0 || event.number != number || entry->is_dead();
      },
      true);
  }
  std::string handle() const override { return text_of(of_); }

 private:
  file_handle of_;
  std::shared_ptr<foreign_entry> entry_;
};

class file_sharing final : public devices::memory_sharing {
 public:
  place share(const at::Tensor& elements) override {
    auto found = device_memory::all().find(elements.const_data_ptr());
    TORCH_CHECK(found && elements.device().type() == at::kPrivateUse1, "the simulated accelerator shares no such memory");
    found->first.device = elements.device().index();
    return {text_of(found->first), found->second};
  }

  opened_memory open(std::uint64_t process, const std::string& allocation) override {
    const auto of = handle_in(allocation, process);
    TORCH_CHECK(of.bytes > 0 && of.device >= 0 && of.device < std::min(device_count(), first_out_of_reach.load()),
                "simulated:", of.device, " of process ", process, " can't be reached");
    if (const auto* watched = watcher.load()) watched->before_open();
    auto entry = std::make_shared<foreign_entry>(of);
    ++times_opened;
    ++now_opened;
    std::shared_ptr<void> elements(entry->block(), [entry](void*) { --now_opened; });
    return {std::move(elements), of.bytes, device(static_cast<c10::DeviceIndex>(of.device))};
  }

  std::shared_ptr<devices::shared_event> record(const c10::Stream& stream) override {
    if (const auto* watched = watcher.load()) watched->before_record();
    return std::make_shared<own_event>(stream);
  }

  std::shared_ptr<devices::shared_event> open_event(std::uint64_t process, const std::string& handle, c10::Device) override {
    const auto of = handle_in(handle, process);
    TORCH_CHECK(of.bytes == 0, "a handle of memory is no event");
    return std::make_shared<foreign_event>(of);
  }
};

}  // namespace

devices::memory_sharing& sharing() {
  static auto* const only = new file_sharing;
  return *only;
}

void install_shared(c10::DeviceIndex devices) {
  install(devices);
  devices::set_sharing(at::kPrivateUse1, &sharing());
}

watched_sharing::watched_sharing(std::function<void()> on_open, std::function<void()> on_record)
    : before_open(std::move(on_open)), before_record(std::move(on_record)) {
  watcher = this;
}
watched_sharing::~watched_sharing() { watcher = nullptr; }

out_of_reach::out_of_reach(c10::DeviceIndex begin) { first_out_of_reach = begin; }
out_of_reach::~out_of_reach() { first_out_of_reach = most_devices; }

std::size_t openings() { return times_opened; }
std::size_t opened() { return now_opened; }

}  // namespace troupe::test::simulated
