// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/cpu_workers.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <utility>

#include <c10/util/Exception.h>

namespace troupe::engine {

cpu_workers::cpu_workers(std::size_t count, std::int64_t grain)
    : count_(count),
      grain_(grain),
      process_(getpid()),
      cpu_lane_(std::make_shared<lane>(lane::kind::cpu, count, [this](serve_lane what) { call_worker(std::move(what)); })) {}

void cpu_workers::check_process() const {
  TORCH_CHECK(
    process_ == getpid(), "troupe: this process was forked from process ", process_, ", where the ", count_,
    " workers of this backward pass are; a fork does not copy threads. Create workers after the fork, or run the pass "
    "without workers");
}

void cpu_workers::measure_grain() {
  using clock = std::chrono::steady_clock;
  constexpr int rounds = 20;
  constexpr std::int64_t least = 10'000;
  // The measured time can be longer, because a worker may sleep on an idle core. Even then it is worth handing over functions
  // of 30 us, because the thread of the pass takes back functions that no worker has begun (bench/calls/grain_plots.cpp).
  constexpr std::int64_t most = 30'000;
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < rounds; ++round) {
    const auto done = std::make_shared<std::promise<void>>();
    const auto start = clock::now();
    post([done] { done->set_value(); });
    done->get_future().wait();
    best = std::min<std::int64_t>(best, std::chrono::nanoseconds(clock::now() - start).count());
  }
  grain_ = std::clamp(2 * best, least, most);
}

}  // namespace troupe::engine
