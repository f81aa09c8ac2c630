// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
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

std::vector<std::string>* names = nullptr;

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

// IB-3
BOOST_AUTO_TEST_CASE(small_sums_have_the_bits_and_the_version_of_libtorchs) {
  const c10::AutoGradMode off(false);
  const auto of = [](at::ScalarType type, at::IntArrayRef shape) { return at::randn(shape, type); };
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kComplexFloat})
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {1}, {0}, {3, 5}, {1, 4, 1}, {1024}, {1025}}) {
      const std::vector<at::Tensor> values{of(type, shape), of(type, shape), of(type, shape)};
      const at::Tensor sum = ours(values);
      BOOST_TEST(difference(sum, libtorchs(values)) == "");
      BOOST_TEST(sum._version() == libtorchs(values)._version());
    }
}

// IB-3
BOOST_AUTO_TEST_CASE(small_sums_that_are_not_numbers_have_libtorchs_bits) {
  const c10::AutoGradMode off(false);
  std::mt19937_64 random(5);
  const auto special = [&] {
    const at::Tensor bits = at::empty({40}, at::kInt);
    for (std::int64_t i = 0; i < 40; ++i)
      bits[i] = static_cast<std::int32_t>(random() % 4 == 0 ? 0x7f800000U | (random() & 0x807fffffU) : random() & 0xff80ffffU);
    return bits.view(at::kFloat);
  };
  for (int i = 0; i < 200; ++i) {
    const std::vector<at::Tensor> values{special(), special(), special()};
    BOOST_TEST(difference(ours(values), libtorchs(values)) == "");
  }
}

// IB-3
BOOST_AUTO_TEST_CASE(observers_and_forward_derivatives_see_small_sums) {
  const c10::AutoGradMode off(false);
  std::vector<std::string> seen;
  const auto observed = at::addThreadLocalCallback(
    at::RecordFunctionCallback([](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
      names->push_back(call.name());
      return nullptr;
    }));
  names = &seen;
  ours({at::ones({3}), at::ones({3})});
  at::removeCallback(observed);
  BOOST_TEST(std::count(seen.begin(), seen.end(), "aten::add_") == 1);

  const auto level = torch::autograd::forward_ad::enter_dual_level();
  const at::Tensor dual = at::_make_dual(at::ones({3}), at::full({3}, 5.0), static_cast<std::int64_t>(level));
  at::Tensor buffer = at::ones({3});
  accumulate(buffer, at::Tensor(dual));
  const at::Tensor tangent = std::get<1>(at::_unpack_dual(buffer, static_cast<std::int64_t>(level)));
  torch::autograd::forward_ad::exit_dual_level(level);
  BOOST_TEST((tangent.defined() && at::equal(tangent, at::full({3}, 5.0))));
}

BOOST_AUTO_TEST_SUITE_END()
