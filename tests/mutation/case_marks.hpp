// SPDX-License-Identifier: BSD-3-Clause
// Included by the main file of the Boost.Test programs in a mutated tree. Records which mutants each test case reaches. The
// file that TROUPE_MUTANT_CASES names gets one line per case: full name, microseconds, numbers of mutants, separated by tabs.
#pragma once

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <boost/test/unit_test.hpp>

#include "switches.hpp"

namespace troupe_mutation {

class case_marks final : public boost::unit_test::test_observer {
 public:
  case_marks() : path_(std::getenv("TROUPE_MUTANT_CASES")) {
    if (path_ != nullptr && marks() != nullptr) boost::unit_test::framework::register_observer(*this);
  }

  void test_unit_start(const boost::unit_test::test_unit&) override { std::memset(marks(), 0, marks_size()); }

  void test_unit_finish(const boost::unit_test::test_unit& unit, unsigned long microseconds) override {
    if (unit.p_type != boost::unit_test::TUT_CASE) return;
    std::ofstream file(path_, std::ios::app);
    file << unit.full_name() << '\t' << microseconds << '\t';
    for (std::size_t i = 0; i < marks_size(); ++i)
      if (marks()[i] != 0) file << i << ' ';
    file << '\n';
  }

 private:
  const char* path_;
};

struct marking {
  marking() { static case_marks observer; }
};

}  // namespace troupe_mutation

using troupe_mutation_marking = troupe_mutation::marking;  // the macro takes a plain name
BOOST_TEST_GLOBAL_FIXTURE(troupe_mutation_marking);
