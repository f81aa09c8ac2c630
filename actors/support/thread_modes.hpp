// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <troupe/messages/compute_modes.hpp>

namespace troupe::support {

/// The modes of libtorch of this thread: grad mode, inference mode and, if asked for, autocast of the kinds of devices that
/// travel.
compute_modes modes_of_thread(bool with_autocast);

/// While a modes_scope lives, its thread computes in the given modes.
///   YM-1  the scope sets grad mode and inference mode, and turns on the autocast that is given; other autocast stays as it is.
///   YM-2  the destructor restores what the scope has changed.
class modes_scope {
 public:
  explicit modes_scope(const compute_modes& modes);
  ~modes_scope();
  modes_scope(const modes_scope&) = delete;
  modes_scope& operator=(const modes_scope&) = delete;

 private:
  struct autocast_before {
    autocast_mode mode;
    bool is_on;
  };

  c10::AutoGradMode grad_;
  std::optional<c10::InferenceMode> inference_;  // empty if the thread has this mode already
  std::vector<autocast_before> before_;
};

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
