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

void garbage::add(contracts::garbage_ptr what) {
  {
    std::lock_guard lock(mutex_);
    if (frees_at_once_) return;
    all_.push_back(std::move(what));
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
  auto freed = std::make_shared<std::vector<contracts::garbage_ptr>>();
  {
    std::lock_guard lock(mutex_);
    freed->swap(all_);
  }
  if (freed->empty()) return;
  if (network_.multiplexer == nullptr) return caf::anon_send(actors_.continuation, contracts::garbage_ptr{std::move(freed)});
  auto free_it = [this, freed] {
    const own_thread own(running_, "freeing of graphs and tensors");
    const auto begin = support::steady_ns();
    freed->clear();
    times_.note(freeing, support::steady_ns() - begin);
  };
  auto free_elsewhere = [this, free_it] {
    caf::anon_send(actors_.continuation, contracts::garbage_ptr{nullptr, [=](void*) { free_it(); }});
  };
  if (!network_.run_soon(times_, freeing, free_it, free_elsewhere)) free_elsewhere();
}

std::vector<contracts::garbage_ptr> garbage::stop() {
  std::lock_guard lock(mutex_);
  frees_at_once_ = true;
  return std::exchange(all_, {});
}

}  // namespace troupe::services
