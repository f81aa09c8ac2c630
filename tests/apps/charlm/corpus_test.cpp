// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "apps/charlm/corpus.hpp"
#include "support/resident_memory.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;
using troupe::apps::test::temporary_folder;

namespace {

/// A text in which no character occurs twice, so that a token tells the position of its character.
text counted(std::size_t length) {
  text out{{}, "a test"};
  for (std::size_t i = 0; i < length; ++i) out.bytes += to_utf8({static_cast<char32_t>(0x10000 + i)});
  return out;
}

corpus corpus_of(const text& from, std::int64_t context) { return {from, vocabulary::of(from.bytes), context}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(corpus_of_a_text)

BOOST_AUTO_TEST_CASE(every_tenth_block_is_for_validation) {
  const auto cut = corpus_of(counted(41'000), 64);
  BOOST_TEST(cut.training().size() == 3u);
  BOOST_TEST(cut.validation().size() == 2u);
  BOOST_TEST(cut.tokens(cut.training()[1]).front() == 20'000);
  BOOST_TEST(cut.training()[1].size == 18'000u);
  BOOST_TEST(cut.training()[2].size == 1'000u);
  BOOST_TEST(cut.tokens(cut.validation()[1]).front() == 38'000);
  BOOST_TEST(cut.validation()[1].size == 2'000u);
}

BOOST_AUTO_TEST_CASE(no_training_window_touches_a_validation_block) {  // CX-1
  const auto cut = corpus_of(counted(60'000), 64);
  for (std::int64_t step = 0; step < 50; ++step) {
    const auto windows = cut.training_batch(7, step, 32);
    const auto all = at::cat({windows.inputs, windows.targets}).flatten();
    BOOST_TEST((all.remainder(20'000).ge(18'000)).sum().item<std::int64_t>() == 0);
    BOOST_TEST(at::equal(windows.inputs + 1, windows.targets));
  }
}

BOOST_AUTO_TEST_CASE(a_batch_depends_on_the_seed_and_the_step_alone) {  // CX-2
  const auto cut = corpus_of(counted(41'000), 64);
  const auto once = cut.training_batch(7, 3, 8);
  cut.training_batch(7, 4, 8);
  BOOST_TEST(at::equal(cut.training_batch(7, 3, 8).inputs, once.inputs));
  BOOST_TEST(!at::equal(cut.training_batch(7, 4, 8).inputs, once.inputs));
  BOOST_TEST(!at::equal(cut.training_batch(8, 3, 8).inputs, once.inputs));
}

BOOST_AUTO_TEST_CASE(windows_come_from_all_of_the_training_text) {
  const auto cut = corpus_of(counted(20'000), 64);
  std::set<std::int64_t> parts;
  for (std::int64_t step = 0; step < 40; ++step) {
    const auto starts = cut.training_batch(1, step, 32).inputs.select(1, 0);
    for (std::int64_t i = 0; i < 32; ++i) parts.insert(starts[i].item<std::int64_t>() / 1000);
  }
  BOOST_TEST(parts.size() == 18u);
}

BOOST_AUTO_TEST_CASE(validation_predicts_each_character_but_the_first_two_once) {
  const auto cut = corpus_of(counted(40'000), 64);
  const auto windows = cut.validation_windows();
  std::multiset<std::int64_t> predicted;
  for (std::int64_t w = 0; w < windows.targets.size(0); ++w)
    for (std::int64_t i = 0; i < 64; ++i)
      if (const auto target = windows.targets[w][i].item<std::int64_t>(); target >= 0) {
        BOOST_REQUIRE_EQUAL(windows.inputs[w][i].item<std::int64_t>() + 1, target);
        predicted.insert(target);
      }
  BOOST_TEST(predicted.size() == 2u * 1998u);
  BOOST_TEST(*predicted.begin() == 18'002);
  BOOST_TEST(std::set<std::int64_t>(predicted.begin(), predicted.end()).size() == predicted.size());
}

BOOST_AUTO_TEST_CASE(a_text_that_is_too_short_is_told_how_long_it_has_to_be) {  // CX-3
  BOOST_CHECK_EXCEPTION(corpus_of(counted(18'064), 64), std::runtime_error,
                        says({"at least 18065", "a test", "has 18064", "--data"}));
  BOOST_TEST(corpus_of(counted(18'065), 64).validation().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_text_in_use_takes_at_most_twice_its_bytes_of_memory) {  // CX-4, TX-3
  constexpr std::size_t length = 48'000'000;
  std::string content;
  while (content.size() < length) content += "\xC3\xA4 text of " + std::to_string(content.size() % 9'973) + " words\n";
  const temporary_folder folder;
  const auto path = folder.write("text", std::exchange(content, {}));
  const auto before = troupe::test::resident_kib();
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak is now what is resident
  auto source = text::read(path);
  auto words = vocabulary::of(source.bytes);
  const auto size = words.size();
  const corpus cut(std::move(source), std::move(words), 64);
  trigram_loss(cut, size);
  cut.training_batch(1, 1, 32);
  BOOST_TEST(troupe::test::peak_kib() - before < static_cast<std::int64_t>(2 * length / 1024));
}

BOOST_AUTO_TEST_CASE(a_long_text_is_validated_on_some_of_its_blocks) {
  const auto cut = corpus_of(counted(600'000), 64);
  BOOST_TEST(cut.validation().size() == 24u);
  BOOST_TEST(cut.tokens(cut.validation()[0]).front() == 18'000);
  BOOST_TEST(cut.tokens(cut.validation()[23]).front() > 550'000);
}

BOOST_AUTO_TEST_SUITE_END()
