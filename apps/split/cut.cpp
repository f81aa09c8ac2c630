// SPDX-License-Identifier: BSD-3-Clause
#include "apps/split/cut.hpp"

#include <atomic>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <troupe/messages/errors.hpp>

namespace troupe::apps::split {

namespace {

at::Tensor shield(const at::Tensor& rows, const cut_options& how, const normal_numbers& random) {
  auto result = rows;
  if (how.clip > 0) {
    const auto norms = rows.detach().norm(2, 1, true);
    result = result * (how.clip / norms.clamp_min(how.clip));
  }
  if (how.noise > 0) {
    result = result + how.noise * how.clip * random.draw(rows.sizes()).to(rows.scalar_type());
  }
  return result;
}

}  // namespace

normal_numbers::normal_numbers(std::optional<std::uint64_t> seed) {
  if (seed)
    seeded_ = at::make_generator<at::CPUGeneratorImpl>(*seed);
  else
    system_ = std::make_shared<std::random_device>("/dev/urandom");
}

at::Tensor normal_numbers::draw(at::IntArrayRef sizes) const {
  if (seeded_.defined()) return at::randn(sizes, seeded_);
  auto result = at::empty(sizes, at::kFloat);
  std::normal_distribution<double> normal;
  for (auto *each = result.mutable_data_ptr<float>(), *end = each + result.numel(); each != end; ++each)
    *each = static_cast<float>(normal(*system_));
  return result;
}

cut::cut(cut_options how, std::optional<std::uint64_t> seed) : how_(how), random_(seed) {
  if (how.noise > 0 && how.clip <= 0)
    throw error(errc::misuse,
                "noise at the cut without clipping hides nothing: rows of any size would outweigh it; give a clip, too");
}

at::Tensor cut::shielded(const at::Tensor& rows) { return shield(rows, how_, random_); }

at::Tensor cut::with_shielded_gradient(const at::Tensor& rows) {
  if (!rows.requires_grad() || (how_.clip <= 0 && how_.noise <= 0)) return rows;
  auto result = rows.view_as(rows);
  // The hook copies random_; both draw from the same source.
  auto is_given = std::make_shared<std::atomic<bool>>(false);
  result.register_hook([how = how_, random = random_, is_given = std::move(is_given)](const at::Tensor& gradient) {
    if (how.noise > 0 && is_given->exchange(true))
      throw error(errc::refused, "the gradient of these rows was given before; with noise it is given once for each call");
    return shield(gradient, how, random);
  });
  return result;
}

}  // namespace troupe::apps::split
