// SPDX-License-Identifier: BSD-3-Clause
#include "nn.hpp"

#include <boost/test/unit_test.hpp>
