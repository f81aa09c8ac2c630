// SPDX-License-Identifier: BSD-3-Clause
#include "checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/devices/tensor_packing.hpp>
#include <troupe/messages/half_floats.hpp>

#include "../../tests/devices/cuda/kernels_on_host.hpp"

namespace troupe::bench {

namespace {

namespace cuda = devices::cuda;

template <class T>
std::span<T> span_of(const at::Tensor& tensor) {
  return {static_cast<T*>(tensor.mutable_data_ptr()), static_cast<std::size_t>(tensor.numel())};
}

template <class T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

/// Floats of every sign and magnitude, with NaN and infinity among them.
at::Tensor random_bits(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  auto made = at::empty({count}, at::kFloat);
  for (float& each : span_of<float>(made)) {
    const auto bits = static_cast<std::uint32_t>(random());
    std::memcpy(&each, &bits, sizeof each);
  }
  return made;
}

/// Blocks whose magnitudes differ: of each 256 elements all are near a power of two. One block in 64 has a NaN.
at::Tensor random_blocks(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  auto made = at::empty({count}, at::kFloat);
  float magnitude = 1;
  std::size_t index = 0;
  for (float& each : span_of<float>(made)) {
    if (index++ % element_formats::block_elements == 0) magnitude = std::ldexp(1.0F, static_cast<int>(random() % 240) - 140);
    each = normal(random) * magnitude;
  }
  for (std::size_t at = 100; at < index; at += 64 * element_formats::block_elements) span_of<float>(made)[at] = NAN;
  return made;
}

std::int64_t bytes_of(std::int64_t elements) {
  return static_cast<std::int64_t>(element_formats::int8_bytes(static_cast<std::uint64_t>(elements)));
}

/// The functions of the formats, element by element on the host.
template <auto Convert, class From, class To>
void convert_here(const at::Tensor& from, const at::Tensor& to) {
  const auto source = span_of<From>(from);
  std::transform(source.begin(), source.end(), span_of<To>(to).begin(), Convert);
}

/// `residual`: undefined, or what is added, and then what is left.
void encode_here(const at::Tensor& elements, const at::Tensor& residual, const at::Tensor& bytes) {
  namespace formats = element_formats;
  std::vector<float> sums(span_of<float>(elements).begin(), span_of<float>(elements).end());
  if (residual.defined())
    std::transform(sums.begin(), sums.end(), span_of<float>(residual).begin(), sums.begin(), formats::sum);
  auto* codes = span_of<std::int8_t>(bytes).data();
  float* scales = formats::scales_in(codes, sums.size());
  for (std::size_t begin = 0; begin < sums.size(); begin += formats::block_elements) {
    const auto end = std::min(sums.size(), begin + formats::block_elements);
    std::uint32_t largest = 0;
    for (auto i = begin; i < end; ++i) largest = std::max(largest, formats::magnitude_bits(sums[i]));
    const float scale = scales[begin / formats::block_elements] = formats::scale_of(largest);
    for (auto i = begin; i < end; ++i) {
      codes[i] = formats::code_of(sums[i], scale);
      if (residual.defined()) span_of<float>(residual)[i] = formats::left_over(sums[i], codes[i], scale);
    }
  }
}

void decode_here(const at::Tensor& bytes, const at::Tensor& elements) {
  const auto to = span_of<float>(elements);
  const auto* codes = span_of<std::int8_t>(bytes).data();
  const float* scales = element_formats::scales_in(codes, to.size());
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = element_formats::decoded(codes[i], scales[i / element_formats::block_elements]);
}

/// The kernels, with the tensors of the host as arguments and results.
class on_device {
 public:
  on_device(const gpu_device& where, const cuda::functions& kernels)
      : where_(where), kernels_(kernels), stream_(devices::current_stream(where.device())) {}

  using to_half = int (*)(const float*, std::uint16_t*, std::uint64_t, void*);
  using from_half = int (*)(const std::uint16_t*, float*, std::uint64_t, void*);

  at::Tensor converted(to_half how, const at::Tensor& from) const {
    return converted<float, std::uint16_t>(how, from, at::kShort);
  }
  at::Tensor converted(from_half how, const at::Tensor& from) const {
    return converted<std::uint16_t, float>(how, from, at::kFloat);
  }

  /// The bytes and, if there was one, the new residual.
  std::vector<at::Tensor> encoded(const at::Tensor& elements, const at::Tensor& residual) const {
    const at::Tensor from = there(elements);
    const at::Tensor kept = residual.defined() ? there(residual.clone()) : residual;
    const at::Tensor bytes = made(bytes_of(elements.numel()), at::kChar);
    const cuda::encoding what{data<float>(from), kept.defined() ? data<float>(kept) : nullptr, data<std::int8_t>(bytes),
                              static_cast<std::uint64_t>(elements.numel())};
    expect(kernels_.encode_blocks(&what, stream_), "encode_blocks");
    std::vector<at::Tensor> all{bytes.cpu()};
    if (kept.defined()) all.push_back(kept.cpu());
    return all;
  }

  at::Tensor decoded(const at::Tensor& bytes, std::int64_t count) const {
    const at::Tensor from = there(bytes);
    const at::Tensor elements = made(count, at::kFloat);
    const cuda::decoding what{data<std::int8_t>(from), data<float>(elements), static_cast<std::uint64_t>(count)};
    expect(kernels_.decode_blocks(&what, stream_), "decode_blocks");
    return elements.cpu();
  }

