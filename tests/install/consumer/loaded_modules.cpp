// SPDX-License-Identifier: BSD-3-Clause
// A user's library for `troupe node --load`.
#include <cstdio>

#include <ATen/ATen.h>

#include <troupe/actors/library.hpp>

#include "own_messages.hpp"

TROUPE_LIBRARY(here) {
  here.functions().add("twice",
                       [](troupe::call_arguments& arguments) { return troupe::call_reply{{2 * arguments.tensor(0)}}; });
  std::printf("the library adds to node '%s', own messages %s\n", here.name().c_str(), own_messages());
}
