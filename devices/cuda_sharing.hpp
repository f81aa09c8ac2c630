// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/devices/cuda/functions.hpp>
#include <troupe/devices/memory_sharing.hpp>

namespace troupe::devices {

/// Memory and events of CUDA, by CUDA's IPC handles. A handle names its GPU and its process. CUDA does not say whose memory it
/// opens, so of MH-2 a process of the same user can be wrong about it.
///   IH-1  open() opens only a handle of the process, of a GPU that this process sees, and of the size that the handle says.
///   IH-2  memory of expandable segments, and of other allocators that CUDA's IPC does not know, is not shared: share() throws.
class cuda_sharing final : public memory_sharing {
 public:
  explicit cuda_sharing(const cuda::functions& kernels) : kernels_(kernels) {}

  place share(const at::Tensor& elements) override;
  opened_memory open(std::uint64_t process, const std::string& allocation) override;
  std::shared_ptr<shared_event> record(const c10::Stream& stream) override;
  std::shared_ptr<shared_event> open_event(std::uint64_t process, const std::string& handle, c10::Device device) override;

 private:
  const cuda::functions& kernels_;
};

/// Null without own_cuda_kernels(), and if their library can't be loaded.
memory_sharing* own_cuda_sharing();

}  // namespace troupe::devices
