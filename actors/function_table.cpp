// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/function_table.hpp>

#include <algorithm>

#include <troupe/actors/support/texts.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

std::shared_ptr<const engine::gradient_table> no_gradients() noexcept {
  static const engine::gradient_table none;
  return {std::shared_ptr<const void>(), &none};
}

at::Tensor call_arguments::tensor(std::size_t index) const {
  if (index >= tensors.size()) throw support::missing_tensor(index, tensors.size(), "'" + called + "' expected");
  return tensors[index];
}

at::Tensor call_reply::tensor(std::size_t index) const {
  if (index >= tensors.size()) throw support::missing_tensor(index, tensors.size(), "expected a reply of");
  return tensors[index];
}

void function_table::add(std::string name, function run) {
  if (name.empty()) throw error(errc::misuse, "function_table: a function needs a name");
  if (!run) throw error(errc::misuse, "function_table: '" + name + "' is an empty std::function");
  checked_lock lock(mutex_);
  if (auto [entry, fresh] = functions_.try_emplace(std::move(name), std::move(run)); !fresh)
    throw error(errc::misuse, "function_table: the name '" + entry->first + "' is taken");
}

function function_table::find(const std::string& name) const {
  {
    checked_lock lock(mutex_);
    if (auto entry = functions_.find(name); entry != functions_.end()) return entry->second;
  }
  std::string there;
  for (const auto& known : names()) there += (there.empty() ? "" : ", ") + known;
  throw error(errc::unknown_function,
              "no function '" + name + "' is registered; there are: " + (there.empty() ? "none" : there));
}

std::vector<std::string> function_table::names() const {
  std::vector<std::string> result;
  {
    checked_lock lock(mutex_);
    result.reserve(functions_.size());
    for (const auto& [name, run] : functions_) result.push_back(name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace troupe
