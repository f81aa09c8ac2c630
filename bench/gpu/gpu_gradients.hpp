// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpu_device.hpp"
#include "gpu_report.hpp"
#include "../support/models.hpp"

namespace troupe::bench {

using named_models = std::vector<std::pair<std::string, model_graph (*)(c10::Device)>>;

/// The models of models.hpp.
named_models all_models();

/// Compares the gradients of troupe's engine with those of libtorch's engine, bit for bit: the models, each on one
/// stream; all models at once, each on a stream of its own; and random programs on one stream and on several.
/// A graph for which libtorch's engine does not repeat its own bits is skipped.
void compare_gradients(const gpu_device& where, const named_models& models, bool quick, gpu_report& report);

}  // namespace troupe::bench
