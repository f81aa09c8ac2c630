// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/texts.hpp>

#include <exception>
#include <stdexcept>
#include <string>

#include <c10/util/Exception.h>
#include <boost/test/unit_test.hpp>

using troupe::support::text_of;

BOOST_AUTO_TEST_SUITE(texts)

BOOST_AUTO_TEST_CASE(an_exception_of_libtorch_has_no_backtrace) {
  const c10::Error reason({__func__, __FILE__, __LINE__}, "no such tensor");
  BOOST_TEST(std::string(reason.what()) != "no such tensor");
  BOOST_TEST(text_of(reason) == "no such tensor");
  BOOST_TEST(text_of(std::make_exception_ptr(reason)) == "no such tensor");
}

BOOST_AUTO_TEST_CASE(any_exception_has_a_text) {
  BOOST_TEST(text_of(std::runtime_error("no such file")) == "no such file");
  BOOST_TEST(text_of(std::make_exception_ptr(7)) == "an exception of unknown type");
}

BOOST_AUTO_TEST_SUITE_END()
