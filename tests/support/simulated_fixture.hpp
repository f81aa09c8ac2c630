// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "support/simulated_accelerator.hpp"

namespace troupe::test::simulated {

/// The accelerator, with all its streams idle before and after a test.
struct fixture {
  explicit fixture(c10::DeviceIndex devices = 2)
      : first(installed(devices)), second(device(1)), default_stream(c10::Stream::DEFAULT, first) {}
  ~fixture() { synchronize(); }

  static c10::Device installed(c10::DeviceIndex devices) {
    install(devices);
    synchronize();
    return device(0);
  }

  c10::Device first;
  c10::Device second;
  c10::Stream default_stream;         // default stream of the first device
  c10::Stream stream = new_stream();  // two more streams of the first device
  c10::Stream other = new_stream();
};

}  // namespace troupe::test::simulated
