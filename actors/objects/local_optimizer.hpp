// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/module.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/optimizer_kind.hpp>
#include <troupe/actors/optimizer_settings.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/mutex.hpp>
#include <troupe/messages/requests.hpp>

namespace troupe::objects {

/// A list of tensors of several owners: each tensor is listed once, and no two tensors have the same name.
class distinct_tensors {
 public:
  explicit distinct_tensors(const char* kind) : kind_(kind) {}

  /// Adds tensors. Returns how many of them are new.
  std::size_t add(const std::string& prefix, const named_tensors& from) {
    const auto before = all_.size();
    for (const auto& [name, tensor] : from) {
      if (!names_.insert(prefix + name).second)
        throw error(errc::misuse, std::string("optimizer: two ") + kind_ + "s are called '" + prefix + name + "'");
      if (seen_.insert(tensor.unsafeGetTensorImpl()).second) all_.emplace_back(prefix + name, tensor);
    }
    return all_.size() - before;
  }
  named_tensors take() { return std::move(all_); }

 private:
  const char* kind_;
  named_tensors all_;
  std::unordered_set<const void*> seen_;
  std::unordered_set<std::string> names_;
};

/// Which changes of an optimizer were made (LO-7, LO-8). The caller numbers its changes upwards from 1; 0 is a change without a
/// number.
class change_log {
 public:
  std::uint64_t last() const noexcept { return last_; }

  /// Whether the change has to be made now. Throws troupe::error (misuse) if it can't be made any more.
  bool is_due(std::uint64_t number) const {
    const bool is_last = number != 0 && number == last_;
    if (is_last && state_ == state::made) return false;
    if (state_ == state::midway)
      throw error(errc::misuse, "optimizer: change " + std::to_string(last_) +
                                  " failed midway, so some parameters are changed and others are not; load a checkpoint");
    if (is_last || (number != 0 && number < last_))
      throw error(errc::misuse,
                  "optimizer: change " + std::to_string(number) +
                    (is_last ? " was given up before it came" : " came late, after change " + std::to_string(last_)));
    return true;
  }

  /// From here to made() the parameters may be half changed.
  void begin(std::uint64_t number) noexcept {
    if (number != 0) last_ = number;
    state_ = state::midway;
  }
  void made() noexcept { state_ = state::made; }

  /// As local_optimizer::has_made().
  bool has_made(std::uint64_t number, bool give_up) {
    if (state_ == state::midway) is_due(0);  // throws
    if (number <= last_) return number == last_ && state_ == state::made;
    if (!give_up) return false;
    last_ = number;
    state_ = state::given_up;
    return false;
  }

 private:
  enum class state : std::uint8_t { made, given_up, midway };

  std::uint64_t last_ = 0;  // number of the last change
  state state_ = state::made;
};

/// Sums of squares of gradients. Each parameter has a sum of its own, so that the total does not depend on which node holds
/// which parameter.
struct squared_norms {
  std::vector<double> sums;  // 0 for a parameter without a gradient
  std::string not_finite;    // name of the first parameter whose sum is not finite, or empty
};

/// Throws troupe::error (misuse) unless the rate is finite and not negative.
void check_learning_rate(double rate);

using group_rates = requests::group_rates;
using change = requests::optimizer_change;

struct grouping {
  std::vector<attributes> options = {{}};    // of each group: those that differ from the options of the optimizer
  std::vector<std::size_t> of_modules = {};  // the group of each module; empty: the first group
  std::vector<std::size_t> of_local = {};    // the group of each local parameter; empty: the first group
};

/// A libtorch optimizer over parameters of this process. Any thread may use it.
///   LO-1  a step gives the bits that libtorch's optimizer gives with the same gradients in `.grad`.
///   LO-2  a step changes neither `.grad` of the parameters nor the gradients that the step is given.
///   LO-3  a step changes no parameter without a gradient, and no state of the optimizer for such a parameter.
///   LO-4  a part that stage() refuses changes nothing. From a part that stage() accepts, apply() takes all or nothing:
///         parameters, state, options, buffers and the state of libtorch's default generator of random numbers.
///   LO-5  gathered gradients serve one step: a step that has changed a parameter drops them, also if the step throws.
///         Gradients of a later round take the place of those before; gradients of an earlier round are refused. Sums have the
///         order of the calls of gather().
///   LO-6  a part that is received takes at most 64 MiB and four times the memory of a part of this model.
///   LO-7  a change with a number is made once: the same number again does nothing. A number below the last one is refused, so
///         a call that comes late changes nothing.
///   LO-8  after a step or an apply() that failed midway, each step is refused until apply() succeeds.
///   LO-9  a snapshot has the state between two changes. A change waits while the state is copied, and never while a part is
///         written or sent. There is one snapshot in memory: no other is made while it is being written.
class local_optimizer {
 public:
  /// Makes an optimizer over the parameters of the modules, with the names `<index>/<name>`, and over `local`. A parameter that
  /// is listed twice is stepped once. A checkpoint also has the buffers of the modules, named in the same way, and
  /// `local_buffers`.
  local_optimizer(const optimizer_settings& settings, std::vector<std::shared_ptr<module>> modules,
                  const named_tensors& local = {}, named_tensors local_buffers = {}, const grouping& groups = {});

