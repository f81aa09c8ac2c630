// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/thread_modes.hpp>

#include <boost/test/unit_test.hpp>

#include <ATen/autocast_mode.h>

using troupe::compute_modes;
using troupe::support::modes_of_thread;
using troupe::support::modes_scope;

BOOST_AUTO_TEST_SUITE(modes_of_threads)

BOOST_AUTO_TEST_CASE(a_scope_sets_the_modes_and_restores_those_before) {  // YM-1, YM-2
  const auto before = modes_of_thread(true);
  const auto dtype = at::autocast::get_autocast_dtype(at::kCPU);
  BOOST_TEST((before == compute_modes{}));
  const compute_modes without_graph{true, false, {}};
  const compute_modes inference{true, true, {}};
  const compute_modes under_autocast{false, false, {{at::kCPU, at::kHalf}}};
  for (const auto& outer : {without_graph, inference, under_autocast}) {
    const modes_scope scope(outer);
    BOOST_TEST((modes_of_thread(true) == outer));
    for (const auto& inner : {without_graph, inference, compute_modes{}}) {
      {
        const modes_scope nested(inner);
        auto expected = inner;
        expected.autocast = outer.autocast;  // what is not given stays
        BOOST_TEST((modes_of_thread(true) == expected));
      }
      BOOST_TEST((modes_of_thread(true) == outer));
    }
  }
  BOOST_TEST((modes_of_thread(true) == before));
  BOOST_TEST((at::autocast::get_autocast_dtype(at::kCPU) == dtype));
}

BOOST_AUTO_TEST_CASE(a_scope_restores_the_autocast_of_two_kinds_of_devices) {  // YM-2
  const compute_modes both{false, false, {{at::kCPU, at::kHalf}, {at::kCUDA, at::kBFloat16}}};
  {
    const modes_scope outer({false, false, {{at::kCPU, at::kBFloat16}}});
    {
      const modes_scope inner(both);
      BOOST_TEST((modes_of_thread(true) == both));
    }
    BOOST_TEST((modes_of_thread(true) == compute_modes{false, false, {{at::kCPU, at::kBFloat16}}}));
  }
  BOOST_TEST((modes_of_thread(true) == compute_modes{}));
}

BOOST_AUTO_TEST_CASE(autocast_is_told_only_if_it_is_asked_for) {  // YM-1
  const modes_scope scope({false, false, {{at::kCPU, at::kBFloat16}}});
  BOOST_TEST(modes_of_thread(false).autocast.empty());
  BOOST_TEST(modes_of_thread(true).autocast.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
