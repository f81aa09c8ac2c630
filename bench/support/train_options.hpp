// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

using words = std::vector<std::string>;

inline void add(words& to, const words& more) { to.insert(to.end(), more.begin(), more.end()); }

/// The size of a training, for `troupe train` and for calls/peers/torch_pipelining.py. `quick`: as small a model as possible.
inline words size_options(int steps, bool quick) {
  words all{"--steps", std::to_string(steps)};
  if (quick)
    add(all, {"--blocks", "2", "--width", "16", "--heads", "2", "--context", "16", "--batch", "8", "--micro-batches", "4"});
  return all;
}

/// Leaves out of `troupe train` what is not training: verification, samples, traces, checkpoints on the way.
inline words nothing_but_training() {
  return {"--verify-steps", "0", "--sample", "0", "--validate-every", "1000000", "--checkpoint-every", "1000000", "--no-trace"};
}

}  // namespace troupe::bench
