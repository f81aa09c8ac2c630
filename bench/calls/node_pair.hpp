// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "../support/background.hpp"
#include "../support/measured_runs.hpp"
#include "../support/other_process.hpp"
#include "../support/process_figures.hpp"
#include "../support/scratch_folder.hpp"
#include "exchanges.hpp"

namespace troupe::bench {

/// How the two nodes of a pair are started. All else is as the code has it.
struct pair_settings {
  carrier by = carrier::shared_memory;
  std::chrono::microseconds short_work = settings().short_work;
  std::size_t workers = settings().workers;
  std::function<void(caf::actor_system_config&)> configure{};
};

/// This process's node "a", and the node "b" of another process. To be made before this process has other threads. Functions of b:
///   add       the sum of two tensors                    echo      the tensors of the call
///   spin      computes for `us` microseconds            compute   computes for 50 ms
///   resident  `bytes`, as resident_bytes()              throws    the tensor; its function in backward throws
///   peak      `bytes`: the most since "forget_peak"
/// b has the module type "empty", without parameters: what libtorch takes for tensors is not measured.
class node_pair {
 public:
  explicit node_pair(pair_settings how);

  node& here() { return *here_; }
  const peer& to() const { return *to_; }
  double resident_there() const { return get<double>(to_->call("resident").get().values, "bytes"); }

 private:
  scratch_folder kits_;
  other_process server_;
  std::optional<node> here_;
  std::optional<peer> to_;
};

/// Computes for about so long.
void compute(std::chrono::microseconds for_long);

/// Opens a context and runs `within` in it. Contexts of one thread do not nest, so another thread opens the context and ends.
template <class Run>
std::unique_ptr<context> open_context(node& here, Run within) {
  std::unique_ptr<context> result;
  on_own_thread([&] {
    result = std::make_unique<context>(here);
    within();
  });
  return result;
}

}  // namespace troupe::bench
