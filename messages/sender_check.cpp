// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/sender_check.hpp>

#include <utility>

namespace troupe {

namespace {

thread_local sender_check* now = nullptr;

}  // namespace

reading_from::reading_from(sender_check* who) noexcept : before_(std::exchange(now, who)) {}
reading_from::~reading_from() { now = before_; }
sender_check* reading_from::current() noexcept { return now; }

}  // namespace troupe
