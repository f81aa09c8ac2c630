// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/remote_module.hpp>

namespace torch::jit {
struct Module;
}

namespace troupe {

/// Sends a TorchScript module to the node as bytes: a copy runs there, where no type was registered. Its methods are called
/// with tensors first and named values (numbers, flags, texts) after; they give a tensor, a tuple or list of tensors, or
/// nothing. Blocks; throws troupe::error (function_failed with libtorch's text where it can't be loaded). TorchScript is code:
/// a node runs what its peers send.
remote_module create_script(const peer& where, const torch::jit::Module& script);

}  // namespace troupe