 private:
  template <class From, class To>
  at::Tensor converted(int (*how)(const From*, To*, std::uint64_t, void*), const at::Tensor& from, at::ScalarType to) const {
    const at::Tensor elements = there(from);
    const at::Tensor result = made(from.numel(), to);
    expect(how(data<From>(elements), data<To>(result), static_cast<std::uint64_t>(from.numel()), stream_), "a conversion");
    return result.cpu();
  }

  at::Tensor there(const at::Tensor& tensor) const { return tensor.to(where_.device()); }
  at::Tensor made(std::int64_t count, at::ScalarType type) const {
    return at::zeros({count}, at::TensorOptions(where_.device()).dtype(type));
  }
  void expect(int result, const char* kernel) const { devices::expect_launched(result, kernel, where_.device(), kernels_); }

  const gpu_device& where_;
  const cuda::functions& kernels_;
  void* stream_;
};

void compare_conversions(const on_device& kernels, const cuda::functions& table, std::int64_t count, gpu_report& report) {
  const at::Tensor elements = random_bits(count, 1);
  const at::Tensor expected = at::zeros({count}, at::kShort);
  convert_here<element_formats::to_bfloat16, float, std::uint16_t>(elements, expected);
  report.same("kernel: float32 to bfloat16", {expected}, {kernels.converted(table.to_bfloat16, elements)});
  convert_here<element_formats::to_float16, float, std::uint16_t>(elements, expected);
  report.same("kernel: float32 to float16", {expected}, {kernels.converted(table.to_float16, elements)});
  const at::Tensor halves = at::arange(-32768, 32768, at::kShort);  // all of them
  const at::Tensor floats = at::zeros({65536}, at::kFloat);
  convert_here<element_formats::from_bfloat16, std::uint16_t, float>(halves, floats);
  report.same("kernel: bfloat16 to float32", {floats}, {kernels.converted(table.from_bfloat16, halves)});
  convert_here<element_formats::from_float16, std::uint16_t, float>(halves, floats);
  report.same("kernel: float16 to float32", {floats}, {kernels.converted(table.from_float16, halves)});
}

void compare_blocks(const on_device& kernels, std::int64_t count, gpu_report& report) {
  const at::Tensor elements = random_blocks(count, 2);
  const at::Tensor bytes = at::zeros({bytes_of(count)}, at::kChar);
  encode_here(elements, {}, bytes);
  report.same("kernel: encode", {bytes}, kernels.encoded(elements, {}));
  const at::Tensor residual = elements * 0.003;
  const at::Tensor kept = residual.clone();
  encode_here(elements, kept, bytes);
  report.same("kernel: encode with a residual", {bytes, kept}, kernels.encoded(elements, residual));
  const at::Tensor decoded = at::zeros({count}, at::kFloat);
  decode_here(bytes, decoded);
  report.same("kernel: decode", {decoded}, {kernels.decoded(bytes, count)});
}

/// Tensors on the host, and the same on the device.
struct twins {
  std::vector<at::Tensor> here, there;
};

/// More tensors than a launch takes, of all alignments and several types.
twins random_twins(const gpu_device& where) {
  std::mt19937 random(3);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  twins all;
  for (int i = 0; i < 1500; ++i) {
    const auto bytes = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 40000 : random() % 200);
    const auto offset = static_cast<std::int64_t>(random() % 17);
    const bool floats = i % 4 == 0;
    const at::Tensor memory =
      floats ? at::randn({bytes / 4 + 17}, generator) : at::randint(0, 256, {bytes + 17}, generator, at::kByte);
    const auto narrowed = [&](const at::Tensor& of) { return of.narrow(0, offset, floats ? bytes / 4 : bytes); };
    all.here.push_back(narrowed(memory));
    all.there.push_back(narrowed(memory.to(where.device())));
  }
  return all;
}

void compare_packing(const gpu_device& where, const cuda::functions& table, gpu_report& report) {
  const auto tensors = random_twins(where);
  const auto expected = devices::pack(tensors.here, nullptr);
  const auto packed = devices::pack(tensors.there, &table);
  std::vector<at::Tensor> left, right, back;  // left and right without the bytes between the tensors, which have no value
  for (std::size_t i = 0; i < tensors.here.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(tensors.here[i].nbytes());
    left.push_back(expected.bytes.narrow(0, expected.offsets[i], bytes));
    right.push_back(packed.bytes.narrow(0, packed.offsets[i], bytes));
    back.push_back(at::zeros_like(tensors.there[i]));
  }
  report.same("kernel: pack", left, right);
  devices::unpack(packed, back, &table);
  report.same("kernel: unpack", tensors.here, back);
}

}  // namespace

const cuda::functions* kernels_of(const gpu_device& where) {
  static const test::kernels_on_host on_the_cpu;
  if (where.device().is_cpu()) return &on_the_cpu.table;
  return devices::kernels_for(where.device());
}

void compare_kernels(const gpu_device& where, bool quick, gpu_report& report) {
  const auto* table = kernels_of(where);
  if (table == nullptr) return report.skipped("kernels", "this build of troupe has none (it was built without nvcc)");
  const on_device kernels(where, *table);
  const std::int64_t count = (quick ? std::int64_t{1} << 16 : std::int64_t{1} << 24) + 77;
  compare_packing(where, *table, report);
  compare_conversions(kernels, *table, count, report);
  compare_blocks(kernels, count, report);
}

}  // namespace troupe::bench
