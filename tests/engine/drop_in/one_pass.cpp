// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

/// Whether a pass gives the right gradients.
extern "C" bool one_pass() {
  auto weight = at::arange(3, at::kFloat).set_requires_grad(true);
  (weight * weight).sum().backward();
  return at::equal(weight.grad(), 2 * weight);
}
