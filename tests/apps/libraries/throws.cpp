// SPDX-License-Identifier: BSD-3-Clause
// A library whose function throws: the name is taken.
#include <ATen/ATen.h>

#include <troupe/actors/library.hpp>

TROUPE_LIBRARY(here) {
  here.functions().add("double",
                       [](troupe::call_arguments& arguments) { return troupe::call_reply{{2 * arguments.tensor(0)}}; });
  here.functions().add("double", [](troupe::call_arguments&) { return troupe::call_reply{}; });
}
