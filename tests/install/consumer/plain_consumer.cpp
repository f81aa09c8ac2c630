// SPDX-License-Identifier: BSD-3-Clause
// A program that knows libtorch alone. It runs one backward pass, and prints whether the process has loaded one libtorch or
// several.
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include <ATen/ATen.h>

int main() {
  auto weight = at::arange(3, at::kFloat).set_requires_grad(true);
  (weight * weight).sum().backward();
  std::set<std::string> libtorchs;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/libtorch_cpu.so") != std::string::npos) libtorchs.insert(line.substr(line.find('/')));
  auto right = at::equal(weight.grad(), 2 * weight);
  std::printf("gradients %s, %s\n", right ? "right" : "wrong", libtorchs.size() == 1 ? "one libtorch" : "several libtorchs");
  return right ? 0 : 1;
}
