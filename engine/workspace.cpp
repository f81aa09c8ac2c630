// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/workspace.hpp>

#include <utility>

namespace troupe::engine {

namespace {

constexpr std::size_t most_bytes_to_keep = std::size_t{8} << 20;
thread_local std::unique_ptr<workspace> spare;

}  // namespace

std::unique_ptr<workspace> workspace::acquire() { return spare ? std::move(spare) : std::make_unique<workspace>(); }

void workspace::give_back(std::unique_ptr<workspace> used) noexcept {
  used->slots.clear();
  used->inputs.clear();
  used->ready.clear();
  if (used->graph.memory() + used->slots.capacity() * sizeof(at::Tensor) <= most_bytes_to_keep) spare = std::move(used);
}

}  // namespace troupe::engine
