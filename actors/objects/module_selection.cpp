// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/module_selection.hpp>

#include <utility>

#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::objects {

at::Tensor find_parameter(module& of, const std::string& name) {
  std::string known;
  for (const auto& [each, parameter] : of.parameters()) {
    if (each == name) return parameter;
    support::add_quoted(known, each);
  }
  throw error(errc::misuse, "the module has no parameter '" + name + "'; it has " + (known.empty() ? "none" : known));
}

module_selection::module_selection(std::shared_ptr<module> whole, const std::vector<std::string>& names)
    : whole_(std::move(whole)) {
  for (const auto& name : names) parameters_.emplace_back(name, find_parameter(*whole_, name));
}

}  // namespace troupe::objects
