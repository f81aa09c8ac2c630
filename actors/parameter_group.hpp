// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_groups_test.cpp
#pragma once

#include <vector>

#include <troupe/actors/module.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/messages/attributes.hpp>

namespace troupe {

/// Parameters of an optimizer that have options of their own, as in a parameter group of torch::optim. remote_module::select()
/// gives a handle of some parameters of a module, for a group of their own.
struct parameter_group {
  std::vector<remote_module> modules = {};
  named_tensors local = {};  // parameters of the node that makes the optimizer
  attributes options = {};   // options that differ from optimizer_settings::values
};

}  // namespace troupe
