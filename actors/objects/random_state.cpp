// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/random_state.hpp>

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>

namespace troupe::objects {

at::Tensor random_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

void check_random_state(const at::Tensor& state) { at::detail::createCPUGenerator().set_state(state); }

}  // namespace troupe::objects
