// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/ATen.h>
#include <boost/test/unit_test.hpp>

namespace troupe::test {

/// Fails the test unless both lists have the same parameters, bit by bit.
inline void require_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_REQUIRE_MESSAGE(at::equal(a[i], b[i]), "parameter " << i << " differs");
}

}  // namespace troupe::test
