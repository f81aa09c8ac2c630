// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/attributes.hpp>

#include "apps/charlm/recipe.hpp"

namespace troupe::apps::charlm {

/// The values that a checkpoint stores about its run, besides the tensors. With them, a continued run makes exactly the steps
/// that a run without interruption makes. Random draws need no value here, because they depend only on the seed and the step.
struct run_state {
  model_shape shape;
  recipe how;
  std::string run;  // names the run in folders that several runs may use: 16 hexadecimal digits
  std::int64_t stages = 2;
  std::string nodes;               // the nodes that hold the stages, in order, separated by commas
  std::string text_origin;         // file or folder
  std::string text_fingerprint;    // text::fingerprint
  std::string characters;          // characters of the vocabulary, in UTF-8
  std::int64_t step = 0;           // steps done
  double seconds = 0;              // of training so far
  double planned_seconds = 0;      // for the whole run, if its length is given as a time
  std::int64_t planned_steps = 0;  // for the whole run, if its length is given in steps

  attributes to_attributes() const;
  /// Throws if the attributes are not those of a run; `origin` names the checkpoint.
  static run_state from_attributes(const attributes& values, const std::string& origin);

  /// As from_attributes(), for a run that goes on. Throws also if an older version made the checkpoint and summed gradients in
  /// another order, because the run would go on with other bits.
  static run_state to_continue(const attributes& values, const std::string& origin);

  /// The part of the run that is done, 0 to 1.
  double fraction() const;
  bool finished() const { return fraction() >= 1; }
};

}  // namespace troupe::apps::charlm
