// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/guest_pass.hpp>

#include <utility>

namespace troupe::passes {

void guest_source::set(guest_maker make, std::shared_ptr<void> whole) {
  kept_ = std::make_shared<const kept>(kept{std::move(make), std::move(whole)});
}

std::shared_ptr<void> guest_source::take_whole() {
  const auto taken = kept_.exchange(nullptr);
  return taken ? taken->whole : nullptr;
}

std::shared_ptr<guest_pass> guest_source::next() const {
  const auto now = kept_.load();
  return now && now->make ? now->make() : nullptr;
}

}  // namespace troupe::passes
