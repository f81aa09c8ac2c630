// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/gradient_check.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include <torch/torch.h>

#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(verification_of_gradients)

BOOST_AUTO_TEST_CASE(steps_with_the_same_bits_are_counted_and_another_one_is_told_by_step_node_and_parameter) {
  const model_shape shape{.vocabulary = 11, .blocks = 2, .width = 16, .heads = 2, .context = 8};
  const auto tokens = at::arange(32, at::kLong).remainder(11).view({4, 8});
  const batch windows{tokens, tokens.remainder(7)};
  const std::vector<std::int64_t> sizes{1, 2, 1};
  whole_model model{shape, 2, 5};
  auto came = single_process_gradients(model, windows, sizes);
  verification verified;
  verified.check(model, windows, sizes, 1, {"a", "b"}, came);
  verified.check(model, windows, sizes, 2, {"a", "b"}, came);
  BOOST_TEST(verified.steps() == 2);
  BOOST_TEST(verified.parameters() == static_cast<std::int64_t>(came[0].size() + came[1].size()));
  BOOST_TEST(verified.text().starts_with("verified: in 2 steps the gradients of all "));
  came[1].back().second = came[1].back().second * 2;
  BOOST_CHECK_EXCEPTION(verified.check(model, windows, sizes, 3, {"a", "b"}, came), std::runtime_error,
                        says({"step 3, b: ", came[1].back().first}));
  BOOST_TEST(verified.steps() == 2);
}

BOOST_AUTO_TEST_SUITE_END()
