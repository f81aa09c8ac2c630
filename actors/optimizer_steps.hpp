// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_steps_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/messages/attributes.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe {

class context;
class optimizer_shards;

/// Makes the changes of an optimizer, and gives each change a number: see optimizer::step(), gather(), set_learning_rate() and
/// load(). One thread at a time may use optimizer_steps.
///   OX-1  no change but a load begins while the outcome of the change before it is unsure, that is, while some nodes may have
///         made that change and others not.
///   OX-2  after a change that no node has made, the optimizer is as before the change. Only new learning rates stay: the next
///         change applies them.
class optimizer_steps {
 public:
  explicit optimizer_steps(optimizer_shards& shards) : shards_(shards) {}

  /// Throws troupe::error (misuse) unless gradients of the context can be used now.
  static void require_settled(const context& pass, const char* who);

  std::optional<double> step(const context& pass, std::optional<double> clip_norm);
  std::optional<double> step(std::optional<double> clip_norm);
  void gather(const context& pass);

  /// Sets the rate of one parameter group, or of all.
  void set_rate(double rate, std::optional<std::size_t> group);
  /// Before a save: makes sure that each node has made the last step and has the new learning rates.
  void settle_all(const char* who);
  attributes load(const std::string& folder);

 private:
  /// Says which gradients a step uses: those of context `of` after its pass `pass`, or, if `of` is none, the gathered ones.
  struct source {
    context_id of = {};
    pass_number pass = {};
    bool operator==(const source&) const = default;
  };
  /// A change that some node has not confirmed yet.
  struct unsure_change {
    objects::change which;
    bool is_load = false;
    source from = {};
    double scale = 1;
    std::optional<double> norm = {};
    std::set<std::size_t> nodes = {};  // indices of the groups whose node has made the change
    bool here = false;                 // whether this node has made the change
    std::string why = {};              // the first error
  };

  std::optional<double> step(const source& from, const engine::gradient_table* gradients, std::optional<double> clip_norm);
  double norm(const engine::gradient_table* gradients);
  void make(const engine::gradient_table* gradients);
  bool ask_for_made(bool give_up, const char* who);
  bool was_made_somewhere() const;
  void settle(const char* who);
  [[noreturn]] void refuse(const char* who) const;
  void forget() noexcept;
  std::uint64_t next() { return ++last_number_; }

  optimizer_shards& shards_;
  std::uint64_t last_number_ = 0;
  std::uint64_t round_ = 0;              // the round of gathered gradients that no step has used yet; 0: there are none
  objects::group_rates new_rates_ = {};  // rates that the nodes do not have yet: the next step or save sends them
  std::optional<unsure_change> unsure_ = {};
};

}  // namespace troupe
