// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/trailing_elements.hpp>

#include <utility>

#include <troupe/messages/expect.hpp>

namespace troupe {

namespace {

thread_local trailing_elements* written_to = nullptr;
thread_local const trailing_place* read_from = nullptr;

}  // namespace

trailing_elements::~trailing_elements() {
  if (written_to == this) written_to = nullptr;
}

void trailing_elements::begin_message(bool may_trail) noexcept { written_to = may_trail ? this : nullptr; }

trailing_bytes trailing_elements::end_message() noexcept {
  if (written_to == this) written_to = nullptr;
  return std::exchange(waiting_, {});
}

trailing_elements* trailing_elements::taking(const std::vector<char>& buffer, std::size_t bytes) noexcept {
  const bool is_taking = written_to != nullptr && &written_to->buffer_ == &buffer && !written_to->has_any();
  return is_taking && bytes >= least && bytes <= most ? written_to : nullptr;
}

void trailing_elements::trail(trailing_bytes elements) noexcept {
  TROUPE_EXPECT(!has_any());
  waiting_ = std::move(elements);
}

reading_trailing::reading_trailing(const trailing_place* where) noexcept : before_(std::exchange(read_from, where)) {}

reading_trailing::~reading_trailing() { read_from = before_; }

const trailing_place* reading_trailing::current() noexcept { return read_from; }

}  // namespace troupe
