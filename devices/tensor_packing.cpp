// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/tensor_packing.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/devices/cuda/functions.hpp>
#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::devices {

namespace {

constexpr std::int64_t alignment = 16;  // enough for the kernels' largest word, and for each element type

using launch = int (*)(const cuda::packing_table& table, unsigned char* bytes, const cuda::functions& kernels, void* stream);

int launch_pack(const cuda::packing_table& table, unsigned char* bytes, const cuda::functions& kernels, void* stream) {
  return kernels.pack(&table, bytes, stream);
}

int launch_unpack(const cuda::packing_table& table, unsigned char* bytes, const cuda::functions& kernels, void* stream) {
  return kernels.unpack(&table, bytes, stream);
}

[[noreturn]] void refuse(const char* function, std::size_t index, const std::string& expected, const std::string& got) {
  throw error(errc::misuse,
              std::string(function) + ": expected " + expected + " as tensor " + std::to_string(index) + ", got " + got);
}

void check(const char* function, const std::vector<at::Tensor>& tensors, c10::Device device) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) refuse(function, i, "a defined tensor", "an undefined one");
    if (tensors[i].layout() != at::kStrided || tensors[i].is_nested())
      refuse(function, i, "a strided tensor", "the layout " + std::string(c10::str(tensors[i].layout())));
    if (tensors[i].is_meta() || tensors[i]._is_zerotensor())
      refuse(function, i, "a tensor with memory", "one that is only a shape");
    if (tensors[i].device() != device)
      refuse(function, i, "a tensor on " + device.str(), "one on " + tensors[i].device().str());
  }
}

// Queues the copies of all tensors. Needs several kernels if the tensors do not fit into one packing_table.
void launch_tables(launch how, const char* kernel, const packed_tensors& packed, const std::vector<at::Tensor>& tensors,
                   const cuda::functions& kernels) {
  const c10::Device device = packed.bytes.device();
  auto* bytes = static_cast<unsigned char*>(packed.bytes.mutable_data_ptr());
  void* stream = current_stream(device);
  auto table = std::make_unique<cuda::packing_table>();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto* memory = const_cast<void*>(tensors[i].const_data_ptr());  // only unpack() writes to this memory
    const auto offset = static_cast<std::uint64_t>(packed.offsets[i]);
    if (table->add(memory, tensors[i].nbytes(), offset)) continue;
    expect_launched(how(*table, bytes, kernels, stream), kernel, device, kernels);
    *table = {};
    if (!table->add(memory, tensors[i].nbytes(), offset)) refuse(kernel, i, "a tensor of at most 32 TiB", "a larger one");
  }
  expect_launched(how(*table, bytes, kernels, stream), kernel, device, kernels);
}

// Returns a view of the packed bytes of tensor `index`, with the type, sizes and strides of `tensor`.
at::Tensor seen_as(const packed_tensors& packed, std::size_t index, const at::Tensor& tensor) {
  const auto size = static_cast<std::int64_t>(tensor.nbytes());
  return packed.bytes.narrow(0, packed.offsets[index], size)
    .view(tensor.scalar_type())
    .as_strided(tensor.sizes(), tensor.strides());
}

}  // namespace

namespace {

std::atomic<const cuda::functions*>& kernels_of(c10::DeviceType type) {
  static std::array<std::atomic<const cuda::functions*>, c10::COMPILE_TIME_MAX_DEVICE_TYPES> all{};
  return all.at(static_cast<std::size_t>(type));
}

}  // namespace

const cuda::functions* kernels_for(c10::Device device) {
  return device.is_cuda() ? own_cuda_kernels() : kernels_of(device.type()).load();
}

void set_kernels(c10::DeviceType type, const cuda::functions* kernels) { kernels_of(type) = kernels; }

void expect_launched(int result, const char* kernel, c10::Device device, const cuda::functions& kernels) {
  if (result == 0) return;
  throw error(errc::function_failed, "expected to run the kernel '" + std::string(kernel) + "' on " + device.str() +
                                       ", got: " + kernels.reason(result) + " (CUDA error " + std::to_string(result) + ")");
}

void* current_stream(c10::Device device) {
  return device.is_cpu() ? nullptr : c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

at::Tensor bytes_at(void* first, std::uint64_t bytes, c10::Device device) {
  return at::for_blob(first, {static_cast<std::int64_t>(bytes)})
    .options(at::device(device).dtype(at::kByte))
    .target_device(device)
    .make_tensor();
}

std::vector<std::int64_t> packed_offsets(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> result{0};
  for (const auto& each : tensors)
    result.push_back(result.back() + (static_cast<std::int64_t>(each.nbytes()) + alignment - 1) / alignment * alignment);
  return result;
}

packed_tensors pack(const std::vector<at::Tensor>& tensors, const cuda::functions* kernels) {
  const c10::AutoGradMode no_grad(false);
  const c10::Device device = tensors.empty() || !tensors[0].defined() ? c10::Device(c10::kCPU) : tensors[0].device();
  check("pack", tensors, device);
  const c10::DeviceGuard guard(device);
  std::vector<at::Tensor> dense;
  for (const auto& each : tensors) {
    const at::Tensor plain = each.detach().resolve_conj().resolve_neg();
    dense.push_back(plain.is_non_overlapping_and_dense() ? plain : plain.contiguous());
  }
  packed_tensors packed{{}, packed_offsets(dense)};
  packed.bytes = at::empty({packed.offsets.back()}, at::TensorOptions(at::kByte).device(device));
  packed.offsets.pop_back();
  if (kernels != nullptr) {
    launch_tables(launch_pack, "pack", packed, dense, *kernels);
    return packed;
  }
  for (std::size_t i = 0; i < dense.size(); ++i)
    if (dense[i].numel() != 0) seen_as(packed, i, dense[i]).copy_(dense[i], true);
  return packed;
}

void unpack(const packed_tensors& packed, const std::vector<at::Tensor>& tensors, const cuda::functions* kernels) {
  const c10::AutoGradMode no_grad(false);
  const c10::Device device = packed.bytes.device();
  check("unpack", tensors, device);
  if (tensors.size() != packed.offsets.size())
    throw error(errc::misuse, "unpack: expected " + std::to_string(packed.offsets.size()) + " tensors, as were packed, got " +
                                std::to_string(tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_non_overlapping_and_dense() || tensors[i].is_conj() || tensors[i].is_neg())
      refuse("unpack", i, "a tensor without gaps", "one with gaps or lazy bits");
    const std::int64_t end = i + 1 < tensors.size() ? packed.offsets[i + 1] : packed.bytes.numel();
    if (static_cast<std::int64_t>(tensors[i].nbytes()) > end - packed.offsets[i])
      refuse("unpack", i, "at most " + std::to_string(end - packed.offsets[i]) + " bytes", std::to_string(tensors[i].nbytes()));
  }
  const c10::DeviceGuard guard(device);
  if (kernels != nullptr) {
    launch_tables(launch_unpack, "unpack", packed, tensors, *kernels);
    return;
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].numel() != 0) tensors[i].detach().copy_(seen_as(packed, i, tensors[i]), true);
}

}  // namespace troupe::devices
