// SPDX-License-Identifier: BSD-3-Clause
/// A library with the encoder, for `troupe node --name stage --load libexample_modules.so`.
#include <troupe/actors/library.hpp>

#include "encoder.hpp"

TROUPE_LIBRARY(here) { add_encoder(here); }
