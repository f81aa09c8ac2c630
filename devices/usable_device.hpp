// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <c10/core/Device.h>

namespace troupe::devices {

/// The device of this name, as in cpu or cuda:0, ready to compute: CUDA's kernels are loaded (devices/cuda_kernels.hpp). Throws
/// troupe::error(misuse) with the devices of this process, if it is none of them. After this call with a GPU, a forked process has to
/// call exec before it uses a GPU.
c10::Device usable_device(const std::string& name);

}  // namespace troupe::devices
