// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/uses.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <concepts>

using namespace troupe;

namespace {

struct all_services {
  std::atomic<bool> is_ending{false};
  std::atomic<troupe::engine::cpu_workers*> pass_workers{nullptr};
};

using both = uses<with_is_ending, with_pass_workers>;
using one = uses<with_is_ending>;

// What a class has not named it does not get, and can't hand on.
template <class T>
concept knows_workers = requires(T& all) {
  all.pass_workers;
};
static_assert(knows_workers<both> && !knows_workers<one>);
static_assert(std::convertible_to<all_services&, both> && std::convertible_to<const both&, one>);
static_assert(!std::convertible_to<const one&, both> && !std::convertible_to<int&, one>);
static_assert(std::same_as<one::and_also<with_pass_workers>, both>);

}  // namespace

BOOST_AUTO_TEST_SUITE(uses_of_a_node)

BOOST_AUTO_TEST_CASE(lead_to_the_services_themselves) {
  all_services all;
  const both of_all(all);
  const one of_both(of_all);
  const one copy(of_both);
  all.is_ending = true;
  BOOST_TEST(copy.is_ending);
  BOOST_TEST(&of_all.pass_workers == &all.pass_workers);
}

BOOST_AUTO_TEST_SUITE_END()
