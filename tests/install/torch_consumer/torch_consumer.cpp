// SPDX-License-Identifier: BSD-3-Clause
// A user's program of libtorch's C++ API and troupe. What it uses of troupe needs libprotobuf.
#include <cstdio>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

int main() {
  troupe::node here{troupe::settings{}};
  auto weight = at::arange(3, at::kFloat).set_requires_grad(true);
  troupe::context pass{here};
  pass.backward({(weight * weight).sum()}).get();
  auto right = at::equal(pass.gradient(weight), 2 * weight);
  std::printf("gradients %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
