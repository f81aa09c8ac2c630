// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/sender_check.hpp>

#include <utility>

namespace troupe {

namespace {

thread_local sender_check* now = nullptr;
thread_local message_key message_now;

}  // namespace

reading_from::reading_from(sender_check* who, message_key which) noexcept
    : before_(std::exchange(now, who)), message_before_(std::exchange(message_now, which)) {}
reading_from::~reading_from() {
  now = before_;
  message_now = message_before_;
}
sender_check* reading_from::current() noexcept { return now; }
message_key reading_from::message() noexcept { return message_now; }

}  // namespace troupe
