// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/corpus.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(trigram_model)

BOOST_AUTO_TEST_CASE(a_trigram_model_scores_1_79_on_the_licences) {
  if (!std::filesystem::exists(licence_folder)) {
    BOOST_TEST_MESSAGE("no " << licence_folder << " here");
    return;
  }
  const auto licences = text::read(licence_folder);
  const auto words = vocabulary::of(licences.bytes);
  BOOST_TEST(trigram_loss(corpus(licences, words, 64), words.size()) == 1.79, boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(a_trigram_model_knows_what_always_follows) {
  text turns{{}, "a test"};
  for (int i = 0; i < 20'000; ++i) turns.bytes.push_back("abc"[i % 3]);
  // Each of the three pairs occurs about 6,000 times, always before the same character. The two other characters have a count
  // of 0.1 each.
  BOOST_TEST(trigram_loss(corpus(turns, vocabulary::of(turns.bytes), 8), 3) < 1e-4);
}

BOOST_AUTO_TEST_SUITE_END()
