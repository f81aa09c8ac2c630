// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gpu_device.hpp"
#include "gpu_report.hpp"

namespace troupe::bench {

/// Measures, in turns: backward passes that wait for launches and passes that fill the device, on libtorch's engine and on troupe's;
/// packing beside copies; compression beside the bandwidth of a copy. Each time is one between two synchronisations.
void measure_figures(const gpu_device& where, bool quick, gpu_report& report);

}  // namespace troupe::bench
