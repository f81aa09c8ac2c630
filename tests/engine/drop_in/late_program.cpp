// SPDX-License-Identifier: BSD-3-Clause
// late_program LIBRARY [deepbind]: loads libtorch by way of LIBRARY, goes to another folder, and runs a pass.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* const library = argc < 2 ? nullptr : dlopen(argv[1], RTLD_NOW | (argc > 2 ? RTLD_DEEPBIND : 0));
  auto* const one_pass = library == nullptr ? nullptr : reinterpret_cast<bool (*)()>(dlsym(library, "one_pass"));
  if (one_pass == nullptr) {
    std::fprintf(stderr, "late_program: expected a library with one_pass(), got: %s\n", argc < 2 ? "none" : dlerror());
    return 2;
  }
  const bool right = chdir("/") == 0 && one_pass();
  std::printf("gradients %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
