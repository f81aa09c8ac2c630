// SPDX-License-Identifier: BSD-3-Clause
// The kernels and the functions that launch them. Each kernel calls a body that the tests also run on the CPU.
#include <cuda_runtime.h>

#include <troupe/devices/cuda/conversion.hpp>
#include <troupe/devices/cuda/functions.hpp>
#include <troupe/messages/half_floats.hpp>

namespace troupe::devices::cuda {

namespace {

__device__ thread_index own_index() { return {blockIdx.x, threadIdx.x}; }

__global__ void pack_kernel(const __grid_constant__ packing_table table, unsigned char* buffer) {
  pack_tile(table, buffer, own_index());
}

__global__ void unpack_kernel(const __grid_constant__ packing_table table, const unsigned char* buffer) {
  unpack_tile(table, buffer, own_index());
}

template <auto Convert, class From, class To>
__global__ void convert_kernel(const From* from, To* to, std::uint64_t count) {
  convert_tile<Convert>(from, to, count, own_index());
}

__global__ void encode_kernel(encoding what) {
  const thread_elements own = gather_tile(what, own_index());
  encode_tile(what, own, __reduce_max_sync(0xffffffffU, own.largest), own_index());
}

__global__ void decode_kernel(decoding what) { decode_tile(what, own_index()); }

// Queues a kernel. Returns the error of this launch alone. After an error, clears CUDA's last error, because libtorch would
// report it as an error of its own.
template <class... Parameters, class... Arguments>
int launch(void (*kernel)(Parameters...), std::uint64_t blocks, void* stream, const Arguments&... arguments) {
  if (blocks == 0) return cudaSuccess;
  if (blocks > most_blocks) return cudaErrorInvalidConfiguration;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads_in_block);
  config.stream = static_cast<cudaStream_t>(stream);
  const cudaError_t result = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (result != cudaSuccess) static_cast<void>(cudaGetLastError());
  return result;
}

int pack(const packing_table* table, unsigned char* buffer, void* stream) {
  return launch(pack_kernel, table->blocks(), stream, *table, buffer);
}

int unpack(const packing_table* table, const unsigned char* buffer, void* stream) {
  return launch(unpack_kernel, table->blocks(), stream, *table, buffer);
}

template <auto Convert, class From, class To>
int convert(const From* from, To* to, std::uint64_t count, void* stream) {
  return launch(convert_kernel<Convert, From, To>, conversion_blocks(count), stream, from, to, count);
}

int encode_blocks(const encoding* what, void* stream) {
  return launch(encode_kernel, codec_blocks(what->count), stream, *what);
}

int decode_blocks(const decoding* what, void* stream) {
  return launch(decode_kernel, codec_blocks(what->count), stream, *what);
}

const char* reason(int result) { return cudaGetErrorString(static_cast<cudaError_t>(result)); }

}  // namespace

}  // namespace troupe::devices::cuda

extern "C" __attribute__((visibility("default"))) const troupe::devices::cuda::functions* troupe_cuda_functions() {
  using namespace troupe::devices::cuda;
  using namespace troupe::element_formats;
  static const functions table{functions_version,
                               pack,
                               unpack,
                               convert<to_bfloat16, float, std::uint16_t>,
                               convert<from_bfloat16, std::uint16_t, float>,
                               convert<to_float16, float, std::uint16_t>,
                               convert<from_float16, std::uint16_t, float>,
                               encode_blocks,
                               decode_blocks,
                               reason,
                               sharing_table()};
  return &table;
}
