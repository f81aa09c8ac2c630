// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/load_library_test.cpp
/// The stages of `troupe train` as a library, for `troupe node --load charlm`.
#include <troupe/actors/library.hpp>

#include "apps/charlm/stage_module.hpp"

TROUPE_LIBRARY(here) { troupe::apps::charlm::add_stage_type(here); }
