// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/module_selection.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>

#include <ATen/ATen.h>

#include <troupe/messages/errors.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(selections_of_a_module)

namespace {

struct whole final : module {
  named_tensors held{{"a", at::ones({1})}, {"b", at::ones({2})}, {"c", at::ones({3})}};
  named_tensors kept{{"mean", at::zeros({1})}};
  call_reply call(const std::string& method, call_arguments&) override { return {{}, {{"method", method}}}; }
  named_tensors parameters() override { return held; }
  named_tensors buffers() override { return kept; }
};

bool names_all(const error& refused) {
  return refused.code() == errc::misuse &&
         std::string(refused.what()) == "the module has no parameter 'd'; it has 'a', 'b', 'c'";
}

}  // namespace

BOOST_AUTO_TEST_CASE(have_the_chosen_parameters_in_the_order_asked_for_and_the_rest_of_the_whole) {
  const auto of = std::make_shared<whole>();
  objects::module_selection chosen(of, {"c", "a"});
  const auto parameters = chosen.parameters();
  BOOST_REQUIRE(parameters.size() == 2u);
  BOOST_TEST(parameters[0].first == "c");
  BOOST_TEST(parameters[0].second.is_same(of->held[2].second));
  BOOST_TEST(parameters[1].first == "a");
  BOOST_TEST(chosen.buffers()[0].second.is_same(of->kept[0].second));
}

BOOST_AUTO_TEST_CASE(of_a_parameter_that_is_not_there_are_refused_with_those_that_are) {
  const auto of = std::make_shared<whole>();
  BOOST_CHECK_EXCEPTION(objects::find_parameter(*of, "d"), error, names_all);
  BOOST_CHECK_EXCEPTION(objects::module_selection(of, {"a", "d"}), error, names_all);
  BOOST_TEST(objects::find_parameter(*of, "b").is_same(of->held[1].second));
}

BOOST_AUTO_TEST_SUITE_END()
