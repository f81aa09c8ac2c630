// SPDX-License-Identifier: BSD-3-Clause
// A user's program: a node, and a backward pass in a context.
#include <dlfcn.h>

#include <cstdio>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "own_messages.hpp"

int main() {
  troupe::node here{troupe::settings{}};
  auto weight = at::arange(3, at::kFloat).set_requires_grad(true);
  troupe::context pass{here};
  pass.backward({(weight * weight).sum()}).get();
  auto right = at::equal(pass.gradient(weight), 2 * weight);
  std::printf("gradients %s\n", right ? "right" : "wrong");
  std::printf("own messages %s\n", own_messages());
  std::printf("kernels %s\n", dlopen("libtroupe_cuda.so", RTLD_NOW) == nullptr ? dlerror() : "found");
  return right ? 0 : 1;
}
