// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <troupe/messages/attributes.hpp>

namespace troupe {

/// What an optimizer does on every node: libtorch's own "sgd", "adam", "adamw" or "adagrad", and its options. Unknown names are
/// refused.
///   sgd          lr, momentum, dampening, weight_decay, nesterov
///   adam, adamw  lr, beta1, beta2, eps, weight_decay, amsgrad
///   adagrad      lr, lr_decay, weight_decay, initial_accumulator_value, eps
/// An option that is not given is libtorch's default (lr is 1e-3, 1e-2 for adagrad).
struct optimizer_settings {
  std::string type = "adamw";
  attributes values;
};

}  // namespace troupe
