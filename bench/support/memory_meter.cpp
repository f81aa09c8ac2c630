// SPDX-License-Identifier: BSD-3-Clause
#include "memory_meter.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace troupe::bench {

namespace {

/// Receives each allocation and release of libtorch's CPU allocator on the threads where it is set.
class meter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    current_ += bytes;
    peak_ = std::max(peak_, current_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  void begin() { current_ = peak_ = 0; }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace

std::size_t peak_memory(const std::function<void()>& prepare, const std::function<void()>& run) {
  const auto counts = std::make_shared<meter>();
  const c10::DebugInfoGuard set(c10::DebugInfoKind::PROFILER_STATE, counts);
  prepare();  // the allocator knows only the sizes of memory that was allocated while a meter was set
  counts->begin();
  run();
  return static_cast<std::size_t>(counts->peak());
}

}  // namespace troupe::bench
