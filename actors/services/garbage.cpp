// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/garbage.hpp>

#include <chrono>
#include <memory>
#include <string_view>

#include <caf/send.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/support/steady_clock.hpp>

namespace troupe::services {

namespace {

constexpr std::chrono::milliseconds longest_wait_to_tidy{1};
constexpr std::string_view freeing = "troupe.free";  // a kind of work in work_times

}  // namespace

void garbage::add(std::shared_ptr<void> what) {
  {
    checked_lock lock(mutex_);
    if (frees_at_once_) return;
    kept_.all.push_back(std::move(what));
  }
  tidy_soon();
}

void garbage::tidy_soon() {
  if (!network_) return tidy_();
  if (network_.multiplexer != nullptr) return network_.multiplexer->ask_for_idle_work();
  if (!will_tidy_.exchange(true))
    deadlines_.set(longest_wait_to_tidy, [this] {
      will_tidy_ = false;
      tidy_();
    });
}

void garbage::free_all() {
  const auto what = std::make_shared<contracts::discarded>();
  {
    checked_lock lock(mutex_);
    what->all.swap(kept_.all);
  }
  if (what->all.empty()) return;
  const auto free_here = [this, what] { free(std::move(*what)); };
  const auto free_elsewhere = [this, what] { caf::anon_send(actors_.continuation, std::move(*what)); };
  if (!network_.run_soon(times_, freeing, free_here, free_elsewhere)) free_elsewhere();
}

void garbage::free(contracts::discarded what) {
  const own_thread own(running_, "freeing of graphs and tensors");
  const auto begin = support::steady_ns();
  what.all.clear();
  times_.note(freeing, support::steady_ns() - begin);
}

contracts::discarded garbage::stop() {
  checked_lock lock(mutex_);
  frees_at_once_ = true;
  return std::exchange(kept_, {});
}

}  // namespace troupe::services
