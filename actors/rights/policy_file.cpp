// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/rights/policy_file.hpp>

#include <utility>

namespace troupe::rights {

policy_file::policy_file(std::string path) : path_(std::move(path)) { read_again(); }

bool policy_file::read_again() {
  const std::lock_guard lock(mutex_);
  auto text = policy::text_of(path_);
  auto known = read_.find(text);
  if (known == read_.end()) {
    auto made = policy::parse(text, path_);
    known = read_.emplace(std::move(text), std::move(made)).first;
  }
  return now_.exchange(&known->second, std::memory_order_acq_rel) != &known->second;
}

}  // namespace troupe::rights
