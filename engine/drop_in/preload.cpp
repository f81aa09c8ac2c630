// SPDX-License-Identifier: BSD-3-Clause
// libtroupe_preload.so, for LD_PRELOAD in programs that were not built with troupe. The definitions of this library take
// precedence over libtorch's. The library is loaded before libtorch, also into processes that never load libtorch, and into
// processes with another C++ library. Therefore this library uses only the C library. The engine is in libtroupe.so in the same
// folder. libtroupe.so is loaded at the first call of a function that this file defines in the place of libtorch.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <troupe/engine/drop_in/libtorch_names.hpp>
#include <troupe/engine/drop_in/preload_entry.hpp>

#define LIBTORCH_ENGINE_TABLE "_ZTVN5torch8autograd6EngineE"

using troupe::preload::buffers_entry;
using troupe::preload::buffers_function;
using troupe::preload::current_entry;
using troupe::preload::current_function;
using troupe::preload::engine_entry;
using troupe::preload::execute_function;
using troupe::preload::opaque_list;
using troupe::preload::opaque_pointer;

namespace {

using set_compiled_function = void (*)(void*);
using path = char[PATH_MAX];

execute_function libtorchs_execute = nullptr;
set_compiled_function libtorchs_set_compiled = nullptr;
current_function libtorchs_current = nullptr;
buffers_function libtorchs_buffers = nullptr;
engine_entry troupes_execute = nullptr;
current_entry troupes_current = nullptr;
buffers_entry troupes_buffers = nullptr;
bool was_asked = false;    // load() has run; if it failed, it has printed why
bool is_compiled = false;  // compiled autograd is on: libtorch gives passes to the compiler
pthread_once_t loading = PTHREAD_ONCE_INIT;
path own_path = "";

/// Keeps the path of this library as it is at the start. LD_PRELOAD may name a link, or a path relative to a folder that the
/// process leaves later.
__attribute__((constructor)) void keep_own_path() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&keep_own_path), &own) == 0 || realpath(own.dli_fname, own_path) == nullptr)
    own_path[0] = 0;
}

/// Sets `hidden` to libtorch's own definition, which a definition in this file hides.
template <class Function>
void find(const char* name, Function& hidden) {
  void* const libtorch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  hidden = reinterpret_cast<Function>(libtorch == nullptr ? nullptr : dlsym(libtorch, name));
}

/// Sets `result` to the path of `file`, which is relative to the folder of the library `name`.
void beside(const char* name, const char* file, path& result) {
  const char* const slash = std::strrchr(name, '/');
  std::snprintf(result, sizeof result, "%.*s%s", slash == nullptr ? 0 : static_cast<int>(slash - name + 1), name, file);
}

/// False if libtorch tells another version than the one that libtroupe.so was built for.
bool is_known_version() {
  std::uint64_t (*version)() = nullptr;
  find("aoti_torch_abi_version", version);
  const std::uint64_t found = version == nullptr ? 0 : version();
  if (found == TORCH_ABI_VERSION) return true;
  const auto part = [&](unsigned index) { return static_cast<unsigned>(found >> (56 - 8 * index) & 0xff); };
  char text[16] = "older";
  if (found != 0) std::snprintf(text, sizeof text, "%u.%u.%u", part(0), part(1), part(2));
  std::fprintf(stderr, "troupe: built for PyTorch " TORCH_VERSION ", but this one is %s: passes stay on its engine\n", text);
  return false;
}

void load() {
  was_asked = true;
  find(LIBTORCH_EXECUTE, libtorchs_execute);
  find(LIBTORCH_SET_COMPILED, libtorchs_set_compiled);
  find(LIBTORCH_CURRENT, libtorchs_current);
  find(LIBTORCH_BUFFERS, libtorchs_buffers);
  if (!is_known_version()) return;
  path name;
  beside(own_path, "libtroupe.so", name);
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    troupes_current = reinterpret_cast<current_entry>(dlsym(library, "troupe_preload_current_function"));
    troupes_buffers = reinterpret_cast<buffers_entry>(dlsym(library, "troupe_preload_gradient_buffers"));
    troupes_execute = reinterpret_cast<engine_entry>(dlsym(library, "troupe_preload_entry"));
  }
  if (troupes_execute == nullptr || troupes_current == nullptr || troupes_buffers == nullptr) {
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

opaque_list buffers(void* function) __asm__(LIBTORCH_BUFFERS);

opaque_list buffers(void* function) {
  pthread_once(&loading, load);
  return troupes_execute == nullptr ? libtorchs_buffers(function)
                                    : troupes_buffers(libtorchs_buffers, libtorchs_current, function);
}

namespace {

/// True if libtorch calls its own execute, not the execute of this file. Engine's table of virtual functions shows which of the
/// two is called.
bool is_hidden_from(void* libtorch) {
  const auto* const table = static_cast<void* const*>(dlsym(libtorch, LIBTORCH_ENGINE_TABLE));
  Dl_info library{};
  ElfW(Sym)* symbol = nullptr;
  if (table == nullptr || dladdr1(table, &library, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0) return false;
  for (std::size_t i = 0; symbol != nullptr && i < symbol->st_size / sizeof *table; ++i)
    if (table[i] == reinterpret_cast<void*>(&execute)) return false;
  return true;
}

/// If TROUPE_REPORT is set and libtorch was loaded, prints at the end of the process that no pass ran on troupe's engine. A
/// process that uses libtroupe.so gets the report of libtroupe.so instead.
__attribute__((destructor)) void report_no_pass() {
  if (troupes_execute != nullptr || std::getenv("TROUPE_REPORT") == nullptr) return;  // NOLINT(concurrency-mt-unsafe)
  void* const libtorch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  if (libtorch == nullptr) return;
  std::fprintf(stderr, "troupe: 0 backward passes%s\n",
               was_asked ? ": libtroupe.so is not used, as said above, and PyTorch's engine ran all passes"
               : is_hidden_from(libtorch)
                 ? ": libtorch was loaded with RTLD_DEEPBIND, which hides libtroupe_preload.so, and PyTorch's "
                   "engine ran all passes; call troupe_install_engine() of libtroupe.so instead"
                 : "");
}

}  // namespace
