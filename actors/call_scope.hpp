// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/messages/ids.hpp>

namespace troupe {

/// What the calling thread works on: the context that its calls join, and the rank of what it records (the number of the call
/// it runs; 0 outside any call). One a thread; a nested scope restores the outer one.
class call_scope {
 public:
  call_scope(context_id context, std::uint64_t rank) noexcept : outer_(current_), context_(context), rank_(rank) {
    current_ = this;
  }
  ~call_scope() { current_ = outer_; }
  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

  static context_id context() noexcept { return current_ == nullptr ? context_id{} : current_->context_; }
  static std::uint64_t rank() noexcept { return current_ == nullptr ? 0 : current_->rank_; }

 private:
  static inline thread_local call_scope* current_ = nullptr;
  call_scope* outer_;
  context_id context_;
  std::uint64_t rank_;
};

}  // namespace troupe
