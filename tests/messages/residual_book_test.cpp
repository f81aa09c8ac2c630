// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/messages/residual_book.hpp>

#include "support/collected_warnings.hpp"

using namespace troupe;

namespace {

const residual_key key{node_id{1}, 10, 0};
const at::Tensor gradient = at::zeros({10, 100});

}  // namespace

BOOST_AUTO_TEST_CASE(a_residual_is_taken_once) {  // ER-1
  residual_book book(1 << 20);
  BOOST_TEST(!book.take(key, gradient).defined());
  book.give(key, gradient, at::full({1000}, 3.0F));
  BOOST_TEST(book.bytes() == 4000u);
  const auto taken = book.take(key, gradient);
  BOOST_REQUIRE(taken.defined());
  BOOST_TEST(taken[7].item<float>() == 3);
  BOOST_TEST(book.bytes() == 0u);
  BOOST_TEST(!book.take(key, gradient).defined());
}

BOOST_AUTO_TEST_CASE(residuals_that_two_threads_give_back_are_added) {  // ER-1
  residual_book book(1 << 20);
  book.give(key, gradient, at::full({1000}, 3.0F));
  book.give(key, gradient, at::full({1000}, 4.0F));
  BOOST_TEST(book.bytes() == 4000u);
  BOOST_TEST(book.take(key, gradient)[999].item<float>() == 7);
}

BOOST_AUTO_TEST_CASE(a_residual_counts_for_its_key_and_shape_alone) {  // ER-2
  residual_book book(1 << 20);
  book.give(key, gradient, at::ones({1000}));
  BOOST_TEST(!book.take({node_id{2}, 10, 0}, gradient).defined());
  BOOST_TEST(!book.take({node_id{1}, 11, 0}, gradient).defined());
  BOOST_TEST(!book.take({node_id{1}, 10, 1}, gradient).defined());
  BOOST_TEST(!book.take(key, at::zeros({100, 10})).defined());
  BOOST_TEST(!book.take(key, at::zeros({100, 10}).t()).defined());
  BOOST_TEST(book.take(key, gradient).defined());
  book.give(key, gradient, at::ones({1000}));
  book.give(key, at::zeros({500}), at::ones({500}));  // the program has changed: the new shape counts
  BOOST_TEST(book.bytes() == 2000u);
}

BOOST_AUTO_TEST_CASE(the_book_has_a_limit_and_drops_what_was_used_longest_ago) {  // ER-3
  const test::collected_warnings warnings;
  residual_book book(3 * 4000);
  const auto nth = [](std::uint64_t call_key) { return residual_key{node_id{1}, call_key, 0}; };
  for (std::uint64_t call_key = 1; call_key <= 3; ++call_key) book.give(nth(call_key), gradient, at::ones({1000}));
  book.give(nth(1), gradient, book.take(nth(1), gradient));  // used
  BOOST_TEST(warnings.texts.empty());
  book.give(nth(4), gradient, at::ones({1000}));
  BOOST_REQUIRE(warnings.texts.size() == 1u);
  BOOST_TEST(warnings.texts[0].find("more than 12000 bytes on this node") != std::string::npos);
  BOOST_TEST(book.bytes() == 12000u);
  BOOST_TEST(!book.take(nth(2), gradient).defined());
  BOOST_TEST(book.take(nth(1), gradient).defined());
  book.give(nth(9), at::zeros({5000}), at::ones({5000}));  // larger than the limit
  BOOST_TEST(warnings.texts.size() == 1u);                 // one in a process
  BOOST_TEST(book.bytes() == 8000u);
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_gone_leaves_nothing) {
  residual_book book(1 << 20);
  for (std::uint64_t index = 0; index < 4; ++index) book.give({node_id{1 + index % 2}, 5, index}, gradient, at::ones({1000}));
  book.forget(node_id{1});
  BOOST_TEST(book.bytes() == 8000u);
  BOOST_TEST(!book.take({node_id{1}, 5, 0}, gradient).defined());
  BOOST_TEST(book.take({node_id{2}, 5, 1}, gradient).defined());
}

BOOST_AUTO_TEST_CASE(a_call_key_is_the_same_in_each_step_and_differs_between_calls) {
  const auto first = call_key_of("forward", 3, {100, 1, 7, 2}, true);
  BOOST_TEST(call_key_of("forward", 3, {900, 1, 2300, 2}, true) == first);  // libtorch counts on
  BOOST_TEST(call_key_of("forward", 3, {100, 1, 7, 3}, true) != first);
  BOOST_TEST(call_key_of("forward", 3, {100, 2, 7, 2}, true) != first);
  BOOST_TEST(call_key_of("forward", 3, {100, 1}, true) != first);
  BOOST_TEST(call_key_of("forward", 4, {100, 1, 7, 2}, true) != first);
  BOOST_TEST(call_key_of("backward", 3, {100, 1, 7, 2}, true) != first);
  BOOST_TEST(call_key_of("forward", 3, {100, 1, 7, 2}, false) != first);
  BOOST_TEST(first != 0u);
}

BOOST_AUTO_TEST_CASE(a_number_follows_from_the_place_and_not_from_what_lies_behind_it) {
  const auto place_before = [](std::uint64_t behind) {
    program_place place{1, 2, 3, behind};
    place.pop_back();
    return call_key_of("f", 0, place, false);
  };
  BOOST_TEST(place_before(7) == place_before(8));
}
