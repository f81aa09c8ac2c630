// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/optimizer_kind.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

#include <torch/torch.h>

#include <troupe/messages/errors.hpp>

using namespace troupe;
using objects::optimizer_kind;

BOOST_AUTO_TEST_SUITE(kinds_of_optimizers)

namespace {

bool says(const error& refused, const std::string& part) {
  BOOST_TEST_INFO(refused.what());
  return refused.code() == errc::misuse && std::string(refused.what()).find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(are_found_by_name_and_take_options_by_name) {
  for (const char* name : {"sgd", "adam", "adamw", "adagrad"}) {
    const auto& kind = optimizer_kind::find(name);
    BOOST_TEST(kind.name() == name);
    const auto made = kind.make({at::ones({1}).requires_grad_()}, {{"lr", 0.25}});
    BOOST_TEST(get<double>(kind.options(*made), "lr") == 0.25);
    kind.set_options(*made, {{"lr", 0.5}});
    BOOST_TEST(get<double>(kind.options(*made), "lr") == 0.5);
  }
}

BOOST_AUTO_TEST_CASE(and_options_that_are_not_there_are_refused_with_those_that_are) {
  BOOST_CHECK_EXCEPTION(optimizer_kind::find("adm"), error,
                        [](const error& refused) { return says(refused, "'adm'; there are sgd, adam, adamw and adagrad"); });
  const auto& sgd = optimizer_kind::find("sgd");
  BOOST_CHECK_EXCEPTION(sgd.make({at::ones({1}).requires_grad_()}, {{"rate", 0.1}}), error,
                        [](const error& refused) { return says(refused, "'sgd' has no option 'rate'; it has lr"); });
}

BOOST_AUTO_TEST_CASE(move_the_state_of_a_parameter_to_another_optimizer) {
  const auto& kind = optimizer_kind::find("adamw");
  auto parameter = at::ones({2}).requires_grad_();
  const auto first = kind.make({parameter}, {});
  BOOST_TEST(!kind.state(*first, parameter).present);
  parameter.mutable_grad() = at::full({2}, 0.5);
  first->step();
  const auto state = kind.state(*first, parameter);
  BOOST_TEST(state.present);
  BOOST_TEST(state.step == 1);
  BOOST_REQUIRE(state.slots.size() == kind.slots().size());
  const auto second = kind.make({parameter}, {});
  kind.set_state(*second, parameter, state);
  BOOST_TEST(kind.state(*second, parameter).step == 1);
  BOOST_TEST(at::equal(kind.state(*second, parameter).slots[0], state.slots[0]));
  kind.set_state(*second, parameter, {});
  BOOST_TEST(!kind.state(*second, parameter).present);
}

BOOST_AUTO_TEST_SUITE_END()
