// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_groups_test.cpp
#pragma once

#include <vector>

#include <troupe/actors/module.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/messages/attributes.hpp>

namespace troupe {

/// Parameters of an optimizer that have options of their own, as in a parameter group of torch::optim. Some parameters of a
/// module make a group of their own by remote_module::select.
struct parameter_group {
  std::vector<remote_module> modules = {};
  named_tensors local = {};  // parameters of the node that makes the optimizer
  attributes options = {};   // that differ from optimizer_settings::values
};

}  // namespace troupe
