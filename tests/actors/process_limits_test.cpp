// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/process_limits.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include <string>

BOOST_AUTO_TEST_SUITE(limits_of_the_process)

BOOST_AUTO_TEST_CASE(descriptors_are_raised_to_the_hard_limit) {
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  auto few = before;
  few.rlim_cur = 256;
  BOOST_REQUIRE(few.rlim_max > 256U);
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  BOOST_TEST(troupe::raise_descriptor_limit() == before.rlim_max);
  rlimit now{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &now) == 0);
  BOOST_TEST(now.rlim_cur == before.rlim_max);
  BOOST_TEST(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

BOOST_AUTO_TEST_CASE(limits_on_threads_have_their_names) {
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NPROC, &before) == 0);
  auto few = before;
  few.rlim_cur = before.rlim_max == RLIM_INFINITY ? 12345 : before.rlim_max;
  BOOST_REQUIRE(::setrlimit(RLIMIT_NPROC, &few) == 0);
  const auto text = troupe::limits_on_threads();
  BOOST_TEST(
    text.find("this user may have " + std::to_string(few.rlim_cur) + " processes and threads (RLIMIT_NPROC, ulimit -u)") == 0U,
    text);
  BOOST_TEST(::setrlimit(RLIMIT_NPROC, &before) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
