// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "apps/charlm/corpus.hpp"

namespace troupe::apps::charlm {

/// The mean loss, in nats per character, of a trigram model of the training text on the validation blocks (without the first
/// two characters of each block). The model counts which character follows each two characters; `added` is added to each
/// count.
double trigram_loss(const corpus& of, std::int64_t vocabulary_size, double added = 0.1);

}  // namespace troupe::apps::charlm
