// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/requests.hpp>

#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include "samples.hpp"

using namespace troupe;

BOOST_AUTO_TEST_CASE(a_function_and_a_method_are_called_by_their_own_name) {
  BOOST_TEST(label_of(requests::function{"forward"}) == "forward");
  BOOST_TEST(label_of(requests::method{"forward"}) == "forward");
}

BOOST_AUTO_TEST_CASE(each_other_request_has_a_name_of_its_own_in_texts) {
  BOOST_TEST(label_of(requests::parameter{"weight"}) == "troupe.parameter");
  BOOST_TEST(label_of(requests::read{requests::tensors::gradients}) == "troupe.gradients");
  BOOST_TEST(label_of(requests::write{.of = requests::tensors::state, .names = {}}) == "troupe.set_state");
  BOOST_TEST(label_of(requests::step{.which = {}}) == "troupe.optimizer.step");
  BOOST_TEST(label_of(requests::step{.which = {}, .gathered = true}) == "troupe.optimizer.gathered_step");
  std::set<std::string> names;
  std::set<std::size_t> kinds;
  testing::generator random{5};
  for (int i = 0; i < 2000; ++i) {
    const auto what = testing::make<request>(random);
    kinds.insert(what.index());
    if (what.index() < 2) continue;
    names.insert(label_of(what));
    BOOST_TEST(label_of(what).starts_with("troupe."));
  }
  BOOST_TEST(kinds.size() == std::variant_size_v<request>);
  // Tensors are read in four ways, written in four, though nobody writes gradients; two requests are of gathered gradients or others.
  BOOST_TEST(names.size() == std::variant_size_v<request> - 2 + 3 + 3 + 2);
}

BOOST_AUTO_TEST_CASE(what_a_request_holds_counts) {
  BOOST_TEST(bytes_of(requests::function{std::string(1000, 'x')}) >= 1000U);
  BOOST_TEST(bytes_of(requests::select{.owner = {}, .names = std::vector<std::string>(100, std::string(100, 'x'))}) >= 10'000U);
  requests::create_optimizer many;
  many.options["betas"] = std::vector<double>(1000, 0.9);
  BOOST_TEST(bytes_of(many) >= 8000U);
}
