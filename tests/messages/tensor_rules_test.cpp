// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <set>

#include <ATen/ATen.h>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/tensor_rules.hpp>

#include "samples.hpp"

using namespace troupe;

namespace {

void check_refused(const at::Tensor& tensor, std::initializer_list<std::string> words) {
  try {
    check_can_travel(tensor, "argument 'x' of 'forward'");
    BOOST_ERROR("not refused: " << describe(tensor));
  } catch (const error& refused) {
    BOOST_CHECK(refused.code() == errc::unsupported_tensor);
    std::string text = refused.what();
    BOOST_TEST(text.starts_with("argument 'x' of 'forward': "), text);
    for (const std::string& word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << text << "' lacks '" << word << "'");
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_dtype_has_a_number_or_is_refused) {
  std::set<at::ScalarType> travelling(testing::travelling_dtypes().begin(), testing::travelling_dtypes().end());
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i) {
    auto dtype = static_cast<at::ScalarType>(i);
    auto number = wire_number(dtype);
    BOOST_TEST(number.has_value() == (travelling.count(dtype) == 1), c10::toString(dtype));
    BOOST_CHECK(!number || dtype_of(*number) == dtype);
  }
  BOOST_TEST(!wire_number(at::ScalarType::Undefined));
  BOOST_TEST(!dtype_of(static_cast<std::uint32_t>(travelling.size())));
  BOOST_TEST(!dtype_of(~std::uint32_t{0}));
}

BOOST_AUTO_TEST_CASE(numbers_of_dtypes_stay) {
  const auto& dtypes = testing::travelling_dtypes();
  for (std::uint32_t i = 0; i < dtypes.size(); ++i) BOOST_TEST(*wire_number(dtypes[i]) == i, c10::toString(dtypes[i]));
}

BOOST_AUTO_TEST_CASE(devices_have_numbers_that_stay) {
  const std::pair<c10::Device, std::uint32_t> known[] = {{c10::Device(at::kCPU), 0},
                                                         {c10::Device(at::kCUDA, 0), 0x10000},
                                                         {c10::Device(at::kCUDA, 7), 0x10007},
                                                         {c10::Device(at::kPrivateUse1, 1), 0x20001}};
  for (const auto& [device, number] : known) {
    BOOST_TEST(*wire_number(device) == number, device.str());
    BOOST_CHECK(wire_device(number) == device);
  }
  BOOST_TEST(*wire_number(c10::Device(at::kCUDA)) == 0x10000U);  // without an index: the first device
  BOOST_TEST(!wire_number(c10::Device(at::kMeta)));
  BOOST_TEST(!wire_device(1));           // a second CPU
  BOOST_TEST(!wire_device(0x10080));     // an index beyond the highest possible one
  BOOST_TEST(!wire_device(0x00ff0000));  // a kind of device of a later version
}

BOOST_AUTO_TEST_CASE(what_can_travel_is_let_through) {
  testing::generator random{3};
  for (int i = 0; i < 300; ++i) check_can_travel(testing::make_tensor(random), "x");
  check_can_travel(at::ones({2}).requires_grad_(), "x");
  check_can_travel(at::conj(at::ones({2}, at::kComplexFloat)), "x");
  check_can_travel(at::_efficientzerotensor({2}), "x");
  check_can_travel(at::eye(2).to_sparse(), "x");
}

BOOST_AUTO_TEST_CASE(other_layouts_are_refused_by_name) {
  check_refused(at::eye(3).to_sparse_csr(), {"Float[3, 3]", "SparseCsr", "to_dense()"});
  check_refused(at::_nested_tensor_from_tensor_list({at::ones({2}), at::ones({3})}), {"nested"});
  if (at::hasMKLDNN()) check_refused(at::ones({2, 2}).to_mkldnn(), {"Mkldnn", "to_dense()"});
}

BOOST_AUTO_TEST_CASE(quantised_and_bit_tensors_are_refused_by_name) {
  check_refused(at::quantize_per_tensor(at::ones({3}), 0.1, 0, at::kQInt8), {"QInt8[3]", "quantised", "dequantize()"});
  check_refused(at::empty({3}, at::kBits8), {"Bits8[3]", "dtype"});
  check_refused(at::empty({3}, at::ScalarType::UInt4), {"UInt4[3]", "dtype"});
}

BOOST_AUTO_TEST_CASE(tensors_without_elements_here_are_refused) {
  check_refused(at::empty({3}, at::device(at::kMeta)), {"meta", "cpu()"});
  at::Tensor freed = at::ones({100});
  freed.storage().unsafeGetStorageImpl()->set_nbytes(4);
  check_refused(freed, {"less storage"});
}

BOOST_AUTO_TEST_CASE(a_storage_that_ends_before_the_last_element_is_refused) {
  const auto with_storage_of = [](at::Tensor tensor, std::int64_t elements) {
    tensor.storage().unsafeGetStorageImpl()->set_nbytes(static_cast<std::size_t>(elements) * tensor.element_size());
    return tensor;
  };
  for (const auto& whole : {at::ones({2, 5}), at::ones({10}).narrow(0, 3, 7), at::ones({4, 5}).t().narrow(0, 0, 3),
                            at::ones({1}).expand({6}), at::ones({}), at::ones({2}, at::kComplexDouble)}) {
    auto least = whole.storage_offset() + 1;
    for (std::int64_t d = 0; d < whole.dim(); ++d) least += (whole.size(d) - 1) * whole.stride(d);
    check_can_travel(with_storage_of(whole, least), "x");
    check_refused(with_storage_of(whole, least - 1), {"less storage"});
  }
}

BOOST_AUTO_TEST_CASE(shapes_no_peer_would_read_are_refused) {
  check_refused(at::empty(std::vector<std::int64_t>(max_tensor_dimensions + 1, 1)), {"1025 dimensions"});
  check_refused(at::empty({0, std::int64_t{1} << 60}), {"overflows"});
  check_refused(at::empty({1}, at::kByte).expand({std::int64_t{1} << 33}), {"8589934592 bytes", "in parts"});
}

BOOST_AUTO_TEST_CASE(of_many_tensors_the_one_that_fails_is_named) {
  std::vector<at::Tensor> tensors = {at::ones({1}), at::Tensor{}, at::eye(2).to_sparse_csr()};
  BOOST_CHECK_EXCEPTION(check_can_travel(tensors, "result of 'forward'"), error, [](const error& refused) {
    return std::string(refused.what()).starts_with("result of 'forward'[2]: ");
  });
}

BOOST_AUTO_TEST_CASE(the_bytes_of_many_tensors_count_together) {
  auto large = at::empty({1}, at::kByte).expand({std::int64_t{3} << 30});
  auto sparse = at::sparse_coo_tensor(at::zeros({1, 1}, at::kLong), at::empty({1, 1}).expand({1, std::int64_t{1} << 29}),
                                      {4, std::int64_t{1} << 29});
  BOOST_CHECK_THROW(check_can_travel(std::vector<at::Tensor>{large, sparse}, "x"), error);
  check_can_travel(std::vector<at::Tensor>{large}, "x");
  BOOST_CHECK_THROW(check_can_travel(std::vector<at::Tensor>{large, large}, "x"), error);
}

BOOST_AUTO_TEST_CASE(more_tensors_than_a_message_may_have_are_refused) {
  const auto says = [](const std::string& words) {
    return [words](const error& refused) {
      BOOST_CHECK(refused.code() == errc::unsupported_tensor);
      return std::string(refused.what()).find(words) != std::string::npos;
    };
  };
  std::vector<at::Tensor> tensors(max_tensors);
  check_can_travel(tensors, "x");
  tensors.emplace_back();
  BOOST_CHECK_EXCEPTION(check_can_travel(tensors, "x"), error,
                        says("it has 65537 tensors, at most 65536 travel in one message"));
  const auto shaped = at::empty(std::vector<std::int64_t>(max_tensor_dimensions, 1));
  check_count_travels(std::vector<at::Tensor>(300, shaped), "x");
  BOOST_CHECK_EXCEPTION(check_count_travels(std::vector<at::Tensor>(400, shaped), "x"), error,
                        says("the shapes of its tensors take"));
}
