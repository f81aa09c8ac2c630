// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/guest_pass.hpp>

#include <utility>

namespace troupe::passes {

void guest_source::set(guest_maker make, std::shared_ptr<void> whole) {
  const checked_lock lock(mutex_);
  make_ = std::move(make);
  whole_ = std::move(whole);
}

std::shared_ptr<void> guest_source::take_whole() {
  const checked_lock lock(mutex_);
  return std::exchange(whole_, nullptr);
}

std::shared_ptr<guest_pass> guest_source::next() const {
  guest_maker make;
  {
    const checked_lock lock(mutex_);
    make = make_;
  }
  return make ? make() : nullptr;
}

}  // namespace troupe::passes
