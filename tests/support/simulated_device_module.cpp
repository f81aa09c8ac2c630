// SPDX-License-Identifier: BSD-3-Clause
// The simulated accelerator as a library that a Python program loads (tests/python/programs/simulated_device.py).
#include "support/simulated_accelerator.hpp"

extern "C" __attribute__((visibility("default"))) void troupe_install_simulated_device() { troupe::test::simulated::install(); }
