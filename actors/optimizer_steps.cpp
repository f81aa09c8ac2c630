// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer_steps.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <troupe/actors/context.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/optimizer_checkpoints.hpp>
#include <troupe/actors/optimizer_shards.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/remote_object.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/unsure_step.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe {

namespace {

constexpr auto make_anew =
  ". The node has lost its modules and its part of the optimizer: make the modules and the optimizer anew, then load a "
  "checkpoint";

/// Whether a node of the optimizer was started again: then a node with another id has the same name.
bool was_started_again(const optimizer_shards& shards) {
  return std::any_of(shards.groups().begin(), shards.groups().end(), [&](const optimizer_shards::group& one) {
    try {
      return shards.here().here().peer(one.where.name(), std::chrono::milliseconds(0)).id() != one.where.id();
    } catch (const error&) {
      return false;  // no node of this name is known now
    }
  });
}

errc code_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& known) {
    return known.code();
  } catch (...) {
    return errc::function_failed;
  }
}

/// Whether the failure means that a node has lost its shard of the optimizer.
bool is_lost(const std::exception_ptr& failure, const optimizer_shards& shards) {
  return code_of(failure) == errc::unknown_function || was_started_again(shards);
}

/// Throws the error for a change whose outcome is unsure. The error has the code of `failure`, and its text begins with the
/// text of `failure`.
[[noreturn]] void throw_unsure(const std::exception_ptr& failure, const optimizer_shards& shards,
                               const std::string& what_to_do) {
  throw unsure_step(code_of(failure), support::text_of(failure) + (is_lost(failure, shards) ? make_anew : what_to_do));
}

}  // namespace

void optimizer_steps::require_settled(const context& pass, const char* who) {
  require_current(pass, who);
  // While a pass runs, some nodes would use the gradients of that pass and other nodes would not.
  if (pass.running())
    throw error(errc::misuse,
                std::string(who) + ": a backward pass of the context is still running; wait for its future (get) first");
  if (!pass.has_completed_pass())
    throw error(errc::misuse, std::string(who) +
                                ": no backward pass of the context has completed, so it has no gradients; run "
                                "context.backward(...).get() first");
}

std::optional<double> optimizer_steps::step(const context& pass, std::optional<double> clip_norm) {
  require_settled(pass, "optimizer::step");
  const auto record = nodes::visit(link_of(shards_.here()))->services().contexts.find(pass.id()).record;
  if (!record)
    throw error(errc::misuse, "optimizer::step: " + to_string(pass.id()) +
                                " is a context of another node than the optimizer's, '" + shards_.here().name() + "'");
  return step({pass.id(), record->passes().completed}, pass.gradients().get(), clip_norm);
}

std::optional<double> optimizer_steps::step(std::optional<double> clip_norm) { return step({}, nullptr, clip_norm); }

std::optional<double> optimizer_steps::step(const source& from, const engine::gradient_table* gradients,
                                            std::optional<double> clip_norm) {
  if (clip_norm && !(*clip_norm > 0))
    throw error(errc::misuse, "optimizer::step: clip_norm is " + number_text(*clip_norm) + ", expected a number above 0");
  shards_.expect_to_ask();
  const bool is_gathered = gradients == nullptr;
  if (unsure_ && !unsure_->is_load && unsure_->from == from && !(is_gathered && round_ != 0)) {
    const auto norm = unsure_->norm;
    make(gradients);
    return norm;
  }
  settle("optimizer::step");
  if (is_gathered && round_ == 0)
    throw error(errc::misuse,
                "optimizer::step: no context was gathered since the last step; call gather(context), or step(context)");
  std::optional<double> before;
  if (clip_norm) before = norm(gradients);
  const double scale = clip_norm ? std::min(1.0, *clip_norm / (*before + 1e-6)) : 1;
  const auto round = is_gathered ? std::exchange(round_, 0) : 0;
  unsure_ =
    unsure_change{.which = {next(), round, std::exchange(new_rates_, {})}, .from = from, .scale = scale, .norm = before};
  make(gradients);
  return before;
}

/// The norm of the gradients before a step. If it can't be computed there is no step, and gathered gradients are dropped.
double optimizer_steps::norm(const engine::gradient_table* gradients) {
  try {
    return shards_.norm(gradients);
  } catch (...) {
    if (gradients == nullptr) forget();
    throw;
  }
}

/// Makes the step of `unsure_` on each node that has not confirmed it.
void optimizer_steps::make(const engine::gradient_table* gradients) {
  auto& now = *unsure_;
  const auto all = shards_.ask(
    now.nodes,
    [&](const optimizer_shards::group&) {
      return requests::step{now.which, now.scale, gradients == nullptr};
    },
    [&] {
      auto& local = shards_.local();
      gradients ? local.step(*gradients, now.scale, now.which) : local.gathered_step(now.scale, now.which);
    });
  now.here = now.here || all.here;
  for (std::size_t g = 0; g < all.replies.size(); ++g)
    if (all.replies[g]) now.nodes.insert(g);
  if (!all.failure) return unsure_.reset();
  if (now.why.empty()) now.why = support::text_of(all.failure);
  throw_unsure(all.failure, shards_,
               gradients ? ". Whether every node has made the step is not known: step again with the same context, "
                           "or load a checkpoint"
                         : ". Whether every node has made the step is not known: step again, or load a checkpoint");
}

