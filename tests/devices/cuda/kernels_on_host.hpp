// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/cuda/conversion.hpp>
#include <troupe/devices/cuda/functions.hpp>
#include <troupe/devices/cuda/packing.hpp>
#include <troupe/messages/half_floats.hpp>

#include "grid.hpp"

namespace troupe::test {

/// A table of kernels that run on the CPU, at once, over the grid that they would have on a GPU. One object at a time.
class kernels_on_host {
 public:
  kernels_on_host() {
    count() = 0;
    table.version = devices::cuda::functions_version;
    table.pack = [](const devices::cuda::packing_table* pieces, unsigned char* buffer, void*) {
      return run(pieces->blocks(), [=](auto at) { devices::cuda::pack_tile(*pieces, buffer, at); });
    };
    table.unpack = [](const devices::cuda::packing_table* pieces, const unsigned char* buffer, void*) {
      return run(pieces->blocks(), [=](auto at) { devices::cuda::unpack_tile(*pieces, buffer, at); });
    };
    table.to_bfloat16 = convert<element_formats::to_bfloat16, float, std::uint16_t>;
    table.from_bfloat16 = convert<element_formats::from_bfloat16, std::uint16_t, float>;
    table.to_float16 = convert<element_formats::to_float16, float, std::uint16_t>;
    table.from_float16 = convert<element_formats::from_float16, std::uint16_t, float>;
    table.encode_blocks = encode;
    table.decode_blocks = [](const devices::cuda::decoding* what, void*) {
      return run(devices::cuda::codec_blocks(what->count), [=](auto at) { devices::cuda::decode_tile(*what, at); });
    };
    table.reason = [](int) { return "a reason"; };
  }

  devices::cuda::functions table{};

  int launches() const { return count(); }

 private:
  static int& count() {
    static int launched = 0;
    return launched;
  }
  template <class Body>
  static int run(std::uint64_t blocks, Body body) {
    ++count();
    for_each_thread(blocks, 1, body);
    return 0;
  }
  template <auto Convert, class From, class To>
  static int convert(const From* from, To* to, std::uint64_t count, void*) {
    return run(devices::cuda::conversion_blocks(count),
               [=](auto at) { devices::cuda::convert_tile<Convert>(from, to, count, at); });
  }
  /// The threads of a warp tell each other the largest magnitude.
  static int encode(const devices::cuda::encoding* what, void*) {
    using namespace devices::cuda;
    std::vector<thread_elements> own(threads_in_warp);
    for (std::uint64_t block = 0; block < codec_blocks(what->count); ++block)
      for (std::uint32_t warp = 0; warp < threads_in_block; warp += threads_in_warp) {
        std::uint32_t largest = 0;
        for (std::uint32_t thread = 0; thread < threads_in_warp; ++thread) {
          own[thread] = gather_tile(*what, {block, warp + thread});
          largest = std::max(largest, own[thread].largest);
        }
        for (std::uint32_t thread = 0; thread < threads_in_warp; ++thread)
          encode_tile(*what, own[thread], largest, {block, warp + thread});
      }
    return 0;
  }
};

}  // namespace troupe::test
