// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/guest.hpp>

#include <utility>

#include <troupe/engine/recv_backward.hpp>

namespace troupe::engine {

namespace {

thread_local guest* open_here = nullptr;

}  // namespace

guest* guest::current() noexcept { return open_here; }

guest_scope::guest_scope(guest* which) noexcept : outer_(std::exchange(open_here, which)) {}

guest_scope::~guest_scope() { open_here = outer_; }

recv_backward* as_recv(torch::autograd::Node& function, const guest* of) {
  if (auto* own = dynamic_cast<recv_backward*>(&function)) return own;
  return of != nullptr ? of->recv_of(function) : nullptr;
}

}  // namespace troupe::engine
