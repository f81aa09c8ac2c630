// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/script_module_test.cpp
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include <troupe/actors/module.hpp>

namespace troupe::objects {

/// Loads the TorchScript module that create_script sent as bytes, a uint8 tensor of one dimension. Throws troupe::error
/// (misuse) for any other tensor, and for bytes that libtorch can't load.
std::shared_ptr<module> load_script(const at::Tensor& bytes);

}  // namespace troupe::objects
