// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/read_errors.hpp>

#include <algorithm>
#include <deque>
#include <new>
#include <utility>

#include <caf/message_id.hpp>

namespace troupe {

namespace {

struct read_error {
  message_key which;
  caf::error why;
};

std::deque<read_error>& kept() {
  thread_local std::deque<read_error> all;
  return all;
}

}  // namespace

void keep_read_error(caf::error why) noexcept {
  const auto which = reading_from::message();
  if (caf::make_message_id(which.message).is_response()) return;
  auto& all = kept();
  if (all.size() == most_read_errors) all.pop_front();
  try {
    all.push_back({which, std::move(why)});
  } catch (const std::bad_alloc&) {
    // The error is lost. The receiver answers without a reason.
  }
}

caf::error take_read_error(message_key which) noexcept {
  auto& all = kept();
  const auto found = std::find_if(all.begin(), all.end(), [&](const read_error& each) { return each.which == which; });
  if (found == all.end()) return {};
  auto result = std::move(found->why);
  all.erase(found);
  return result;
}

}  // namespace troupe