/// Asks each node that has not confirmed the step of `unsure_` whether that node has made the step. Returns whether every node
/// has made it. With `give_up`, a node that has not made the step will not make it later.
bool optimizer_steps::ask_for_made(bool give_up, const char* who) {
  auto& now = *unsure_;
  const auto all = shards_.ask(
    now.nodes,
    [&](const optimizer_shards::group&) {
      return requests::made{now.which.number, give_up};
    },
    [&] { now.here = now.here || shards_.local().has_made(now.which.number, give_up); });
  for (std::size_t g = 0; g < all.replies.size(); ++g)
    if (all.replies[g] && get<bool>(all.replies[g]->values, "made")) now.nodes.insert(g);
  if (all.failure) try {
      throw_unsure(all.failure, shards_, ". Try again when the node is up, or load a checkpoint");
    } catch (const unsure_step& failed) {
      throw unsure_step(failed.code(),
                        std::string(who) + ": whether every node has made the last step is not known: " + failed.what());
    }
  return now.here && now.nodes.size() == shards_.groups().size();
}

bool optimizer_steps::was_made_somewhere() const {
  const auto& counts = shards_.local().counts();
  const bool has_parameters = std::any_of(counts.begin(), counts.end(), [](std::size_t n) { return n > 0; });
  return !unsure_->nodes.empty() || (unsure_->here && has_parameters);
}

/// Finds out the outcome of the change in `unsure_`, if there is one. Throws unsure_step if the outcome stays unknown, or if
/// only some nodes have made the change.
void optimizer_steps::settle(const char* who) {
  if (!unsure_) return;
  if (unsure_->is_load) refuse(who);
  if (ask_for_made(false, who)) return unsure_.reset();
  if (unsure_->from == source{}) return make(nullptr);  // the nodes still have the gathered gradients
  if (was_made_somewhere()) refuse(who);
  const bool all = ask_for_made(true, who);
  if (!all && was_made_somewhere()) refuse(who);
  new_rates_.merge(unsure_->which.rates);  // keeps rates that were set after the step
  unsure_.reset();
}

void optimizer_steps::refuse(const char* who) const {
  const auto& now = *unsure_;
  if (now.is_load)
    throw unsure_step(errc::misuse, std::string(who) + ": some nodes have loaded a checkpoint and others have not (" + now.why +
                                      "); load again");
  std::string yes;
  std::string no;
  support::add_quoted(now.here ? yes : no, shards_.here().name());
  for (std::size_t g = 0; g < shards_.groups().size(); ++g)
    support::add_quoted(now.nodes.contains(g) ? yes : no, shards_.groups()[g].where.name());
  throw unsure_step(
    errc::misuse,
    std::string(who) + ": the last step was made on " + (yes.empty() ? "no node" : yes) + ", but not on " + no + " (" +
      now.why +
      "). Step with the context of that step, as long as it is open and no later pass has completed in it, or load a "
      "checkpoint");
}

void optimizer_steps::gather(const context& pass) {
  require_settled(pass, "optimizer::gather");
  settle("optimizer::gather");
  if (round_ == 0) round_ = next();
  try {
    shards_.everywhere(requests::gather{round_}, [&] { shards_.local().gather(*pass.gradients(), round_); });
  } catch (...) {
    forget();
    throw;
  }
}

/// Ends the round of gathered gradients. Nodes that can be reached drop their gathered gradients now; the other nodes drop them
/// when a later round begins.
void optimizer_steps::forget() noexcept {
  const auto round = std::exchange(round_, 0);
  try {
    shards_.everywhere(requests::forget{round}, [&] { shards_.local().forget_gathered(round); });
  } catch (const std::exception&) {
    // The caller reports the error that made it call forget().
  }
}

void optimizer_steps::set_rate(double rate, std::optional<std::size_t> group) {
  objects::check_learning_rate(rate);
  const auto count = shards_.parameter_groups();
  if (group && *group >= count)
    throw error(errc::misuse, "optimizer::set_learning_rate: there is no parameter group " + std::to_string(*group) +
                                "; there are " + std::to_string(count) + ", counted from 0");
  for (std::size_t g = group.value_or(0); g < (group ? *group + 1 : count); ++g) new_rates_[g] = rate;
}

void optimizer_steps::settle_all(const char* who) {
  settle(who);
  if (new_rates_.empty()) return;
  const objects::change which{.number = next(), .rates = new_rates_};
  shards_.everywhere(requests::set_rates{which}, [&] { shards_.local().set_learning_rates(which); });
  new_rates_.clear();
}

attributes optimizer_steps::load(const std::string& folder) {
  const auto number = next();
  bool applies = false;
  attributes about;
  try {
    about = optimizer_checkpoints(shards_, folder).load(number, applies);
  } catch (...) {
    const auto failure = std::current_exception();
    if (!applies && !is_lost(failure, shards_)) throw;
    if (applies) unsure_ = unsure_change{.which = {number}, .is_load = true, .why = support::text_of(failure)};
    throw_unsure(failure, shards_, ". Whether every node has loaded the checkpoint is not known: load again");
  }
  unsure_.reset();
  new_rates_.clear();
  round_ = 0;
  return about;
}

}  // namespace troupe
