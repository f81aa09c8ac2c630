// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/guest.hpp>

#include <troupe/engine/recv_backward.hpp>

namespace troupe::engine {

recv_backward* as_recv(torch::autograd::Node& function, const guest* of) {
  if (auto* own = dynamic_cast<recv_backward*>(&function)) return own;
  return of != nullptr ? of->recv_of(function) : nullptr;
}

}  // namespace troupe::engine
