// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace troupe {

/// A kind of device for which autocast is on, and the dtype of autocast there.
struct autocast_mode {
  c10::DeviceType device = c10::DeviceType::CPU;
  c10::ScalarType dtype = c10::ScalarType::BFloat16;
  bool operator==(const autocast_mode&) const = default;
};

/// The modes of libtorch in which a thread computes. The default is a thread that records a graph.
struct compute_modes {
  bool no_grad = false;
  bool inference = false;
  std::vector<autocast_mode> autocast;  // one for each kind of device whose autocast is on
  bool operator==(const compute_modes&) const = default;
};

}  // namespace troupe
