// SPDX-License-Identifier: BSD-3-Clause
// The one module of Boost.Test that every test program shares.
#define BOOST_TEST_MODULE troupe
#include <boost/test/unit_test.hpp>
