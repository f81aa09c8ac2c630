// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/load_library_test.cpp
#pragma once

#include <cstring>

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>

/// Libraries of functions and modules that `troupe node --load libmine.so` adds to its node. Such a library links the CMake
/// target `troupe::loadable` and has one source with
/// ```cpp
/// TROUPE_LIBRARY(here) { troupe::add_module_type(here, "encoder", ...); }
/// ```
/// The library does not contain troupe: it uses the troupe of the program. So the library has to be built with the headers of
/// the same troupe, libtorch and CAF. TROUPE_INTERFACE names these versions (the target troupe::loadable defines it).
namespace troupe {

/// The function that a library exports. `program` is the TROUPE_INTERFACE of the program. Returns the TROUPE_INTERFACE of the
/// library. If the two are equal, the function adds the library's functions and modules to the node; otherwise it adds nothing.
/// The program reports exceptions of the function to its user.
using library_entry = const char*(const char* program, node* here);

/// The name under which the program looks for the function.
inline constexpr const char* library_entry_name = "troupe_library";

}  // namespace troupe

/// Defines the function that a library exports, and begins its body. `here` names the node (troupe::node&).
#define TROUPE_LIBRARY(here)                                                                                              \
  static void troupe_add_to_node(troupe::node& here);                                                                     \
  extern "C" __attribute__((visibility("default"))) const char* troupe_library(const char* program, troupe::node* node) { \
    if (std::strcmp(program, TROUPE_INTERFACE) == 0) troupe_add_to_node(*node);                                           \
    return TROUPE_INTERFACE;                                                                                              \
  }                                                                                                                       \
  static void troupe_add_to_node(troupe::node& here)
