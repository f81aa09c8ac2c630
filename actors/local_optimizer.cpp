// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/local_optimizer.hpp>

#include <cmath>
#include <sstream>
#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_values.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>
#include <torch/optim/optimizer.h>

#include <troupe/messages/errors.hpp>

namespace troupe {

namespace {

/// Lends the parameters' `.grad` to libtorch's optimizer and gives it back.
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

/// In double whatever the dtype: a zero-dim tensor on the gradient's device.
at::Tensor sum_of_squares(const at::Tensor& gradient) {
  auto values = gradient.detach();
  if (values.is_sparse()) values = values.coalesce().values();
  if (values.is_complex()) values = at::view_as_real(values.resolve_conj());
  return values.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).square_().sum();
}

std::string describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes() << " " << tensor.scalar_type();
  return text.str();
}

[[noreturn]] void misfit(const std::string& path, const std::string& what) {
  throw error(errc::function_failed, "'" + path + "' is a checkpoint of another model: " + what + "; nothing was changed");
}

}  // namespace

local_optimizer::local_optimizer(const optimizer_settings& settings, std::vector<std::shared_ptr<module>> modules,
                                 named_tensors local)
    : kind_(optimizer_kind::find(settings.type)), modules_(std::move(modules)) {
  std::unordered_set<const void*> seen;
  std::unordered_set<std::string> names;
  const auto take = [&](const std::string& prefix, const named_tensors& from) {
    const auto before = parameters_.size();
    for (const auto& [name, parameter] : from) {
      if (!parameter.defined() || !parameter.is_leaf())
        throw error(errc::misuse, "optimizer: parameter '" + prefix + name + "' is " +
                                    (parameter.defined() ? "not a leaf; give the module's own tensor" : "undefined"));
      if (!names.insert(prefix + name).second)
        throw error(errc::misuse, "optimizer: two parameters are called '" + prefix + name + "'");
      if (seen.insert(parameter.unsafeGetTensorImpl()).second) parameters_.emplace_back(prefix + name, parameter);
    }
    counts_.push_back(parameters_.size() - before);
  };
  for (std::size_t i = 0; i < modules_.size(); ++i) take(std::to_string(i) + "/", modules_[i]->parameters());
  take("", local);

  std::vector<at::Tensor> tensors;
  for (const auto& [name, parameter] : parameters_) tensors.push_back(parameter);
  optimizer_ = kind_.make(std::move(tensors), settings.values);
}

local_optimizer::~local_optimizer() = default;

squared_norms local_optimizer::norms(const engine::gradient_table& gradients) const {
  std::lock_guard lock(mutex_);
  return norms_of(gradients);
}

squared_norms local_optimizer::gathered_norms() const {
  std::lock_guard lock(mutex_);
  return norms_of(gathered_);
}

squared_norms local_optimizer::norms_of(const engine::gradient_table& gradients) const {
  at::NoGradGuard no_grad;
  squared_norms result;
  result.sums.resize(parameters_.size());
  std::vector<std::pair<std::size_t, at::Tensor>> sums;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (auto gradient = gradients.find(parameters_[i].second); gradient.defined())
      sums.emplace_back(i, sum_of_squares(gradient));
  // Read only now, so that a device computes all of them before anyone waits.
  for (const auto& [i, sum] : sums) {
    result.sums[i] = sum.item<double>();
    if (!std::isfinite(result.sums[i]) && result.not_finite.empty()) result.not_finite = parameters_[i].first;
  }
  return result;
}

void local_optimizer::gather(const engine::gradient_table& gradients) {
  std::lock_guard lock(mutex_);
  at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters_) gathered_.accumulate(parameter, gradients.find(parameter));
}

void local_optimizer::forget_gathered() noexcept {
  std::lock_guard lock(mutex_);
  gathered_.clear();
}

void local_optimizer::step(const engine::gradient_table& gradients, double scale) {
  std::lock_guard lock(mutex_);
  step_with(gradients, scale);
}

