// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/plain_pickle.hpp>

#include <string>

#include <boost/test/unit_test.hpp>

#include <c10/util/Exception.h>

#include "support/contains.hpp"

using namespace std::string_literals;
using troupe::objects::check_plain_pickle;
using troupe::objects::most_nested;
using troupe::test::contains;

namespace {

/// Why the pickle is refused; empty if it is not.
std::string refusal(const std::string& pickle) {
  try {
    check_plain_pickle(pickle);
  } catch (const c10::Error& why) {
    return why.what_without_backtrace();
  }
  return {};
}

std::string repeated(const std::string& what, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += what;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plain_pickles)

BOOST_AUTO_TEST_CASE(plain_values_are_taken) {
  BOOST_TEST(refusal("\x80\2K\7."s) == "");
  BOOST_TEST(refusal("\x80\2}(X\1\0\0\0kq\0](K\1M\1\0J\1\0\0\0G12345678\x88\x89"
                     "eX\1\0\0\0l(NtX\1\0\0\0mh\0\x85u."s) == "");
  BOOST_TEST(refusal("\x80\2c__torch__\nModule\nq\0)\x81}X\1\0\0\0kh\0sb."s) == "");
}

BOOST_AUTO_TEST_CASE(operations_without_operands_or_of_another_kind_are_refused) {  // PK-1
  for (const auto& [pickle, why] : {
         std::pair{""s, "has no end"},
         {"K\7"s, "has no end"},
         {"K"s, "claims 1 bytes where 0 follow"},
         {"."s, "ends with 0 values"},
         {"K\7K\7."s, "ends with 2 values"},
         {"(."s, "ends with 0 values"},
         {"K\7(."s, "ends with 1 values"},
         {"t."s, "takes values that are not there"},
         {"K\7(\x85."s, "takes a value that is not there"},
         {"K\7\x86."s, "takes a value that is not there"},
         {"K\7K\7"
          "a."s,
          "adds a value to what is no new list"},
         {")K\7"
          "a."s,
          "adds a value to what is no new list"},
         {"](e."s, ""},
         {"(K\1](K\7e](0."s, "operation 48"},
         {"c__torch__\nModule"s, "a line without an end"},
         {"S'text'\n."s, "operation 83"},
         {"\xff"s, "operation 255"},
       }) {
    const auto heard = refusal(pickle);
    BOOST_TEST((why[0] == '\0' ? heard.empty() : contains(heard, why)), pickle << ": " << heard);
  }
}

BOOST_AUTO_TEST_CASE(lengths_and_numbers_that_claim_more_than_came_are_refused) {  // PK-2
  BOOST_TEST(contains(refusal("X\xff\xff\xff\xff"
                              "k."s),
                      "claims 4294967295 bytes where 2 follow"));
  BOOST_TEST(contains(refusal("\x8a\x09"
                              "12345678."s),
                      "has no end"));
  BOOST_TEST(contains(refusal("K\7r\xff\xff\xff\xff."s), "keeps a value under the number 4294967295, expected 0"));
  BOOST_TEST(contains(refusal("q\0."s), "keeps a value"));
  BOOST_TEST(contains(refusal("h\0."s), "can't be fetched"));
  BOOST_TEST(refusal("K\7r\0\0\0\0j\0\0\0\0\x86."s) == "");
}

BOOST_AUTO_TEST_CASE(values_that_are_nested_deeply_or_in_themselves_are_refused) {  // PK-3
  const std::string why = "nests values more than";
  BOOST_TEST(refusal("K\7"s + repeated("\x85", most_nested) + ".") == "");
  BOOST_TEST(contains(refusal("K\7"s + repeated("\x85", most_nested + 1) + "."), why));
  BOOST_TEST(contains(refusal(repeated("]", 1'000'000) + repeated("a", 999'999) + "."), why));
  BOOST_TEST(contains(refusal(repeated("(", 100) + repeated("t", 100) + "."), why));
  BOOST_TEST(contains(refusal("]q\0h\0a."s), "can't be fetched"));
  // Fetching again makes no value flatter.
  std::string grown = "K\7";
  for (char i = 0; i <= most_nested; ++i) grown += "\x85q"s + i + "h" + i;
  BOOST_TEST(contains(refusal(grown + "."), why));
}

BOOST_AUTO_TEST_CASE(a_pickle_of_too_many_bytes_is_refused) {  // PK-4
  BOOST_TEST(contains(refusal(std::string(troupe::objects::most_pickle_bytes + 1, 'N')), "expected at most 16777216"));
}

BOOST_AUTO_TEST_SUITE_END()
