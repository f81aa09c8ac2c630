// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/workspace.hpp>

#include <utility>

namespace troupe::engine {

namespace {

constexpr std::size_t most_bytes_to_keep = std::size_t{8} << 20;
thread_local workspace spare;

}  // namespace

workspace workspace::take() { return std::exchange(spare, workspace()); }

void workspace::give_back() noexcept {
  slots.clear();
  inputs.clear();
  ready.clear();
  if (graph.memory() + slots.capacity() * sizeof(at::Tensor) <= most_bytes_to_keep) {
    spare = std::move(*this);
  }
}

}  // namespace troupe::engine
