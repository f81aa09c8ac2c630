// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/report/report_page_test.cpp
#pragma once

#include <string>

namespace troupe::bench {

/// One plain sentence that says what a row measures; empty if none is known.
std::string text_of_row(const std::string& name);

}  // namespace troupe::bench
