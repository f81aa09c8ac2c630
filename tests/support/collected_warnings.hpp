// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <c10/util/Exception.h>

namespace troupe::test {

/// Collects the warnings of this thread instead of printing them.
class collected_warnings final : public c10::WarningHandler {
 public:
  collected_warnings() : guard_(this) {}
  void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
  std::vector<std::string> texts;

 private:
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace troupe::test
