// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/state_file_test.cpp
#pragma once

#include <string>

#include <troupe/actors/module.hpp>

namespace troupe {

/// Writes tensors by name (remote_module::state(), say) to a file in the format safetensors, which Python reads:
/// `model.load_state_dict(safetensors.torch.load_file(path))`. Throws troupe::error: misuse for a tensor that the format can't
/// hold and for a name that occurs twice.
///   SX-1  the file appears complete or not at all.
void save_state(const std::string& path, const named_tensors& state);

/// Reads the tensors of a safetensors file, of any program, for remote_module::set_state() and set_parameters(). A part of a
/// checkpoint is such a file too: its tensors of the optimizer's state have names that begin with "troupe:". Throws
/// troupe::error with the file and the reason.
named_tensors load_state(const std::string& path);

}  // namespace troupe
