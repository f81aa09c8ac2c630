// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda_sharing.hpp>

#include <cstring>
#include <type_traits>
#include <utility>

#include <c10/util/Exception.h>

#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/foreign_memory.hpp>

namespace troupe::devices {

namespace {

struct memory_text {
  std::uint64_t process;
  cuda::memory_handle of;
};
struct event_text {
  std::uint64_t process;
  unsigned char handle[cuda::handle_bytes];
};

template <class T>
std::string text_of(const T& what) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&what), sizeof what};
}

// Returns the handle in `text`, which has to be one of the process.
template <class T>
T handle_in(const std::string& text, std::uint64_t process) {
  T result;
  TORCH_CHECK(text.size() == sizeof result, "expected a handle of CUDA's memory or event, got ", text.size(), " bytes");
  std::memcpy(&result, text.data(), sizeof result);
  TORCH_CHECK(result.process == process, "a handle of process ", result.process, " came from process ", process);
  return result;
}

void expect_done(int result, const char* what, const cuda::functions& kernels) {
  TORCH_CHECK(result == 0, what, ": ", kernels.reason(result), " (CUDA error ", result, ")");
}

class cuda_event final : public shared_event {
 public:
  cuda_event(const cuda::functions& kernels, void* event, std::string handle)
      : kernels_(kernels), event_(event), handle_(std::move(handle)) {}
  ~cuda_event() override { kernels_.sharing.destroy_event(event_); }

  void record(const c10::Stream& stream) {
    expect_done(kernels_.sharing.record_event(stream.device_index(), event_, stream.native_handle()),
                "CUDA can't record an event", kernels_);
  }
  void block(const c10::Stream& stream) override {
    expect_done(kernels_.sharing.wait_for_event(stream.device_index(), event_, stream.native_handle()),
                "CUDA can't wait for an event", kernels_);
  }
  std::string handle() const override { return handle_; }

 private:
  const cuda::functions& kernels_;
  void* const event_;
  const std::string handle_;
};

}  // namespace

memory_sharing::place cuda_sharing::share(const at::Tensor& elements) {
  memory_text text{this_process(), {}};
  std::uint64_t offset = 0;
  expect_done(kernels_.sharing.share_memory(elements.const_data_ptr(), &text.of, &offset), "CUDA shares no such memory",
              kernels_);
  return {text_of(text), offset};
}

memory_sharing::opened_memory cuda_sharing::open(std::uint64_t process, const std::string& allocation) {
  const auto from = handle_in<memory_text>(allocation, process);
  int index = -1;
  expect_done(kernels_.sharing.find_gpu(from.of.gpu, &index), "CUDA can't look for a GPU", kernels_);
  TORCH_CHECK(index >= 0, "this process does not see the GPU of memory of process ", process);
  void* base = nullptr;
  std::uint64_t bytes = 0;
  expect_done(kernels_.sharing.open_memory(index, &from.of, &base, &bytes), "CUDA can't open memory of another process",
              kernels_);
  std::shared_ptr<void> elements(base,
                                 [index, kernels = &kernels_](void* opened) { kernels->sharing.close_memory(index, opened); });
  TORCH_CHECK(bytes == from.of.bytes, "an allocation of process ", process, " has ", bytes, " bytes, and its handle says ",
              from.of.bytes);
  return {std::move(elements), bytes, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index))};
}

std::shared_ptr<shared_event> cuda_sharing::record(const c10::Stream& stream) {
  event_text text{this_process(), {}};
  void* made = nullptr;
  expect_done(kernels_.sharing.make_event(stream.device_index(), &made, text.handle), "CUDA makes no event for other processes",
              kernels_);
  auto result = std::make_shared<cuda_event>(kernels_, made, text_of(text));
  result->record(stream);
  return result;
}

std::shared_ptr<shared_event> cuda_sharing::open_event(std::uint64_t process, const std::string& handle, c10::Device device) {
  const auto from = handle_in<event_text>(handle, process);
  void* opened = nullptr;
  expect_done(kernels_.sharing.open_event(device.index(), from.handle, &opened), "CUDA can't open an event of another process",
              kernels_);
  return std::make_shared<cuda_event>(kernels_, opened, handle);
}

memory_sharing* own_cuda_sharing() {
  static cuda_sharing* const own = []() -> cuda_sharing* {
    try {
      const auto* kernels = own_cuda_kernels();
      return kernels != nullptr ? new cuda_sharing(*kernels) : nullptr;
    } catch (const error&) {
      return nullptr;
    }
  }();
  return own;
}

}  // namespace troupe::devices
