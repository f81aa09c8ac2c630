// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::engine {

class outlet;
class ready_queue;
struct recv_backward;

/// Makes an outlet that of the graph task that runs on this thread, until the end of the scope.
class outlet_scope {
 public:
  outlet_scope(outlet* to, const ready_queue& ready) noexcept;
  ~outlet_scope();
  outlet_scope(const outlet_scope&) = delete;
  outlet_scope& operator=(const outlet_scope&) = delete;

  /// Hands gradients to the outlet of this thread. Throws where there is none.
  static void emit(const recv_backward& from, std::vector<at::Tensor> gradients);

 private:
  outlet* to_;
  const ready_queue& ready_;
  outlet_scope* outer_;
};

}  // namespace troupe::engine
