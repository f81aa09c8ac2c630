// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/local_optimizer.hpp>

#include <cmath>
#include <limits>
#include <unordered_map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_values.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>
#include <torch/optim/optimizer.h>

#include <troupe/actors/objects/overwritable.hpp>
#include <troupe/actors/objects/random_state.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::objects {

namespace {

/// Empties `.grad` of the parameters for a step of libtorch's optimizer. The destructor puts the former gradients back.
class lent_gradients {
 public:
  explicit lent_gradients(named_tensors& parameters) : parameters_(parameters) {
    before_.reserve(parameters.size());
    for (auto& [name, parameter] : parameters) before_.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
  }
  ~lent_gradients() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].second.mutable_grad() = std::move(before_[i]);
  }
  lent_gradients(const lent_gradients&) = delete;
  lent_gradients& operator=(const lent_gradients&) = delete;

 private:
  named_tensors& parameters_;
  std::vector<at::Tensor> before_;
};

/// The sum of squares in double, as a tensor without dimensions on the device of the gradient.
at::Tensor sum_of_squares(const at::Tensor& gradient) {
  auto values = gradient.detach();
  if (values.is_sparse()) values = values.coalesce().values();
  if (values.is_complex()) values = at::view_as_real(values.resolve_conj());
  return values.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).square_().sum();
}

std::string describe(const at::Tensor& tensor) {
  classic_ostringstream text;
  text << tensor.sizes() << " " << tensor.scalar_type();
  return text.str();
}

/// Throws the error for a part that does not fit.
[[noreturn]] void misfit(const std::string& what) { throw error(errc::function_failed, what); }

std::string prefix_of(std::size_t module) { return std::to_string(module) + "/"; }

void check_leaves(const std::string& prefix, const named_tensors& parameters) {
  for (const auto& [name, parameter] : parameters)
    if (!parameter.defined() || !parameter.is_leaf())
      throw error(errc::misuse, "optimizer: parameter '" + prefix + name + "' is " +
                                  (parameter.defined() ? "not a leaf; give the module's own tensor" : "undefined"));
}

/// Throws unless the checkpoint's tensors have, one by one, the names, shapes and dtypes of the model's tensors, and all
/// tensors of the model can be overwritten.
void check_fit(const std::string& kind, const named_tensors& there, const named_tensors& here) {
  const auto common = std::min(there.size(), here.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto& [saved_name, saved] = there[i];
    const auto& [name, tensor] = here[i];
    if (saved_name != name)
      misfit("its " + kind + " " + std::to_string(i) + " is called '" + saved_name + "', the model's '" + name + "'");
    if (!saved.sizes().equals(tensor.sizes()) || saved.scalar_type() != tensor.scalar_type())
      misfit(kind + " '" + name + "' is " + describe(saved) + " there and " + describe(tensor) + " here");
    if (const auto* why = why_not_overwritable(tensor)) misfit(kind + " '" + name + "' here is " + why);
  }
  if (there.size() == here.size()) return;
  const bool more = there.size() > common;
  misfit("it has " + support::counted(there.size(), kind) + ", the model " + support::counted(here.size(), kind) + "; '" +
         (more ? there : here)[common].first + "' is only in " + (more ? "the checkpoint" : "the model"));
}

}  // namespace

