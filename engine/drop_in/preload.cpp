// SPDX-License-Identifier: BSD-3-Clause
// libtroupe_preload.so, for LD_PRELOAD in programs that were not built with troupe. The definitions of this library take
// precedence over libtorch's. The library is loaded before libtorch, also into processes that never load libtorch, and into
// processes with another C++ library. Therefore this library uses only the C library. The engine is in libtroupe.so in the same
// folder. libtroupe.so is loaded at the first call of a function that this file defines for libtorch.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstring>

#include <troupe/engine/drop_in/preload_entry.hpp>

#define LIBTORCH_EXECUTE "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_"
#define LIBTORCH_SET_COMPILED                                                                                           \
  "_ZN5torch8autograd6Engine21set_compiled_autogradEPFSt6vectorIN2at6TensorESaIS4_EERKSt10shared_ptrINS0_4NodeEERKNS0_" \
  "9GraphTaskEbRKS2_INS0_4EdgeESaISF_EEE"
#define LIBTORCH_CURRENT "_ZN5torch8autograd16get_current_nodeEv"

using troupe::preload::current_entry;
using troupe::preload::current_function;
using troupe::preload::engine_entry;
using troupe::preload::execute_function;
using troupe::preload::opaque_list;
using troupe::preload::opaque_pointer;

namespace {

using set_compiled_function = void (*)(void*);
using path = char[4096];

execute_function libtorchs_execute = nullptr;
set_compiled_function libtorchs_set_compiled = nullptr;
current_function libtorchs_current = nullptr;
engine_entry troupes_execute = nullptr;
current_entry troupes_current = nullptr;
bool is_compiled = false;  // compiled autograd is on: libtorch gives passes to the compiler
pthread_once_t loading = PTHREAD_ONCE_INIT;

/// Sets `hidden` to libtorch's own definition, which a definition in this file hides.
template <class Function>
void find(const char* name, Function& hidden) {
  void* const libtorch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  hidden = reinterpret_cast<Function>(libtorch == nullptr ? nullptr : dlsym(libtorch, name));
}

/// The path of `file`, relative to the folder of the library that contains `address`.
void beside(const void* address, const char* file, path& result) {
  Dl_info library{};
  dladdr(address, &library);
  const char* const name = library.dli_fname == nullptr ? "" : library.dli_fname;
  const char* const slash = std::strrchr(name, '/');
  std::snprintf(result, sizeof result, "%.*s%s", slash == nullptr ? 0 : static_cast<int>(slash - name + 1), name, file);
}

/// False if Python's package names another version than the one that libtroupe.so was built for.
bool is_known_version() {
  path name;
  beside(reinterpret_cast<const void*>(libtorchs_execute), "../version.py", name);
  std::FILE* const file = std::fopen(name, "r");
  if (file == nullptr) return true;
  bool known = true;
  for (char line[256]; std::fgets(line, sizeof line, file) != nullptr;) {
    constexpr char key[] = "__version__ = '";
    if (std::strncmp(line, key, sizeof key - 1) == 0) {
      known = std::strncmp(line + sizeof key - 1, TROUPE_TORCH_VERSION, sizeof TROUPE_TORCH_VERSION - 1) == 0;
      line[std::strcspn(line, "\n")] = 0;
      if (!known) {
        std::fprintf(
          stderr, "troupe: built for PyTorch " TROUPE_TORCH_VERSION ", but this one has %s: passes stay on its engine\n", line);
      }
    }
  }
  std::fclose(file);
  return known;
}

void load() {
  find(LIBTORCH_EXECUTE, libtorchs_execute);
  find(LIBTORCH_SET_COMPILED, libtorchs_set_compiled);
  find(LIBTORCH_CURRENT, libtorchs_current);
  if (!is_known_version()) return;
  path name;
  beside(reinterpret_cast<const void*>(&load), "libtroupe.so", name);
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    troupes_current = reinterpret_cast<current_entry>(dlsym(library, "troupe_preload_current_function"));
    troupes_execute = reinterpret_cast<engine_entry>(dlsym(library, "troupe_preload_entry"));
  }
  if (troupes_execute == nullptr || troupes_current == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps a text for each thread
    std::fprintf(stderr, "troupe: %s: passes stay on PyTorch's engine\n", why);
    troupes_execute = nullptr;
  }
}

}  // namespace

opaque_list execute(void* engine, const void* roots, const void* gradients, bool keep_graph, bool create_graph,
                    bool accumulate_grad, const void* inputs) __asm__(LIBTORCH_EXECUTE);

opaque_list execute(void* engine, const void* roots, const void* gradients, bool keep_graph, bool create_graph,
                    bool accumulate_grad, const void* inputs) {
  pthread_once(&loading, load);
  if (troupes_execute == nullptr || __atomic_load_n(&is_compiled, __ATOMIC_ACQUIRE))
    return libtorchs_execute(engine, roots, gradients, keep_graph, create_graph, accumulate_grad, inputs);
  return troupes_execute(libtorchs_execute, engine, roots, gradients, keep_graph, create_graph, accumulate_grad, inputs);
}

void set_compiled(void* compiler) __asm__(LIBTORCH_SET_COMPILED);

void set_compiled(void* compiler) {
  pthread_once(&loading, load);
  __atomic_store_n(&is_compiled, compiler != nullptr, __ATOMIC_RELEASE);
  libtorchs_set_compiled(compiler);
}

opaque_pointer current() __asm__(LIBTORCH_CURRENT);

opaque_pointer current() {
  pthread_once(&loading, load);
  return troupes_execute == nullptr ? libtorchs_current() : troupes_current(libtorchs_current);
}
