// SPDX-License-Identifier: BSD-3-Clause
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

#include <troupe/devices/cuda/sharing.hpp>

namespace troupe::devices::cuda {

namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == handle_bytes && sizeof(cudaIpcEventHandle_t) == handle_bytes);
static_assert(sizeof(cudaUUID_t) == sizeof(memory_handle::gpu));

// After an error, clears CUDA's last error, because libtorch would report it as an error of its own.
int cleared(cudaError_t result) {
  if (result != cudaSuccess) static_cast<void>(cudaGetLastError());
  return result;
}

// Makes a device the current one as long as the object lives.
class on_device {
 public:
  explicit on_device(int index) {
    result_ = cudaGetDevice(&before_);
    if (result_ != cudaSuccess || before_ == index) return;
    result_ = cudaSetDevice(index);
    is_changed_ = result_ == cudaSuccess;
  }
  // Setting a device makes a context on it. So the device is set back only if it was another one.
  ~on_device() {
    if (is_changed_) static_cast<void>(cudaSetDevice(before_));
  }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  // The result of `what`, or why the device is not the current one.
  template <class F>
  int run(F what) const {
    return cleared(result_ == cudaSuccess ? what() : result_);
  }

 private:
  int before_ = 0;
  bool is_changed_ = false;
  cudaError_t result_;
};

// cuMemGetAddressRange of CUDA's driver. Its types are written here, so that the build needs no cuda.h.
using find_range = int (*)(unsigned long long* base, std::size_t* bytes, unsigned long long address);

cudaError_t range_of(const void* address, unsigned long long* base, std::size_t* bytes) {
  constexpr unsigned since = 3020;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how{};
  const auto result = cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, since, cudaEnableDefault, &how);
  if (result != cudaSuccess) return result;
  if (found == nullptr || how != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
  const auto failed = reinterpret_cast<find_range>(found)(base, bytes, reinterpret_cast<unsigned long long>(address));
  return failed == 0 ? cudaSuccess : cudaErrorInvalidDevicePointer;
}

int share_memory(const void* address, memory_handle* to, std::uint64_t* offset) {
  cudaPointerAttributes about{};
  auto result = cudaPointerGetAttributes(&about, address);
  if (result == cudaSuccess && about.type != cudaMemoryTypeDevice) result = cudaErrorInvalidDevicePointer;
  if (result != cudaSuccess) return cleared(result);
  return on_device(about.device).run([&] {
    cudaDeviceProp properties{};
    unsigned long long base = 0;
    std::size_t bytes = 0;
    cudaIpcMemHandle_t handle{};
    auto failed = cudaGetDeviceProperties(&properties, about.device);
    if (failed == cudaSuccess) failed = range_of(address, &base, &bytes);
    if (failed == cudaSuccess) failed = cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(base));
    std::memcpy(to->gpu, &properties.uuid, sizeof to->gpu);
    std::memcpy(to->handle, &handle, sizeof handle);
    to->bytes = bytes;
    *offset = reinterpret_cast<unsigned long long>(address) - base;
    return failed;
  });
}

int find_gpu(const unsigned char* gpu, int* index) {
  int count = 0;
  *index = -1;
  auto result = cudaGetDeviceCount(&count);
  for (int i = 0; i < count && *index < 0 && result == cudaSuccess; ++i) {
    cudaDeviceProp properties{};
    result = cudaGetDeviceProperties(&properties, i);
    if (std::memcmp(gpu, &properties.uuid, sizeof properties.uuid) == 0) *index = i;
  }
  return cleared(result);
}

int open_memory(int index, const memory_handle* of, void** base, std::uint64_t* bytes) {
  return on_device(index).run([&] {
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, of->handle, sizeof handle);
    auto result = cudaIpcOpenMemHandle(base, handle, cudaIpcMemLazyEnablePeerAccess);
    if (result != cudaSuccess) return result;
    unsigned long long begin = 0;
    std::size_t found = 0;
    result = range_of(*base, &begin, &found);
    *bytes = found - (reinterpret_cast<unsigned long long>(*base) - begin);
    if (result != cudaSuccess) static_cast<void>(cudaIpcCloseMemHandle(*base));
    return result;
  });
}

int close_memory(int index, void* base) {
  return on_device(index).run([&] { return cudaIpcCloseMemHandle(base); });
}

int make_event(int index, void** event, unsigned char* handle) {
  return on_device(index).run([&] {
    cudaEvent_t made = nullptr;
    auto result = cudaEventCreateWithFlags(&made, cudaEventDisableTiming | cudaEventInterprocess);
    if (result != cudaSuccess) return result;
    cudaIpcEventHandle_t of{};
    result = cudaIpcGetEventHandle(&of, made);
    std::memcpy(handle, &of, sizeof of);
    *event = made;
    if (result != cudaSuccess) static_cast<void>(cudaEventDestroy(made));
    return result;
  });
}

int open_event(int index, const unsigned char* handle, void** event) {
  return on_device(index).run([&] {
    cudaIpcEventHandle_t of{};
    std::memcpy(&of, handle, sizeof of);
    cudaEvent_t opened = nullptr;
    const auto result = cudaIpcOpenEventHandle(&opened, of);
    *event = opened;
    return result;
  });
}

int record_event(int index, void* event, void* stream) {
  return on_device(index).run(
    [&] { return cudaEventRecord(static_cast<cudaEvent_t>(event), static_cast<cudaStream_t>(stream)); });
}

int wait_for_event(int index, void* event, void* stream) {
  return on_device(index).run(
    [&] { return cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event), 0); });
}

int destroy_event(void* event) { return cleared(cudaEventDestroy(static_cast<cudaEvent_t>(event))); }

}  // namespace

const sharing_functions& sharing_table() {
  static const sharing_functions table{share_memory, find_gpu,     open_memory,    close_memory, make_event,
                                       open_event,   record_event, wait_for_event, destroy_event};
  return table;
}

}  // namespace troupe::devices::cuda
