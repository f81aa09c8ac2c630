// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/input_buffer.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/input_buffer.hpp>

#include "engine/oracle.hpp"

using namespace troupe::engine;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(input_buffers)

namespace {

at::Tensor ours(const std::vector<at::Tensor>& values) {
  at::Tensor buffer;
  for (const at::Tensor& value : values) accumulate(buffer, value.defined() ? value.clone() : at::Tensor());
  return buffer;
}

at::Tensor libtorchs(const std::vector<at::Tensor>& values) {
  torch::autograd::InputBuffer buffer(1);
  for (const at::Tensor& value : values)
    buffer.add(0, value.defined() ? value.clone() : at::Tensor(), std::nullopt, std::nullopt, nullptr);
  return buffer.buffer[0];
}

at::Tensor sparse(std::int64_t row) {
  return at::sparse_coo_tensor(at::tensor({row}, at::kLong).unsqueeze(0), at::randn({1, 3}), {4, 3});
}

}  // namespace

BOOST_AUTO_TEST_CASE(sum_as_libtorchs_do) {
  const auto dense = [] { return at::randn({4, 3}); };
  const auto turned = at::randn({3, 4}).t();
  for (const bool grad_mode : {false, true}) {
    const c10::AutoGradMode mode(grad_mode);
    for (const auto& values : std::vector<std::vector<at::Tensor>>{{dense(), dense(), dense()},
                                                                   {dense(), turned, dense()},
                                                                   {turned, dense()},
                                                                   {sparse(1), sparse(2)},
                                                                   {dense(), sparse(1)},
                                                                   {at::_efficientzerotensor({4, 3}), dense()}})
      BOOST_TEST(difference(ours(values), libtorchs(values)) == "");
  }
}

BOOST_AUTO_TEST_CASE(sum_sparse_and_dense_ones_also_where_libtorch_cannot) {
  const std::vector<at::Tensor> values{sparse(1), at::randn({4, 3}), sparse(3)};
  {
    const c10::AutoGradMode off(false);
    BOOST_TEST(difference(ours(values), libtorchs(values)) == "");
  }
  BOOST_CHECK_THROW(libtorchs(values), c10::Error);
  BOOST_TEST(difference(ours(values), values[1] + values[0] + values[2]) == "");
}

// IB-1
BOOST_AUTO_TEST_CASE(an_undefined_value_adds_nothing) {
  const at::Tensor value = at::randn({3});
  BOOST_TEST(at::equal(ours({at::Tensor(), value, at::Tensor()}), value));
  BOOST_TEST(!ours({at::Tensor()}).defined());
}

// IB-2
BOOST_AUTO_TEST_CASE(memory_that_others_see_is_left_alone) {
  const c10::AutoGradMode off(false);
  const at::Tensor seen = at::ones({3});
  at::Tensor buffer;
  accumulate(buffer, at::Tensor(seen));
  accumulate(buffer, at::ones({3}));
  BOOST_TEST(at::equal(seen, at::ones({3})));
  const void* memory = buffer.data_ptr();
  accumulate(buffer, at::ones({3}));
  BOOST_TEST(buffer.data_ptr() == memory);
  BOOST_TEST(at::equal(buffer, at::full({3}, 3.0)));

  const at::Tensor whole = at::ones({6});
  at::Tensor part;
  accumulate(part, whole.narrow(0, 0, 3));
  accumulate(part, at::ones({3}));
  BOOST_TEST(at::equal(whole, at::ones({6})));
}

BOOST_AUTO_TEST_SUITE_END()
