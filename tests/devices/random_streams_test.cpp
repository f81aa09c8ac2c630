// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <c10/core/Stream.h>

#include "devices/random_programs.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe::test;

BOOST_FIXTURE_TEST_CASE(random_programs_on_streams_have_the_gradients_of_the_cpu, simulated::fixture) {
  compare_random_programs({default_stream, stream, other, c10::Stream(c10::Stream::DEFAULT, second), simulated::new_stream(1)},
                          1000);
}
