// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/function_table.hpp>

#include <thread>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/errors.hpp>

namespace {

using troupe::call_arguments;
using troupe::call_reply;

call_reply half(call_arguments&) { return {}; }
call_reply twice(call_arguments&) { return {}; }

template <class F>
std::pair<troupe::errc, std::string> failure(F run) {
  try {
    run();
  } catch (const troupe::error& problem) {
    return {problem.code(), problem.what()};
  }
  return {troupe::errc::none, {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_function_is_found_by_its_name) {
  troupe::function_table table;
  table.add("half", half);
  table.add("twice", twice);
  using plain = call_reply (*)(call_arguments&);
  BOOST_TEST_REQUIRE(table.find("twice").target<plain>() != nullptr);
  BOOST_TEST((*table.find("twice").target<plain>() == twice));
  BOOST_TEST((*table.find("half").target<plain>() == half));
  BOOST_TEST(table.names() == (std::vector<std::string>{"half", "twice"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_unknown_name_is_refused_with_the_names_that_are_there) {
  troupe::function_table table;
  auto [code, text] = failure([&] { table.find("third"); });
  BOOST_TEST((code == troupe::errc::unknown_function));
  BOOST_TEST(text == "no function 'third' is registered; there are: none");
  table.add("twice", twice);
  table.add("half", half);
  BOOST_TEST(failure([&] { table.find("third"); }).second == "no function 'third' is registered; there are: half, twice");
}

BOOST_AUTO_TEST_CASE(a_taken_name_keeps_its_function) {
  troupe::function_table table;
  table.add("half", half);
  auto [code, text] = failure([&] { table.add("half", twice); });
  BOOST_TEST((code == troupe::errc::misuse));
  BOOST_TEST(text.find("'half' is taken") != std::string::npos);
  using plain = call_reply (*)(call_arguments&);
  BOOST_TEST((*table.find("half").target<plain>() == half));
}

BOOST_AUTO_TEST_CASE(no_name_and_no_function_are_refused) {
  troupe::function_table table;
  BOOST_TEST((failure([&] { table.add("", half); }).first == troupe::errc::misuse));
  BOOST_TEST((failure([&] { table.add("empty", nullptr); }).first == troupe::errc::misuse));
  BOOST_TEST(table.names().empty());
}

BOOST_AUTO_TEST_CASE(many_threads_may_add_and_find_at_once) {
  troupe::function_table table;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&table, t] {
      for (int i = 0; i < 200; ++i) {
        const auto name = std::to_string(t) + "." + std::to_string(i);
        table.add(name, half);
        table.find(name);
      }
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(table.names().size() == 800);
}
