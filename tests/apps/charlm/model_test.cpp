// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <stdexcept>

#include <torch/torch.h>

#include "apps/charlm/model.hpp"
#include "apps/charlm/stage_module.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::named_tensors;
using troupe::apps::test::says;

namespace {

constexpr model_shape small{.vocabulary = 11, .blocks = 4, .width = 16, .heads = 2, .context = 8};

at::Tensor tokens(std::int64_t windows) { return at::arange(windows * 8, at::kLong).remainder(11).view({windows, 8}); }

}  // namespace

BOOST_AUTO_TEST_SUITE(model_in_stages)

BOOST_AUTO_TEST_CASE(stages_in_a_row_are_the_whole_model) {  // SG-1
  whole_model one{small, 1, 5};
  const auto expected = one.forward(tokens(3));
  BOOST_TEST((expected.sizes() == at::IntArrayRef{3, 8, 11}));
  for (std::int64_t count = 2; count <= 4; ++count)
    BOOST_TEST(at::equal(whole_model(small, count, 5).forward(tokens(3)), expected));
  BOOST_TEST(!at::equal(whole_model(small, 1, 6).forward(tokens(3)), expected));
}

BOOST_AUTO_TEST_CASE(a_character_does_not_see_those_after_it) {
  whole_model model{small, 2, 5};
  auto changed = tokens(1).clone();
  changed[0][5] = 9;
  const auto before = model.forward(tokens(1));
  const auto after = model.forward(changed);
  BOOST_TEST(at::allclose(before.narrow(1, 0, 5), after.narrow(1, 0, 5)));
  BOOST_TEST(!at::allclose(before.narrow(1, 5, 1), after.narrow(1, 5, 1)));
}

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  whole_model model{small, 2, 5};
  const batch windows{tokens(4), tokens(4).remainder(7)};
  for (const auto& of_stage : single_process_gradients(model, windows, {4}))
    for (const auto& [name, gradient] : of_stage)
      BOOST_TEST((gradient.defined() && gradient.abs().sum().item<double>() > 0), name);
}

BOOST_AUTO_TEST_CASE(an_input_that_does_not_fit_is_told_what_would) {  // SG-2
  whole_model model{small, 2, 5};
  BOOST_CHECK_EXCEPTION(model.stages()[0]->forward(at::zeros({2, 9}, at::kLong)), std::runtime_error,
                        says({"stage 1 of 2", "1 to 8", "[2, 9]"}));
  BOOST_CHECK_EXCEPTION(model.stages()[0]->forward(at::zeros({2, 8})), std::runtime_error, says({"int64", "Float"}));
  BOOST_CHECK_EXCEPTION(model.stages()[1]->forward(at::zeros({2, 8, 17})), std::runtime_error,
                        says({"stage 2 of 2", "16", "[2, 8, 17]"}));
  BOOST_CHECK_EXCEPTION(model.stages()[1]->forward(at::Tensor{}), std::runtime_error, says({"undefined"}));
}

BOOST_AUTO_TEST_CASE(more_stages_than_blocks_are_refused) {
  BOOST_CHECK_EXCEPTION(stage(small, {0, 5}, 1), std::runtime_error, says({"1 to 4"}));
}

BOOST_AUTO_TEST_CASE(targets_below_zero_do_not_count) {
  const auto logits = at::randn({1, 4, 11});
  const auto targets = at::tensor({3, -1, 5, -1}, at::kLong).view({1, 4});
  const auto some = logits.index_select(1, at::tensor({0, 2}, at::kLong));
  const auto of_some = character_loss(some, at::tensor({3, 5}, at::kLong).view({1, 2}));
  BOOST_TEST(at::allclose(character_loss(logits, targets), of_some));
  BOOST_TEST(at::allclose(character_loss(logits, targets, 0.25), of_some * 0.25));
}

BOOST_AUTO_TEST_SUITE_END()
