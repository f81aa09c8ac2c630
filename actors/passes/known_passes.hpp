// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/passes/context_record_test.cpp
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <boost/container/flat_set.hpp>

#include <troupe/messages/ids.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::passes {

/// What a node knows of the passes of a context.
struct known_passes {
  using numbers = boost::container::flat_set<pass_number>;

  pass_number completed;                  // the last pass known to be complete
  std::shared_ptr<const numbers> failed;  // passes known to have failed, here or on the node that began them; null: none
  pass_number current;                    // the last pass that this node began or heard of
  pass_number running;                    // the running pass that was started here; 0: none
  bool has_gradients = false;             // whether some pass may have left gradients on this node
  bool is_gathering = false;              // whether gradients of a task from context_record::next_to_gather() are not added yet

  static constexpr std::uint64_t longest_leap = 65'536;

  bool is_running() const noexcept { return running != pass_number{}; }
  /// Whether a pass with this number may have begun, as far as this node can tell. Assumes that this node has missed at most
  /// `longest_leap` passes in a row.
  bool is_possible(pass_number number) const noexcept {
    const auto known = std::max(current, completed).value;
    return number.value <= known || number.value - known <= longest_leap;
  }
  bool has_failed(pass_number number) const { return failed && failed->contains(number); }
  std::size_t count_failed() const { return failed ? failed->size() : 0; }
  /// Adds failed passes. Copies that were made of this object before do not get these passes.
  void add_failed(const std::vector<pass_number>& those) {
    auto all = failed ? *failed : numbers();
    all.insert(those.begin(), those.end());
    failed = std::make_shared<const numbers>(std::move(all));
  }
  /// Returns how many of the passes in `of_failed` are not in `failed`.
  std::size_t count_news(const std::vector<pass_number>& of_failed) const {
    return static_cast<std::size_t>(
      std::count_if(of_failed.begin(), of_failed.end(), [this](pass_number each) { return !has_failed(each); }));
  }
  std::vector<pass_number> list_failed() const {
    return failed ? std::vector<pass_number>{failed->begin(), failed->end()} : std::vector<pass_number>{};
  }
  /// Fills in the request's fields about the passes of the context.
  void brief(call_request& request) const {
    request.completed = completed;
    request.failed = list_failed();
  }
};

}  // namespace troupe::passes
