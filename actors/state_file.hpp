// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/script_module_test.cpp
#pragma once

#include <string>

#include <troupe/actors/module.hpp>

namespace troupe {

/// Writes tensors by name (remote_module::state(), say) to a file that Python reads: `model.load_state_dict(torch.load(path))`. The file
/// is there complete or not at all. Throws troupe::error (misuse for an undefined tensor and for a name that is there twice).
///   SX-1  the file is a plain dict of tensors: it has what torch.load takes with its default weights_only=True, and nothing else.
void save_state(const std::string& path, const named_tensors& state);

}  // namespace troupe
