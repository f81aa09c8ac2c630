// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/objects/local_optimizer_test.cpp
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>

#include <troupe/actors/module.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::objects {

/// A list of tensors of several owners: each tensor is listed once, and no two tensors have the same name.
class distinct_tensors {
 public:
  explicit distinct_tensors(const char* kind) : kind_(kind) {}

  /// Adds tensors. Returns how many of them are new.
  std::size_t add(const std::string& prefix, const named_tensors& from) {
    const auto before = all_.size();
    for (const auto& [name, tensor] : from) {
      if (!names_.insert(prefix + name).second)
        throw error(errc::misuse, std::string("optimizer: two ") + kind_ + "s are called '" + prefix + name + "'");
      if (seen_.insert(tensor.unsafeGetTensorImpl()).second) all_.emplace_back(prefix + name, tensor);
    }
    return all_.size() - before;
  }
  named_tensors take() { return std::move(all_); }

 private:
  const char* kind_;
  named_tensors all_;
  std::unordered_set<const void*> seen_;
  std::unordered_set<std::string> names_;
};

}  // namespace troupe::objects
