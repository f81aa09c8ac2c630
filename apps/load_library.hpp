// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

class node;

}  // namespace troupe

namespace troupe::apps {

/// Adds the functions and modules of a shared library (troupe/actors/library.hpp) to the node. The library stays loaded until the
/// process ends. A name without a slash is a file of the working folder, or is searched where the system searches libraries.
///   LB-1  every failure throws std::runtime_error. Its text names the file, what was expected, what came and what to do. A
///         failure is one of these: the file is missing, the file is no library, the library uses a symbol that nothing defines, the
///         exported function is missing, the library was built with another troupe, or the function throws.
///   LB-2  the function of a library that was built with another troupe, libtorch or CAF adds nothing.
void load_library(node& here, const std::string& file);

}  // namespace troupe::apps