local_optimizer::local_optimizer(const optimizer_settings& settings, std::vector<std::shared_ptr<module>> modules,
                                 const named_tensors& local, named_tensors local_buffers, const grouping& groups)
    : kind_(optimizer_kind::find(settings.type)), modules_(std::move(modules)), local_buffers_(std::move(local_buffers)) {
  distinct_tensors distinct("parameter");
  std::unordered_map<const void*, std::size_t> group_of;
  const auto add = [&](const std::string& prefix, const named_tensors& from, auto&& group_at) {
    check_leaves(prefix, from);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto [known, is_new] = group_of.emplace(from[i].second.unsafeGetTensorImpl(), group_at(i));
      if (known->second != group_at(i))
        throw error(errc::misuse, "optimizer: parameter '" + prefix + from[i].first + "' is in the parameter groups " +
                                    std::to_string(known->second) + " and " + std::to_string(group_at(i)) + "; give it to one");
    }
    counts_.push_back(distinct.add(prefix, from));
  };
  const auto group_in = [](const std::vector<std::size_t>& list, std::size_t i) { return list.empty() ? 0 : list.at(i); };
  for (std::size_t m = 0; m < modules_.size(); ++m)
    add(prefix_of(m), modules_[m]->parameters(), [&](std::size_t) { return group_in(groups.of_modules, m); });
  add("", local, [&](std::size_t i) { return group_in(groups.of_local, i); });
  parameters_ = distinct.take();
  buffers();  // refuses two buffers with the same name now, not at the first save

  std::vector<optimizer_kind::group> all;
  for (const auto& options : groups.options) all.push_back({{}, options});
  for (const auto& [name, parameter] : parameters_) {
    const auto group = group_of.at(parameter.unsafeGetTensorImpl());
    all.at(group).parameters.push_back(parameter);
    groups_.push_back(static_cast<std::int64_t>(group));
  }
  optimizer_ = kind_.make(std::move(all), settings.values);
}

named_tensors local_optimizer::buffers() const {
  distinct_tensors distinct("buffer");
  const auto add = [&](const std::string& prefix, named_tensors from) {
    std::erase_if(from, [](const auto& each) { return !each.second.defined(); });  // registered without a value
    distinct.add(prefix, from);
  };
  for (std::size_t i = 0; i < modules_.size(); ++i) add(prefix_of(i), modules_[i]->buffers());
  add("", local_buffers_);
  return distinct.take();
}

squared_norms local_optimizer::norms(const engine::gradient_table* of) const {
  checked_lock lock(mutex_);
  const auto& gradients = of != nullptr ? *of : gathered_.gradients;
  at::NoGradGuard no_grad;
  squared_norms result;
  result.sums.resize(parameters_.size());
  std::vector<std::pair<std::size_t, at::Tensor>> sums;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (auto gradient = gradients.find(parameters_[i].second); gradient.defined())
      sums.emplace_back(i, sum_of_squares(gradient));
  // item() waits for the device. So all sums are queued on the device before the first call of item().
  for (const auto& [i, sum] : sums) {
    result.sums[i] = sum.item<double>();
    if (!std::isfinite(result.sums[i]) && result.not_finite.empty()) result.not_finite = parameters_[i].first;
  }
  return result;
}

void local_optimizer::gather(const engine::gradient_table& gradients, std::uint64_t round) {
  checked_lock lock(mutex_);
  if (round < gathered_.round)
    throw error(errc::misuse, "optimizer: gradients for round " + std::to_string(round) + " came late, in round " +
                                std::to_string(gathered_.round) + "; they were dropped");
  if (round > gathered_.round) gathered_.gradients.clear();
  gathered_.round = round;
  at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters_) gathered_.gradients.accumulate(parameter, gradients.find(parameter));
}

void local_optimizer::forget_gathered(std::uint64_t round) noexcept {
  checked_lock lock(mutex_);
  if (round == 0 || round >= gathered_.round) gathered_.gradients.clear();
}

bool local_optimizer::has_made(std::uint64_t number, bool give_up) {
  checked_lock lock(mutex_);
  return changes_.has_made(number, give_up);
}

void local_optimizer::step(const engine::gradient_table& gradients, double scale, const change& which) {
  checked_lock lock(mutex_);
  if (changes_.is_due(which.number)) step_with(gradients, scale, which, nullptr);
}

void local_optimizer::gathered_step(double scale, const change& which) {
  checked_lock lock(mutex_);
  if (!changes_.is_due(which.number)) return;
  if (which.round != gathered_.round)
    throw error(errc::misuse, "optimizer: the gradients gathered here are of round " + std::to_string(gathered_.round) +
                                ", expected round " + std::to_string(which.round) + "; gather again");
  step_with(gathered_.gradients, scale, which, &gathered_.gradients);
}

/// `used`: the table that the step drops once it has changed a parameter; may be null.
void local_optimizer::step_with(const engine::gradient_table& gradients, double scale, const change& which,
                                engine::gradient_table* used) {
  check_rates(which.rates);
  at::NoGradGuard no_grad;
  lent_gradients lent(parameters_);
  for (auto& [name, parameter] : parameters_) {
    auto gradient = gradients.find(parameter);
    if (!gradient.defined()) continue;
    gradient = gradient.detach();
    parameter.mutable_grad() = scale == 1 ? gradient : gradient.mul(scale);
  }
  changes_.begin(which.number);
  take_rates(which.rates);
  if (used != nullptr) used->clear();
  optimizer_->step();
  changes_.made();
}

