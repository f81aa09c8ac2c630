// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/corpus.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <numeric>
#include <stdexcept>

#include <ATen/ATen.h>

#include "apps/charlm/model.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(micro_batches_of_a_batch)

namespace {

at::Tensor tokens(std::int64_t windows) { return at::arange(windows * 8, at::kLong).remainder(11).view({windows, 8}); }

}  // namespace

BOOST_AUTO_TEST_CASE(all_windows_are_dealt_as_equally_as_can_be) {
  for (std::int64_t windows = 1; windows <= 40; ++windows)
    for (std::int64_t count = 1; count <= windows; ++count) {
      const auto sizes = micro_batch_sizes(windows, count);
      BOOST_REQUIRE_EQUAL(sizes.size(), static_cast<std::size_t>(count));
      BOOST_REQUIRE_EQUAL(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), windows);
      BOOST_REQUIRE_GE(sizes.back(), 1);
      BOOST_REQUIRE_LE(sizes.front() - sizes.back(), 1);
    }
}

BOOST_AUTO_TEST_CASE(more_parts_than_windows_are_refused) {
  BOOST_CHECK_EXCEPTION(micro_batch_sizes(4, 5), std::runtime_error, says({"1 to 4", "--micro-batches is 5"}));
}

BOOST_AUTO_TEST_CASE(the_parts_losses_sum_to_the_batchs) {
  const batch whole{tokens(6), tokens(6).remainder(7)};
  const auto logits = at::randn({6, 8, 11});
  double sum = 0;
  std::int64_t at = 0;
  for (const auto& part : cut(whole, {1, 3, 2})) {
    const auto windows = part.windows.targets.size(0);
    sum += character_loss(logits.narrow(0, at, windows), part.windows.targets, part.share).item<double>();
    at += windows;
  }
  BOOST_TEST(sum == character_loss(logits, whole.targets).item<double>(), boost::test_tools::tolerance(1e-5));
}

BOOST_AUTO_TEST_SUITE_END()
