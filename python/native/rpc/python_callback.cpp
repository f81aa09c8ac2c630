// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/python_callback.hpp"

#include <dlfcn.h>

#include <new>
#include <stdexcept>

namespace torchtroupe {

namespace {

constexpr const char* table_of_callback = "_ZTVN5torch11distributed3rpc19RequestCallbackImplE";
constexpr std::size_t before_functions = 2;  // entries of such a table in front of the functions (Itanium C++ ABI)

}  // namespace

std::unique_ptr<torch::distributed::rpc::RequestCallback> make_python_callback() {
  void* const library = ::dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD);
  auto* const table = library == nullptr ? nullptr : static_cast<void**>(::dlsym(library, table_of_callback));
  if (table == nullptr)
    throw std::runtime_error(
      "torchtroupe: expected RequestCallbackImpl in the libtorch_python.so of this process, and found none");
  auto* const made = static_cast<void**>(::operator new(sizeof(void*)));
  *made = table + before_functions;
  return std::unique_ptr<torch::distributed::rpc::RequestCallback>(
    reinterpret_cast<torch::distributed::rpc::RequestCallback*>(made));
}

}  // namespace torchtroupe
