// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_kernels.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/cuda/conversion.hpp>
#include <troupe/devices/cuda/packing.hpp>
#include <troupe/messages/half_floats.hpp>

namespace troupe::bench {

namespace {

using namespace devices::cuda;

template <class Body>
int over_grid(std::uint64_t blocks, Body body) {
  for (std::uint64_t block = 0; block < blocks; ++block)
    for (std::uint32_t thread = 0; thread < threads_in_block; ++thread) body(thread_place{block, thread});
  return 0;
}

int pack(const packing_table* table, unsigned char* buffer, void*) {
  return over_grid(table->blocks(), [&](thread_place at) { pack_part(*table, buffer, at); });
}

int unpack(const packing_table* table, const unsigned char* buffer, void*) {
  return over_grid(table->blocks(), [&](thread_place at) { unpack_part(*table, buffer, at); });
}

template <auto Convert, class From, class To>
int convert(const From* from, To* to, std::uint64_t count, void*) {
  return over_grid(conversion_blocks(count), [&](thread_place at) { convert_part<Convert>(from, to, count, at); });
}

int encode_blocks(const encoding* what, void*) {
  std::vector<lane_elements> own(lanes);
  for (std::uint64_t block = 0; block < codec_blocks(what->count); ++block) {
    for (std::uint32_t warp = 0; warp < threads_in_block; warp += lanes) {
      std::uint32_t largest = 0;
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        own[lane] = gather_part(*what, {block, warp + lane});
        largest = std::max(largest, own[lane].largest);
      }
      for (std::uint32_t lane = 0; lane < lanes; ++lane) encode_part(*what, own[lane], largest, {block, warp + lane});
    }
  }
  return 0;
}

int decode_blocks(const decoding* what, void*) {
  return over_grid(codec_blocks(what->count), [&](thread_place at) { decode_part(*what, at); });
}

const char* reason(int) { return "no reason: the CPU does not fail"; }

}  // namespace

const devices::cuda::functions& kernels_on_the_cpu() {
  static const functions table{functions_version,
                               pack,
                               unpack,
                               convert<element_formats::to_bfloat16, float, std::uint16_t>,
                               convert<element_formats::from_bfloat16, std::uint16_t, float>,
                               convert<element_formats::to_float16, float, std::uint16_t>,
                               convert<element_formats::from_float16, std::uint16_t, float>,
                               encode_blocks,
                               decode_blocks,
                               reason};
  return table;
}

}  // namespace troupe::bench
