// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <boost/test/unit_test.hpp>

#include <clocale>
#include <cstdlib>
#include <locale>
#include <string>

#include "actors/temporary_folder.hpp"
#include "support/environment_variable.hpp"

namespace troupe::test {

/// While it lives, the program has the German locale: "1.234,5". Without Debian's package locales, which has the sources of locales, only
/// C++ streams have it; a message says so.
class comma_locale {
 public:
  comma_locale() {
    const auto make = "localedef -i de_DE -f UTF-8 " + folder_.path() + "/" + name + " 2> " + folder_.path() + "/errors";
    static_cast<void>(std::system(make.c_str()));  // also fails after a mere warning
    if (std::setlocale(LC_ALL, name) != nullptr) {
      before_ = std::locale::global(std::locale(name));
    } else {
      BOOST_TEST_MESSAGE("SKIPPED for printf and strtod: localedef can't make " << name
                                                                                << "; install Debian's package locales");
      before_ = std::locale::global(std::locale(std::locale::classic(), new comma));
    }
  }
  ~comma_locale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }
  comma_locale(const comma_locale&) = delete;
  comma_locale& operator=(const comma_locale&) = delete;

 private:
  static constexpr auto name = "de_DE.UTF-8";
  struct comma final : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  const temporary_folder folder_;
  const environment_variable where_{"LOCPATH", folder_.path().c_str()};
  std::locale before_;
};

}  // namespace troupe::test
