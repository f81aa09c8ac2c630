// SPDX-License-Identifier: BSD-3-Clause
// A libtorch of version OTHER_VERSION (0: too old to tell), which has nothing but what libtroupe_preload.so asks for.
#include <dlfcn.h>

#include <cstdint>

#include <troupe/engine/drop_in/libtorch_names.hpp>

namespace {
bool was_set = false;
}

#if OTHER_VERSION
extern "C" std::uint64_t aoti_torch_abi_version() { return OTHER_VERSION; }
#endif

void set_compiled(void*) __asm__(LIBTORCH_SET_COMPILED);
void set_compiled(void*) { was_set = true; }

/// Whether a call through the preloaded library comes to this libtorch.
extern "C" bool one_pass() {
  reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, LIBTORCH_SET_COMPILED))(nullptr);
  return was_set;
}