  /// The current buffers, with their names in a checkpoint.
  named_tensors buffers() const;

  /// The number of parameters of each module; last the number of local parameters.
  const std::vector<std::size_t>& counts() const noexcept { return counts_; }

  /// The sums of these gradients; null: of the gathered gradients.
  squared_norms norms(const engine::gradient_table* gradients = nullptr) const;

  /// Steps every parameter that has a gradient, with the gradient times `scale`.
  void step(const engine::gradient_table& gradients, double scale = 1, const change& which = {});

  /// Adds these gradients to the sum that the next gathered_step() of the round uses.
  void gather(const engine::gradient_table& gradients, std::uint64_t round = 0);
  void gathered_step(double scale = 1, const change& which = {});
  /// Drops what was gathered, unless a later round has begun.
  void forget_gathered(std::uint64_t round = 0) noexcept;

  /// Whether the change with this number was made. With `give_up`, a change that was not made is not made later either. Throws
  /// troupe::error (misuse) if the change failed midway.
  bool has_made(std::uint64_t number, bool give_up = false);

  void set_learning_rates(const change& which);

  /// About how many bytes a part has once every parameter was stepped; rather too many than too few.
  std::uint64_t estimated_bytes() const;

  /// Copies all that LO-4 names, as the bytes of a part. They are kept until discard() or the next snapshot. Returns their
  /// digest. Throws troupe::error while write_snapshot() runs.
  support::file_digest snapshot(const std::string& node, const std::string& save_id);
  /// Writes the snapshot to a file. Throws troupe::error (misuse) without a snapshot of this save.
  support::file_digest write_snapshot(const support::file_location& location, const std::string& save_id);
  /// `size` bytes of the snapshot, from `offset` on; fewer at its end. Throws troupe::error (misuse) without such a snapshot.
  at::Tensor piece(const std::string& save_id, std::uint64_t offset, std::uint64_t size) const;
  /// Whether the last snapshot was of this save.
  bool has_saved_last(const std::string& save_id) const;

  /// Takes the next bytes of a part of `total` bytes, for stage_received(). Throws refused_request before any memory is taken
  /// if the part is far larger than a part of this model (LO-6).
  void receive(const std::string& save_id, std::uint64_t offset, std::uint64_t total, const at::Tensor& piece);
  /// As stage(), of the part that was received. `path` is for errors only.
  void stage_received(const std::string& path, const support::file_digest& digest, const std::string& save_id);

  /// Reads a part and keeps it for apply(). Throws troupe::error with the name of the first tensor whose name, shape or dtype
  /// does not fit, or that can't be overwritten in this process.
  void stage(const support::file_location& location, const support::file_digest& digest, const std::string& save_id);
  /// Overwrites all that LO-4 names with the part that was staged from this save. Asks the modules for their buffers again: a
  /// call since stage() may have replaced a buffer. If a buffer does not fit any more, throws and changes nothing. Drops what
  /// was gathered.
  void apply(const std::string& save_id, const change& which = {});
  /// Drops the staged part, the snapshot and what was received.
  void discard() noexcept;

 private:
  /// Gradients that wait for one step.
  struct gathered {
    engine::gradient_table gradients;
    std::uint64_t round = 0;
  };
  /// Parts of checkpoints that come and go.
  struct traffic {
    std::string last_save;
    std::optional<checkpoint_part> staged;
    part_pieces outgoing;
    part_pieces incoming;
  };

  checkpoint_part part(const std::string& node, const std::string& save_id) const;
  void stage(const std::string& path, checkpoint_part part) TROUPE_REQUIRES(mutex_);
  void check(const checkpoint_part& part, const named_tensors& buffers) const;
  named_tensors buffers_for(const checkpoint_part& part) const;
  void step_with(const engine::gradient_table& gradients, double scale, const change& which, engine::gradient_table* used)
    TROUPE_REQUIRES(mutex_);
  void check_rates(const group_rates& rates) const;
  void take_rates(const group_rates& rates);
  std::unique_lock<std::mutex> begin_writing();

  std::mutex writing_;  // held while a snapshot is made or written; locked before mutex_
  mutable checked_mutex mutex_;
  const optimizer_kind& kind_;
  std::vector<std::shared_ptr<module>> modules_;  // own the parameters
  named_tensors parameters_;                      // their values, and the state of optimizer_, change under mutex_
  named_tensors local_buffers_;
  std::vector<std::size_t> counts_;
  std::vector<std::int64_t> groups_;  // of each parameter
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  gathered gathered_ TROUPE_GUARDED_BY(mutex_);
  change_log changes_ TROUPE_GUARDED_BY(mutex_);
  traffic parts_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::objects
