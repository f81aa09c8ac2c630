// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "apps/charlm/corpus.hpp"

namespace troupe::apps::charlm {

/// Mean loss, in nats a character, that a trigram model of the training text has on the validation blocks (all but the first
/// two characters of each): counts of three characters after those of two, `added` to each count.
double trigram_loss(const corpus& of, std::int64_t vocabulary_size, double added = 0.1);

}  // namespace troupe::apps::charlm
