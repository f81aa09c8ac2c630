// SPDX-License-Identifier: BSD-3-Clause
#include "apps/split/normal_numbers.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace troupe::apps::split {

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

}  // namespace troupe::apps::split
