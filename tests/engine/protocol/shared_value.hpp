// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace troupe::model {

/// A value, or none, that copies share until one of them changes it. The digest of the value is kept until the value changes.
/// For use on one thread.
template <class T>
class shared_value {
 public:
  shared_value() = default;
  explicit shared_value(T value) : at_(new node{std::move(value)}) {}
  shared_value(const shared_value& other) noexcept : at_(other.at_) {
    if (at_ != nullptr) ++at_->users;
  }
  shared_value(shared_value&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  shared_value& operator=(shared_value other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~shared_value() { reset(); }

  void reset() noexcept {
    auto* left = std::exchange(at_, nullptr);
    if (left != nullptr && --left->users == 0) delete left;
  }

  explicit operator bool() const noexcept { return at_ != nullptr; }
  const T& operator*() const noexcept { return at_->value; }
  const T* operator->() const noexcept { return &at_->value; }

  /// The value, to be changed. The reference is valid until this object is copied.
  T& change() {
    if (at_->users > 1) *this = shared_value(at_->value);
    at_->digest.reset();
    return at_->value;
  }

  /// The result of `compute` for the value.
  template <class Compute>
  std::uint64_t digest(const Compute& compute) const {
    if (!at_->digest) at_->digest = compute(at_->value);
    return *at_->digest;
  }

 private:
  struct node {
    T value;
    std::optional<std::uint64_t> digest = {};
    std::uint32_t users = 1;
  };
  node* at_ = nullptr;
};

}  // namespace troupe::model
