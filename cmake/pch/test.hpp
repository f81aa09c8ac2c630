// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>
