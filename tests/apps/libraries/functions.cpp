// SPDX-License-Identifier: BSD-3-Clause
// A library of functions for tests: one computes, one writes a file where the node may write.
#include <fstream>

#include <ATen/ATen.h>

#include <troupe/actors/library.hpp>

TROUPE_LIBRARY(here) {
  here.functions().add("twice",
                       [](troupe::call_arguments& arguments) { return troupe::call_reply{{2 * arguments.tensor(0)}}; });
  here.functions().add("write", [](troupe::call_arguments& arguments) {
    const auto path = arguments.here.data_path(troupe::get<std::string>(arguments.values, "path"));
    std::ofstream(path) << "written\n";
    return troupe::call_reply{{}, {{"path", path}}};
  });
}
