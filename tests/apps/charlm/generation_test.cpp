// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/generation.hpp"

#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include "apps/charlm/model.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(generation_of_text)

namespace {

constexpr model_shape small{.vocabulary = 11, .blocks = 4, .width = 16, .heads = 2, .context = 8};

}  // namespace

BOOST_AUTO_TEST_CASE(generated_text_is_the_same_for_the_same_seed) {
  whole_model model{small, 2, 5};
  const vocabulary words{U"abcdefghijk"};
  generation_settings how;
  how.length = 30;
  how.prompt = U"abcabcabcabc";
  const auto once = generate(model, small, words, how);
  BOOST_TEST(once.size() == 30u);
  BOOST_TEST((generate(model, small, words, how) == once));
  std::u32string taken;
  const auto some = generate(model, small, words, how, [&](char32_t next) {
    taken += next;
    return taken.size() < 7;
  });
  BOOST_TEST((taken == once.substr(0, 7)));
  BOOST_TEST((some == taken));
  how.seed = 2;
  BOOST_TEST((generate(model, small, words, how) != once));
  how.prompt = U"z";
  BOOST_CHECK_EXCEPTION(generate(model, small, words, how), std::runtime_error, says({"'z'"}));
}

BOOST_AUTO_TEST_SUITE_END()
