// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/bulky_calls.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

BOOST_AUTO_TEST_SUITE(calls_that_leave_in_fragments)

namespace {

using namespace troupe;
using contracts::outgoing_call_ptr;

constexpr auto least = static_cast<std::int64_t>(calls::bulky_calls::least_bytes);

outgoing_call_ptr call_on(std::uint64_t object, std::int64_t bytes) {
  auto result = std::make_shared<contracts::outgoing_call>();
  if (object != 0) result->request.target = {{7}, object};
  result->request.payload.tensors = {at::empty({bytes}, at::kByte)};
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(later_calls_on_the_object_wait_until_the_bulky_one_has_ended) {  // OG-3
  calls::bulky_calls all;
  const auto bulky = call_on(1, least);
  const auto second = call_on(1, 1);
  const auto third = call_on(1, 1);
  const auto elsewhere = call_on(2, 1);
  BOOST_TEST(!all.holds(bulky));
  all.leaves(bulky);
  BOOST_TEST(all.holds(second));
  BOOST_TEST(all.holds(third));
  BOOST_TEST(!all.holds(elsewhere));
  BOOST_TEST(all.ended(*third).empty());
  BOOST_TEST((all.ended(*bulky) == std::vector{second, third}));
  BOOST_TEST(!all.holds(second));
}

// A call of another depth may be one for which the bulky call waits.
BOOST_AUTO_TEST_CASE(calls_of_another_depth_do_not_wait) {
  calls::bulky_calls all;
  const auto bulky = call_on(1, least);
  const auto deeper = call_on(1, 1);
  deeper->request.depth = 2;
  all.leaves(bulky);
  BOOST_TEST(!all.holds(deeper));
}

BOOST_AUTO_TEST_CASE(only_what_leaves_with_the_message_counts) {
  calls::bulky_calls all;
  auto ahead = call_on(1, 100 * least);
  ahead->request.payload.ahead.transfers = {5};
  auto text = call_on(2, 1);
  text->request.values["bytes"] = std::string(static_cast<std::size_t>(least), 'x');
  for (const auto& each : {ahead, text, call_on(3, least - 1'000), call_on(0, least)}) all.leaves(each);
  BOOST_TEST(!all.holds(call_on(1, 1)));
  BOOST_TEST(all.holds(call_on(2, 1)));
  BOOST_TEST(!all.holds(call_on(3, 1)));
  BOOST_TEST(!all.holds(call_on(0, 1)));
}

BOOST_AUTO_TEST_SUITE_END()
