// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <optional>

#include <torch/csrc/autograd/anomaly_mode.h>

namespace troupe::support {

/// Turns libtorch's anomaly mode on while work runs whose caller is in anomaly mode. libtorch has one switch for the process,
/// so other work meanwhile runs in anomaly mode too. If the mode was on before, it stays on afterwards.
class anomaly_scope {
 public:
  explicit anomaly_scope(bool wanted) {
    if (!wanted || (guards_ == 0 && torch::autograd::AnomalyMode::is_enabled())) return;
    ++guards_;
    guard_.emplace();
  }
  ~anomaly_scope() {
    if (guard_) --guards_;
  }
  anomaly_scope(const anomaly_scope&) = delete;
  anomaly_scope& operator=(const anomaly_scope&) = delete;

 private:
  static inline std::atomic<int> guards_{0};
  std::optional<torch::autograd::DetectAnomalyGuard> guard_;
};

}  // namespace troupe::support
