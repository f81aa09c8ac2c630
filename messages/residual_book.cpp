// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/residual_book.hpp>

#include <iterator>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

namespace troupe {

namespace {

std::vector<std::int64_t> shape_of(const at::Tensor& tensor) {
  auto result = tensor.sizes().vec();
  result.insert(result.end(), tensor.strides().begin(), tensor.strides().end());
  return result;
}

}  // namespace

at::Tensor residual_book::take(const residual_key& key, const at::Tensor& gradient) {
  const auto shape = shape_of(gradient);
  checked_lock lock(mutex_);
  const auto found = found_.find(key);
  if (found == found_.end() || found->second->shape != shape || found->second->residual.device() != gradient.device())
    return {};
  auto result = found->second->residual;
  erase(found->second);
  return result;
}

void residual_book::give(const residual_key& key, const at::Tensor& gradient, at::Tensor residual) {
  auto shape = shape_of(gradient);
  checked_lock lock(mutex_);
  if (const auto found = found_.find(key); found != found_.end()) {
    if (found->second->shape == shape && found->second->residual.device() == residual.device()) {
      const at::NoGradGuard no_grad;
      residual.add_(found->second->residual);
    }
    erase(found->second);
  }
  if (bytes_ + residual.nbytes() > limit_) {
    TORCH_WARN_ONCE(
      "error feedback is incomplete: what rounding to int8 takes from gradients needs more than ", limit_,
      " bytes on this node, so some of it is dropped. Raise settings::feedback_limit (troupe node --feedback-limit), let fewer "
      "gradients travel as int8, or use bfloat16, which needs no feedback");
  }
  if (residual.nbytes() > limit_) return;
  while (bytes_ + residual.nbytes() > limit_) erase(all_.begin());
  bytes_ += residual.nbytes();
  all_.push_back({key, std::move(shape), std::move(residual)});
  found_[key] = std::prev(all_.end());
}

void residual_book::erase(entries::iterator which) {
  bytes_ -= which->residual.nbytes();
  found_.erase(which->key);
  all_.erase(which);
}

void residual_book::forget(node_id peer) {
  checked_lock lock(mutex_);
  for (auto each = all_.begin(); each != all_.end();) {
    const auto next = std::next(each);
    if (each->key.peer == peer) erase(each);
    each = next;
  }
}

std::uint64_t residual_book::bytes() const {
  checked_lock lock(mutex_);
  return bytes_;
}

std::uint64_t call_key_of(const std::string& label, std::uint64_t object, const program_place& place, bool is_of_results) {
  std::uint64_t hash = is_of_results ? 2 : 1;
  const auto mix = [&hash](std::uint64_t word) { hash = hash_words(hash, word); };
  for (const char c : label) mix(static_cast<unsigned char>(c));
  mix(object);
  for (std::size_t i = 1; i < place.size(); i += 2) mix(place[i]);
  return hash | 1;
}

}  // namespace troupe
