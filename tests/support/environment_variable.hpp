// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>

#include <optional>
#include <string>

namespace troupe::test {

/// While an object of this class lives, the environment variable has this value; null: the variable is not set. Not while other threads run
/// that read the environment.
class environment_variable {
 public:
  environment_variable(const char* name, const char* value) : name_(name) {
    if (const char* const now = std::getenv(name)) before_ = now;
    set(value);
  }
  ~environment_variable() { set(before_ ? before_->c_str() : nullptr); }
  environment_variable(const environment_variable&) = delete;
  environment_variable& operator=(const environment_variable&) = delete;

 private:
  void set(const char* value) const { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }

  const char* const name_;
  std::optional<std::string> before_;
};

}  // namespace troupe::test
