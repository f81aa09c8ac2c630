// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe::test::simulated {

/// While an object of this class lives, the accelerator has troupe's kernels for packing and for 8-bit codes: their bodies run on
/// its streams. At most one such object lives at a time.
class own_kernels {
 public:
  own_kernels();
  ~own_kernels();
  own_kernels(const own_kernels&) = delete;
  own_kernels& operator=(const own_kernels&) = delete;

  /// How many kernels were launched in the object's life.
  static int launched();
};

}  // namespace troupe::test::simulated
