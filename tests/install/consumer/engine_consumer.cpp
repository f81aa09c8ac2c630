// SPDX-License-Identifier: BSD-3-Clause
// A user's program: one backward pass on this thread, without any actor.
#include <cstdio>

#include <ATen/ATen.h>

#include <troupe/engine/backward.hpp>

int main() {
  auto weight = at::arange(3, at::kFloat).set_requires_grad(true);
  troupe::backward({(weight * weight).sum()});
  auto right = at::equal(weight.grad(), 2 * weight);
  std::printf("gradients %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
