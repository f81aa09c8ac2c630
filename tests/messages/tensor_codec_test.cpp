// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include "samples.hpp"

using namespace troupe;
using testing::shape_kind;

namespace {

at::Tensor sent_and_read(const at::Tensor& tensor) {
  autograd_message sent;
  sent.tensors = {tensor};
  autograd_message received;
  auto wire = testing::encoded(sent);
  auto failed = testing::decode(wire, received);
  BOOST_REQUIRE_MESSAGE(!failed, caf::to_string(failed));
  BOOST_REQUIRE(received.tensors.size() == 1u);
  return received.tensors.front();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_dtype_and_shape_comes_back_bit_for_bit) {
  std::uint64_t seed = 0;
  for (at::ScalarType dtype : testing::travelling_dtypes()) {
    for (int kind_index = 0; kind_index < static_cast<int>(shape_kind::count); ++kind_index) {
      auto kind = static_cast<shape_kind>(kind_index);
      BOOST_TEST_CONTEXT(c10::toString(dtype) << " " << testing::to_string(kind) << ", seed " << ++seed) {
        testing::generator random{seed};
        at::Tensor sent = testing::make_tensor(random, dtype, kind);
        at::Tensor received = sent_and_read(sent);
        BOOST_TEST(testing::same(sent, received));
        if (sent.is_non_overlapping_and_dense())
          BOOST_TEST(sent.strides() == received.strides());  // WI-4
        else
          BOOST_TEST(received.is_contiguous());
        BOOST_TEST(received.storage_offset() == 0);
        BOOST_TEST(received.storage().nbytes() == received.nbytes());
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(received.const_data_ptr()) % 64 == 0u);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(only_the_elements_of_a_view_are_sent) {
  autograd_message message;
  message.tensors = {at::zeros({1000, 1000}).narrow(1, 3, 1)};
  BOOST_TEST(testing::encoded(message).size() < 4u * 1000 + 200);
}

BOOST_AUTO_TEST_CASE(an_undefined_tensor_stays_undefined_and_costs_next_to_nothing) {
  autograd_message message;
  message.tensors = {at::Tensor{}, at::ones({2}), at::Tensor{}};
  autograd_message received;
  BOOST_REQUIRE(!testing::decode(testing::encoded(message), received));
  BOOST_TEST(testing::same(message.tensors, received.tensors));
  auto before = testing::encoded(message).size();
  message.tensors.emplace_back();
  BOOST_TEST(testing::encoded(message).size() <= before + 4);
}

BOOST_AUTO_TEST_CASE(conjugate_and_negative_bits_are_resolved) {
  at::Tensor complex = at::complex(at::randn({3, 4}), at::randn({3, 4}));
  at::Tensor received = sent_and_read(complex.conj().transpose(0, 1));
  BOOST_TEST(!received.is_conj());
  BOOST_TEST(testing::same(received, at::conj_physical(complex).transpose(0, 1)));
  at::Tensor negative = at::imag(complex.conj());
  BOOST_REQUIRE(negative.is_neg());
  BOOST_TEST(testing::same(sent_and_read(negative), at::imag(complex).neg()));
  at::Tensor half = complex.to(at::kComplexHalf);
  BOOST_TEST(testing::same(sent_and_read(half.conj()), half.conj().resolve_conj()));
}

BOOST_AUTO_TEST_CASE(a_lazy_zero_arrives_as_zeros) {
  at::Tensor received = sent_and_read(at::_efficientzerotensor({2, 3}));
  BOOST_TEST(!received._is_zerotensor());
  BOOST_TEST(testing::same(received, at::zeros({2, 3})));
}

BOOST_AUTO_TEST_CASE(a_tensor_travels_detached) {
  at::Tensor leaf = at::ones({2, 2}).requires_grad_();
  BOOST_TEST(!sent_and_read(leaf).requires_grad());
  at::Tensor gaps = (leaf * 2).narrow(1, 0, 1);
  BOOST_TEST(!sent_and_read(gaps).requires_grad());
  BOOST_TEST(testing::same(sent_and_read(gaps), gaps));
}

BOOST_AUTO_TEST_CASE(a_random_permutation_keeps_its_strides) {
  testing::generator random{5};
  for (int i = 0; i < 500; ++i) {
    BOOST_TEST_CONTEXT("draw " << i) {
      std::vector<std::int64_t> sizes(random() % 6);
      std::vector<std::int64_t> order(sizes.size());
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        sizes[d] = static_cast<std::int64_t>(random() % 4 + (random() % 8 != 0 ? 1 : 0));
        order[d] = static_cast<std::int64_t>(d);
      }
      std::shuffle(order.begin(), order.end(), random);
      at::Tensor tensor = at::randn(sizes).permute(order);
      at::Tensor received = sent_and_read(tensor);
      BOOST_TEST(testing::same(tensor, received));
      BOOST_TEST(tensor.strides() == received.strides());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_sparse_tensor_travels_as_its_indices_and_values) {
  auto indices = at::tensor({7, 2, 7, 0}, at::kLong).reshape({1, 4});
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kComplexFloat, at::kLong, at::kBool}) {
    at::Tensor sent = at::sparse_coo_tensor(indices, at::ones({4, 3}, dtype), {1 << 20, 3});
    at::Tensor received = sent_and_read(sent);
    BOOST_TEST(testing::same(sent, received), c10::toString(dtype));
    BOOST_TEST(!received.is_coalesced());  // repeated rows stay apart, because the order of their sum is the receiver's choice
    if (dtype == at::kFloat) {
      autograd_message message;
      message.tensors = {sent};
      BOOST_TEST(testing::encoded(message).size() < 300u);
      BOOST_TEST(at::equal(received.coalesce().values(), sent.coalesce().values()));
      BOOST_TEST(testing::same(sent_and_read(sent.coalesce()), sent.coalesce()));
    }
  }
  BOOST_TEST(testing::same(sent_and_read(at::zeros({3, 2}).to_sparse()), at::zeros({3, 2}).to_sparse()));
  auto conjugate = at::sparse_coo_tensor(indices, at::complex(at::ones({4}), at::ones({4})).conj(), {8});
  BOOST_TEST(at::equal(sent_and_read(conjugate).to_dense(), conjugate.to_dense()));
}

at::Tensor said_to_be_coalesced(const at::Tensor& indices) {
  const auto values = at::ones({indices.size(1)});
  return at::_sparse_coo_tensor_unsafe(indices, values, {4, 4, 4}, values.options().layout(at::kSparse), true);
}

BOOST_AUTO_TEST_CASE(coalesced_indices_ascend_as_the_digits_of_a_number_do) {
  const auto columns = [](std::vector<std::vector<std::int64_t>> each) {
    std::vector<at::Tensor> all;
    for (const auto& column : each) all.push_back(at::tensor(column, at::kLong));
    return said_to_be_coalesced(at::stack(all, 1));
  };
  for (const auto& ascending :
       {columns({{0, 3, 3}, {1, 0, 0}}), columns({{1, 2, 3}, {1, 3, 0}}), columns({{1, 2, 2}, {1, 2, 3}})})
    BOOST_TEST(testing::same(sent_and_read(ascending), ascending));
  for (const auto& bad : {columns({{1, 0, 0}, {0, 3, 3}}), columns({{1, 1, 0}, {1, 0, 3}}), columns({{1, 2, 3}, {1, 2, 2}}),
                          columns({{1, 2, 3}, {1, 2, 3}})}) {
    autograd_message message;
    message.tensors = {bad};
    autograd_message received;
    const auto failed = testing::decode(testing::encoded(message), received);
    BOOST_TEST(caf::to_string(failed).find("out of order") != std::string::npos, bad._indices() << caf::to_string(failed));
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_written_of_a_message_that_can_not_travel) {  // WI-5
  autograd_message message;
  message.tensors = {at::ones({1000}), at::eye(2).to_sparse_csr()};
  testing::bytes wire;
  auto failed = testing::encode(wire, message);
  BOOST_TEST(static_cast<bool>(failed));
  BOOST_TEST(caf::to_string(failed).find("to_dense()") != std::string::npos, caf::to_string(failed));
  BOOST_TEST(wire.empty());
}