void check_learning_rate(double rate) {
  if (!std::isfinite(rate) || rate < 0)
    throw error(errc::misuse, "optimizer: the learning rate is " + number_text(rate) + ", expected a number of at least 0");
}

void local_optimizer::check_rates(const group_rates& rates) const {
  for (const auto& [group, rate] : rates) {
    check_learning_rate(rate);
    if (const auto count = optimizer_->param_groups().size(); group >= count)
      throw error(errc::misuse, "optimizer: there is no parameter group " + std::to_string(group) + "; there are " +
                                  std::to_string(count) + ", counted from 0");
  }
}

void local_optimizer::take_rates(const group_rates& rates) {
  for (const auto& [group, rate] : rates) kind_.set_options(*optimizer_, {{"lr", rate}}, group);
}

void local_optimizer::set_learning_rates(const change& which) {
  checked_lock lock(mutex_);
  check_rates(which.rates);
  if (!changes_.is_due(which.number)) return;
  changes_.begin(which.number);
  take_rates(which.rates);
  changes_.made();
}

checkpoint_part local_optimizer::part(const std::string& node, const std::string& save_id) const {
  checkpoint_part part{node, save_id, kind_.name(), kind_.options(*optimizer_), parameters_, {}};
  for (const auto& [name, parameter] : parameters_) part.states.push_back(kind_.state(*optimizer_, parameter));
  part.buffers = buffers();
  part.random = random_state();
  for (std::size_t g = 1; g < optimizer_->param_groups().size(); ++g) part.further.push_back(kind_.options(*optimizer_, g));
  if (!part.further.empty()) part.groups = groups_;
  return part;
}

std::uint64_t local_optimizer::estimated_bytes() const {
  checked_unique_lock lock(mutex_);
  const auto all = part({}, {});
  lock.unlock();  // shapes do not change
  return objects::estimated_bytes(all);
}

/// Throws if another thread makes or writes a snapshot.
std::unique_lock<std::mutex> local_optimizer::begin_writing() {
  std::unique_lock lock(writing_, std::try_to_lock);
  if (!lock)
    throw error(errc::function_failed, "optimizer: the part of an earlier save is still being written; save again later");
  return lock;
}

support::file_digest local_optimizer::snapshot(const std::string& node, const std::string& save_id) {
  const auto writing = begin_writing();
  checked_unique_lock lock(mutex_);
  parts_.outgoing = {};  // frees the memory of the snapshot before
  parts_.last_save = save_id;
  const auto bytes = part_bytes(part(node, save_id));
  parts_.outgoing = part_pieces::of(save_id, bytes);
  lock.unlock();
  return digest_of(bytes);
}

support::file_digest local_optimizer::write_snapshot(const support::file_location& location, const std::string& save_id) {
  const auto writing = begin_writing();
  const auto bytes = piece(save_id, 0, std::numeric_limits<std::uint64_t>::max());
  support::durable_file file(location);
  file.write(bytes.const_data_ptr(), bytes.nbytes());
  return file.commit();
}

at::Tensor local_optimizer::piece(const std::string& save_id, std::uint64_t offset, std::uint64_t size) const {
  checked_lock lock(mutex_);
  return parts_.outgoing.piece(save_id, offset, size);
}

bool local_optimizer::has_saved_last(const std::string& save_id) const {
  checked_lock lock(mutex_);
  return parts_.last_save == save_id;
}

void local_optimizer::receive(const std::string& save_id, std::uint64_t offset, std::uint64_t total, const at::Tensor& piece) {
  if (offset == 0) {
    constexpr std::uint64_t always_allowed = std::uint64_t{64} << 20;
    // A part of another optimizer has up to four times the bytes: the parameters, and three values for each.
    const auto most = always_allowed + 4 * estimated_bytes();
    if (total > most)
      throw support::refused_request("a part of " + std::to_string(total) +
                                     " bytes was announced, and a part of this model has at most " + std::to_string(most) +
                                     "; load a checkpoint of this model");
  }
  checked_lock lock(mutex_);
  parts_.incoming.receive(save_id, offset, total, piece);
}

