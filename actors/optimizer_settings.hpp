// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <troupe/messages/attributes.hpp>

namespace troupe {

/// Which libtorch optimizer runs on every node ("sgd", "adam", "adamw" or "adagrad"), and its options. Unknown names are
/// refused.
///   sgd          lr, momentum, dampening, weight_decay, nesterov
///   adam, adamw  lr, beta1, beta2, eps, weight_decay, amsgrad
///   adagrad      lr, lr_decay, weight_decay, initial_accumulator_value, eps
/// An option that is not given has libtorch's default (lr: 1e-3, for adagrad 1e-2).
struct optimizer_settings {
  std::string type = "adamw";
  attributes values;
};

}  // namespace troupe
