// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/attributes.hpp>

#include "apps/charlm/model_shape.hpp"
#include "apps/charlm/recipe.hpp"

namespace troupe::apps::charlm {

/// What a checkpoint says of its run beside the tensors: enough to go on with exactly the steps that would have come.
/// (What is drawn at random depends on the seed and the step alone.)
struct run_state {
  model_shape shape;
  recipe how;
  std::int64_t stages = 2;
  std::string nodes;               // that hold the stages, in order, with commas between
  std::string text_origin;         // file or folder
  std::string text_fingerprint;    // text::fingerprint
  std::string characters;          // of the vocabulary, UTF-8
  std::int64_t step = 0;           // done
  double seconds = 0;              // trained so far
  double planned_seconds = 0;      // of the whole run, if it is bounded by time
  std::int64_t planned_steps = 0;  // otherwise

  attributes to_attributes() const;
  /// Throws for attributes that are not those of a run; `origin` names the checkpoint.
  static run_state from_attributes(const attributes& values, const std::string& origin);

  /// Of the run, 0 to 1.
  double fraction() const;
  bool finished() const { return fraction() >= 1; }
};

}  // namespace troupe::apps::charlm
