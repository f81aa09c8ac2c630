// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <troupe/devices/cuda/functions.hpp>

#include "grid.hpp"

namespace troupe::test {

/// A table of kernels that run on the CPU, at once, over the grid that they would have on a GPU. One object at a time.
class kernels_on_host {
 public:
  kernels_on_host() {
    count() = 0;
    table.version = devices::cuda::functions_version;
    table.pack = [](const devices::cuda::packing_table* pieces, unsigned char* buffer, void*) {
      return run(pieces->blocks(), [=](auto at) { devices::cuda::pack_part(*pieces, buffer, at); });
    };
    table.unpack = [](const devices::cuda::packing_table* pieces, const unsigned char* buffer, void*) {
      return run(pieces->blocks(), [=](auto at) { devices::cuda::unpack_part(*pieces, buffer, at); });
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
};

}  // namespace troupe::test