void local_optimizer::gathered_step(double scale) {
  std::lock_guard lock(mutex_);
  const auto gradients = std::exchange(gathered_, {});
  step_with(gradients, scale);
}

void local_optimizer::step_with(const engine::gradient_table& gradients, double scale) {
  at::NoGradGuard no_grad;
  lent_gradients lent(parameters_);
  for (auto& [name, parameter] : parameters_) {
    auto gradient = gradients.find(parameter);
    if (!gradient.defined()) continue;
    gradient = gradient.detach();
    parameter.mutable_grad() = scale == 1 ? gradient : gradient.mul(scale);
  }
  optimizer_->step();
}

void check_learning_rate(double rate) {
  if (!std::isfinite(rate) || rate < 0)
    throw error(errc::misuse, "optimizer: the learning rate is " + std::to_string(rate) + ", expected a number from 0");
}

void local_optimizer::set_learning_rate(double rate) {
  check_learning_rate(rate);
  std::lock_guard lock(mutex_);
  kind_.set_options(*optimizer_, {{"lr", rate}});
}

file_digest local_optimizer::save(const std::string& path, const std::string& node, const std::string& save_id) const {
  std::lock_guard lock(mutex_);
  checkpoint_part part{node, save_id, kind_.name(), kind_.options(*optimizer_), parameters_, {}};
  for (const auto& [name, parameter] : parameters_) part.states.push_back(kind_.state(*optimizer_, parameter));
  return write_part(path, part);
}

void local_optimizer::stage(const std::string& path, const file_digest& digest, const std::string& save_id) {
  auto part = read_part(path, digest, save_id);
  std::lock_guard lock(mutex_);
  check(path, part);
  staged_ = std::move(part);
}

void local_optimizer::check(const std::string& path, const checkpoint_part& part) const {
  if (part.optimizer != kind_.name())
    misfit(path, "it was written with optimizer '" + part.optimizer + "', this one is '" + kind_.name() + "'");
  const auto common = std::min(part.parameters.size(), parameters_.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto& [saved_name, saved] = part.parameters[i];
    const auto& [name, parameter] = parameters_[i];
    if (saved_name != name)
      misfit(path, "its parameter " + std::to_string(i) + " is called '" + saved_name + "', the model's '" + name + "'");
    if (!saved.sizes().equals(parameter.sizes()) || saved.scalar_type() != parameter.scalar_type())
      misfit(path, "parameter '" + name + "' is " + describe(saved) + " there and " + describe(parameter) + " here");
    for (const auto& slot : part.states[i].slots)
      if (slot.defined() && !slot.sizes().equals(parameter.sizes()))
        misfit(path, "the optimizer's state of parameter '" + name + "' is " + describe(slot) + ", the parameter " +
                       describe(parameter));
  }
  if (part.parameters.size() != parameters_.size()) {
    const auto& longer = part.parameters.size() > common ? part.parameters : parameters_;
    misfit(path, "it has " + std::to_string(part.parameters.size()) + " parameters and the model " +
                   std::to_string(parameters_.size()) + "; '" + longer[common].first + "' is only in " +
                   (part.parameters.size() > common ? "the checkpoint" : "the model"));
  }
}

void local_optimizer::apply(const std::string& save_id) {
  std::lock_guard lock(mutex_);
  if (!staged_ || staged_->save != save_id)
    throw error(errc::misuse, "optimizer: nothing was read from save " + save_id + " that could be applied");
  auto part = *std::exchange(staged_, std::nullopt);
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i].second;
    parameter.copy_(part.parameters[i].second);
    for (auto& slot : part.states[i].slots)
      if (slot.defined()) slot = slot.to(parameter.device());
    kind_.set_state(*optimizer_, parameter, std::move(part.states[i]));
  }
  kind_.set_options(*optimizer_, part.options);
}

void local_optimizer::discard() noexcept {
  std::lock_guard lock(mutex_);
  staged_.reset();
}

}  // namespace troupe
