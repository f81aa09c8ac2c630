// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/load_library_test.cpp
/// The module of `troupe bench` as a library, for `troupe node --load probe`.
#include <troupe/actors/library.hpp>

#include "apps/probe/probe_module.hpp"

TROUPE_LIBRARY(here) { troupe::apps::probe::add_type(here); }
