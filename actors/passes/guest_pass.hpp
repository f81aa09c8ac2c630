// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/autograd_test.py
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/engine/guest.hpp>

namespace troupe::passes {

/// The part of a pass over functions of another library (engine::guest) that is on this node. Made at the start of the pass.
class guest_pass : public engine::guest {
 public:
  /// The sends of the context on this node that are functions of the guest.
  virtual std::vector<engine::send_source> sends() = 0;
  /// While the returned object lives, the calling thread runs functions of the pass.
  virtual std::shared_ptr<void> enter() = 0;
  /// The text of an error. `where`: such as "backward on node 'a' failed in f: ".
  virtual std::string describe(const std::string& where, const std::string& reason) = 0;
};

/// Makes the guest_pass of the pass that starts now; null: the guest has no part in it.
using guest_maker = std::function<std::shared_ptr<guest_pass>()>;

/// The guests of a context, one for each pass. Any thread may use it. Most contexts have no guests, so the source takes little
/// memory without them.
class guest_source {
 public:
  /// From now on passes take in guests of this maker. `whole`: what the guest keeps for the context as a whole.
  void set(guest_maker make, std::shared_ptr<void> whole = nullptr);
  /// The guest of a pass that starts now; null without a guest.
  std::shared_ptr<guest_pass> next() const;
  /// For the release of the context: takes what the guest has kept. No guests come after that.
  std::shared_ptr<void> take_whole();

 private:
  struct kept {
    guest_maker make;
    std::shared_ptr<void> whole;
  };
  std::atomic<std::shared_ptr<const kept>> kept_;
};

}  // namespace troupe::passes