void local_optimizer::stage_received(const std::string& path, const support::file_digest& digest, const std::string& save_id) {
  checked_unique_lock lock(mutex_);
  const auto bytes = parts_.incoming.take(save_id);
  lock.unlock();
  auto part = parse_part(bytes, path, digest, save_id);  // may take long, and changes nothing
  lock.lock();
  stage(path, std::move(part));
}

void local_optimizer::stage(const support::file_location& location, const support::file_digest& digest,
                            const std::string& save_id) {
  auto part = read_part(location, digest, save_id);
  checked_lock lock(mutex_);
  stage(location.text(), std::move(part));
}

void local_optimizer::stage(const std::string& path, checkpoint_part part) {
  const auto mine = buffers();
  try {
    check(part, mine);
  } catch (const error& reason) {
    throw error(reason.code(), "'" + path + "' is a checkpoint of another model: " + reason.what() + "; nothing was changed");
  }
  parts_.staged = std::move(part);
}

void local_optimizer::check(const checkpoint_part& part, const named_tensors& buffers) const {
  if (part.optimizer != kind_.name())
    misfit("it was written with optimizer '" + part.optimizer + "', this one is '" + kind_.name() + "'");
  check_fit("parameter", part.parameters, parameters_);
  if (const auto count = optimizer_->param_groups().size(); part.further.size() + 1 != count)
    misfit("it has " + support::counted(part.further.size() + 1, "parameter group") + ", this optimizer " +
           std::to_string(count));
  for (std::size_t i = 0; i < part.groups.size(); ++i)
    if (part.groups[i] != groups_[i])
      misfit("parameter '" + parameters_[i].first + "' is in parameter group " + std::to_string(part.groups[i]) +
             " there and in " + std::to_string(groups_[i]) + " here");
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    for (const auto& slot : part.states[i].slots)
      if (slot.defined() && !slot.sizes().equals(parameters_[i].second.sizes()))
        misfit("the optimizer's state of parameter '" + parameters_[i].first + "' is " + describe(slot) + ", the parameter " +
               describe(parameters_[i].second));
  check_fit("buffer", part.buffers, buffers);
}

/// The current buffers, checked again: a call may have replaced a buffer since stage().
named_tensors local_optimizer::buffers_for(const checkpoint_part& part) const {
  auto all = buffers();
  try {
    check(part, all);
  } catch (const error& reason) {
    throw error(reason.code(), std::string("the model changed after the checkpoint was read: ") + reason.what() +
                                 "; nothing was changed on this node, load again");
  }
  return all;
}

void local_optimizer::apply(const std::string& save_id, const change& which) {
  checked_lock lock(mutex_);
  if (which.number != 0 && which.number <= changes_.last())
    throw error(errc::misuse, "optimizer: change " + std::to_string(which.number) + " came late, after change " +
                                std::to_string(changes_.last()) + "; load again");
  if (!parts_.staged || parts_.staged->save != save_id)
    throw error(errc::misuse, "optimizer: nothing was read from save " + save_id + " that could be applied");
  auto part = *std::exchange(parts_.staged, std::nullopt);
  const auto buffers = buffers_for(part);
  at::NoGradGuard no_grad;
  changes_.begin(which.number);
  gathered_.gradients.clear();
  gathered_.round = which.number;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i].second;
    parameter.copy_(part.parameters[i].second);
    for (auto& slot : part.states[i].slots)
      if (slot.defined()) slot = slot.to(parameter.device());
    kind_.set_state(*optimizer_, parameter, std::move(part.states[i]));
  }
  kind_.set_options(*optimizer_, part.options);
  for (std::size_t g = 0; g < part.further.size(); ++g) kind_.set_options(*optimizer_, part.further[g], g + 1);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].second.copy_(part.buffers[i].second);
  if (part.random.defined()) set_random_state(part.random);
  changes_.made();
}

void local_optimizer::discard() noexcept {
  checked_lock lock(mutex_);
  parts_.staged.reset();
  parts_.outgoing = {};
  parts_.incoming = {};
}

}  // namespace troupe::objects
