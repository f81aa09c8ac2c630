// SPDX-License-Identifier: BSD-3-Clause
#include "support/simulated_codec.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <troupe/devices/cuda/functions.hpp>
#include <troupe/devices/tensor_packing.hpp>

#include "support/simulated_streams.hpp"

namespace troupe::test::simulated {

namespace {

namespace cuda = devices::cuda;

std::atomic<int> launches{0};

int launch(void* stream, std::function<void()> kernel) {
  ++launches;
  stream_set::all().compute(stream_of_handle(stream), std::move(kernel));
  return 0;
}

template <class Body>
void for_each_thread(std::uint64_t blocks, Body body) {
  for (std::uint64_t block = 0; block < blocks; ++block)
    for (std::uint32_t thread = 0; thread < cuda::threads_in_block; ++thread) body(cuda::thread_index{block, thread});
}

int pack(const cuda::packing_table* table, unsigned char* buffer, void* stream) {
  return launch(stream, [table = *table, buffer] {
    for_each_thread(table.blocks(), [&](auto at) { cuda::pack_tile(table, buffer, at); });
  });
}

int unpack(const cuda::packing_table* table, const unsigned char* buffer, void* stream) {
  return launch(stream, [table = *table, buffer] {
    for_each_thread(table.blocks(), [&](auto at) { cuda::unpack_tile(table, buffer, at); });
  });
}

int encode_blocks(const cuda::encoding* what, void* stream) {
  return launch(stream, [what = *what] {
    for (std::uint64_t block = 0; block < cuda::codec_blocks(what.count); ++block) {
      std::vector<cuda::thread_elements> own;
      std::array<std::uint32_t, cuda::threads_in_block / cuda::threads_in_warp> largest{};
      for (std::uint32_t thread = 0; thread < cuda::threads_in_block; ++thread) {
        own.push_back(cuda::gather_tile(what, {block, thread}));
        auto& of_warp = largest.at(thread / cuda::threads_in_warp);
        of_warp = std::max(of_warp, own.back().largest);
      }
      for (std::uint32_t thread = 0; thread < cuda::threads_in_block; ++thread)
        cuda::encode_tile(what, own[thread], largest.at(thread / cuda::threads_in_warp), {block, thread});
    }
  });
}

int decode_blocks(const cuda::decoding* what, void* stream) {
  return launch(
    stream, [what = *what] { for_each_thread(cuda::codec_blocks(what.count), [&](auto at) { cuda::decode_tile(what, at); }); });
}

const cuda::functions& table() {
  static const cuda::functions all = [] {
    cuda::functions result{};
    result.pack = pack;
    result.unpack = unpack;
    result.encode_blocks = encode_blocks;
    result.decode_blocks = decode_blocks;
    result.reason = [](int) { return "no reason"; };
    return result;
  }();
  return all;
}

}  // namespace

own_kernels::own_kernels() {
  launches = 0;
  devices::set_kernels(c10::kPrivateUse1, &table());
}
own_kernels::~own_kernels() { devices::set_kernels(c10::kPrivateUse1, nullptr); }
int own_kernels::launched() { return launches; }

}  // namespace troupe::test::simulated
