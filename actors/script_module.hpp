// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/remote_module.hpp>

namespace torch::jit {
struct Module;
}

namespace troupe {

/// Sends a TorchScript module to the node as bytes, and makes a copy of the module there. No type has to be registered for the
/// module. A method gets the tensors of a call first, then its named values (numbers, flags, texts). It returns a tensor, a
/// tuple or list of tensors, or nothing. Blocks; throws troupe::error (misuse, with libtorch's text, if the module can't be
/// written or loaded; refused, if the node does not take scripts of other nodes). TorchScript is code: only a node with
/// settings::allow_scripts runs what its peers send.
remote_module create_script(const peer& where, const torch::jit::Module& script);

}  // namespace troupe
