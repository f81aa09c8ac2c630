// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensor_rules.hpp>

#include "samples.hpp"

using namespace troupe;

namespace {

constexpr std::array formats{wire_format::bfloat16, wire_format::float16, wire_format::int8};

/// Packs one tensor, sends it through the codec and unpacks it.
at::Tensor there_and_back(const at::Tensor& tensor, wire_format format) {
  tensor_memory memory;
  autograd_message sent;
  sent.tensors = {tensor};
  pack_all(sent.tensors, sent.packings, format, memory);
  autograd_message received;
  const auto wire = testing::encoded(sent);
  if (const auto failed = testing::decode(wire, received)) BOOST_FAIL(caf::to_string(failed));
  BOOST_TEST((received.packings == sent.packings));
  unpack_all(received.tensors, received.packings, memory);
  return received.tensors.at(0);
}

bool is_packed(const at::Tensor& tensor, wire_format format) {
  tensor_memory memory;
  return pack(tensor, format, memory).has_value();
}

double largest_error(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

auto says(const char* text) {
  return [text](const error& e) { return std::string(e.what()).find(text) != std::string::npos; };
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_tensor_comes_back_as_the_format_says) {  // PF-2
  at::manual_seed(1);
  const auto x = at::randn({40, 100});
  BOOST_TEST(at::equal(there_and_back(x, wire_format::bfloat16), x.to(at::kBFloat16).to(at::kFloat)));
  BOOST_TEST(at::allclose(there_and_back(x, wire_format::float16), x, 0x1p-11, 1e-12));
  BOOST_TEST(largest_error(there_and_back(x, wire_format::int8), x) <= x.abs().max().item<double>() / 253);
}

BOOST_AUTO_TEST_CASE(sizes_and_strides_come_back) {  // PF-2
  const auto base = at::arange(4096, at::kFloat);
  for (const auto format : formats)
    for (const auto& x : {base, base.view({64, 64}), base.view({16, 16, 16}).permute({2, 0, 1}), base.view({1, 4096, 1}),
                          base.as_strided({1, 4096}, {77, 1})}) {
      const auto back = there_and_back(x, format);
      BOOST_TEST(back.sizes() == x.sizes());
      BOOST_TEST(back.strides() == x.strides());
      BOOST_TEST(back.is_contiguous() == x.is_contiguous());
      BOOST_TEST(at::allclose(back, x, 1e-2, 17));
    }
}

BOOST_AUTO_TEST_CASE(packed_tensors_take_the_bytes_that_are_promised) {
  tensor_memory memory;
  const auto x = at::ones({1025});
  BOOST_TEST(pack(x, wire_format::bfloat16, memory)->bytes.nbytes() == 2050u);
  BOOST_TEST(pack(x, wire_format::float16, memory)->bytes.nbytes() == 2050u);
  BOOST_TEST(pack(x, wire_format::int8, memory)->bytes.nbytes() == 1028u + 5 * 4);
}

BOOST_AUTO_TEST_CASE(only_large_float32_tensors_are_packed) {  // PF-1
  for (const auto format : formats) {
    BOOST_TEST(is_packed(at::ones({1024}), format));
    BOOST_TEST(!is_packed(at::ones({1023}), format));
    for (const auto dtype : {at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kBool, at::kComplexFloat})
      BOOST_TEST(!is_packed(at::ones({4096}, dtype), format));
    BOOST_TEST(!is_packed(at::ones({64, 64}).to_sparse(), format));
    BOOST_TEST(!is_packed(at::Tensor(), format));
  }
  BOOST_TEST(!is_packed(at::ones({4096}), wire_format::exact));
}

BOOST_AUTO_TEST_CASE(a_value_that_does_not_fit_is_never_lost) {  // PF-1
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto format : formats)
    for (const float value : {infinity, -infinity, nan, 3.4e38F, 0x1p+127F, 65504.0F, 1e6F, 1e-7F, 1e-30F, 0x1p-149F, 0.0F}) {
      auto x = at::full({3000}, value);
      BOOST_TEST_CONTEXT(to_text(format) << ", all " << value) {
        const auto back = there_and_back(x, format);
        if (std::isnan(value))
          BOOST_TEST(back.isnan().all().item<bool>());
        else if (value > 0 && value < (format == wire_format::int8       ? 0x1p-143F
                                       : format == wire_format::bfloat16 ? 0x1p-134F
                                                                         : 0))
          BOOST_TEST(back.eq(0).all().item<bool>());
        else
          BOOST_TEST(at::allclose(back, x, 0.004, 0));
      }
      x = at::rand({3000});
      x[2999] = value;
      BOOST_TEST_CONTEXT(to_text(format) << ", one " << value) {
        const auto back = there_and_back(x, format);
        BOOST_TEST(at::allclose(back.narrow(0, 0, 2560), x.narrow(0, 0, 2560), 0.01, 0.005));
        if (std::isnan(value))
          BOOST_TEST(std::isnan(back[2999].item<float>()));
        else
          BOOST_TEST(at::allclose(back[2999], x[2999], 0.01, 0.01));
      }
    }
}

BOOST_AUTO_TEST_CASE(float16_keeps_its_precision_at_any_size_of_the_elements) {  // PF-1
  at::manual_seed(2);
  const auto x = at::randn({2000});
  for (const double size : {1e-35, 1e-10, 1.0, 1e10, 1e35}) {
    const auto of_size = x * size;
    BOOST_TEST(is_packed(of_size, wire_format::float16));
    BOOST_TEST(at::allclose(there_and_back(of_size, wire_format::float16), of_size, 0x1p-11, size * 0x1p-36));
  }
}

BOOST_AUTO_TEST_CASE(a_message_may_hold_tensors_of_all_kinds) {  // PF-1, PF-2
  tensor_memory memory;
  at::manual_seed(3);
  const auto large = at::randn({50, 50});
  autograd_message sent;
  sent.tensors = {at::Tensor(), large, at::ones({3}), at::eye(40).to_sparse(), at::arange(5000), large, at::randn({2000}).t()};
  const auto given = sent.tensors;
  pack_all(sent.tensors, sent.packings, wire_format::int8, memory);
  BOOST_TEST(sent.tensors[5].is_same(sent.tensors[1]));  // packed once
  BOOST_TEST(plain_bytes(sent.tensors, sent.packings) == payload_bytes(given));
  BOOST_TEST(payload_bytes(sent.tensors) < payload_bytes(given));
  autograd_message received;
  BOOST_REQUIRE(!testing::decode(testing::encoded(sent), received));
  unpack_all(received.tensors, received.packings, memory);
  BOOST_TEST(received.packings.empty());
  for (const std::size_t exact : {0u, 2u, 3u, 4u}) BOOST_TEST(testing::same(received.tensors[exact], given[exact]));
  for (const std::size_t close : {1u, 5u, 6u}) BOOST_TEST(largest_error(received.tensors[close], given[close]) < 0.02);
}

BOOST_AUTO_TEST_CASE(nothing_to_pack_leaves_no_packings) {
  tensor_memory memory;
  std::vector<at::Tensor> tensors{at::ones({3}), at::ones({5000}, at::kDouble)};
  std::vector<packing> packings;
  pack_all(tensors, packings, wire_format::int8, memory);
  BOOST_TEST(packings.empty());
}

// A tensor that occurs twice comes with one memory of bytes. A message could name the same bytes a thousand times.
BOOST_AUTO_TEST_CASE(what_stands_behind_a_repeated_tensor_is_packed_too) {
  tensor_memory memory;
  const auto x = at::rand({2000});
  const auto y = at::rand({3000});
  std::vector<at::Tensor> forms{x, x, y};
  std::vector<packing> packings;
  pack_all(forms, packings, wire_format::int8, memory);
  BOOST_REQUIRE_EQUAL(packings.size(), 3u);
  for (const auto& each : packings) BOOST_TEST((each.format == wire_format::int8));
  BOOST_TEST(forms[0].is_same(forms[1]));
}

BOOST_AUTO_TEST_CASE(what_stands_behind_a_repeated_tensor_that_goes_exactly_is_packed_too) {  // PF-1
  tensor_memory memory;
  auto wide = at::rand({2000});
  wide[0] = 3.4e38F;  // bfloat16 would make infinity of it
  std::vector<at::Tensor> forms{wide, wide, at::rand({3000})};
  std::vector<packing> packings;
  pack_all(forms, packings, wire_format::bfloat16, memory);
  BOOST_REQUIRE_EQUAL(packings.size(), 3u);
  for (const std::size_t exact : {0u, 1u}) BOOST_TEST((packings[exact].format == wire_format::exact));
  for (const std::size_t exact : {0u, 1u}) BOOST_TEST(forms[exact].is_same(wide));
  BOOST_TEST((packings[2].format == wire_format::bfloat16));
}

BOOST_AUTO_TEST_CASE(the_last_element_of_a_large_tensor_comes_back) {
  for (const auto format : formats)
    for (const std::int64_t count : {(std::int64_t{1} << 17) + 1, (std::int64_t{1} << 20) + 1}) {
      const auto back = there_and_back(at::full({count}, 2.0), format);
      BOOST_TEST(back[count - 1].item<float>() == 2.0F);
    }
}

BOOST_AUTO_TEST_CASE(contiguous_tensors_take_no_strides_and_zeros_no_exponent) {
  tensor_memory memory;
  const auto packed = pack(at::zeros({40, 50}), wire_format::float16, memory);
  BOOST_REQUIRE(packed.has_value());
  BOOST_TEST(packed->how.strides.empty());
  BOOST_TEST(packed->how.exponent == 0);
}

BOOST_AUTO_TEST_CASE(exact_tensors_take_no_packing) {
  tensor_memory memory;
  const auto x = at::rand({2000});
  std::vector<at::Tensor> forms{x};
  std::vector<packing> packings;
  pack_all(forms, packings, wire_format::exact, memory);
  BOOST_TEST(packings.empty());
  BOOST_TEST(forms[0].is_same(x));
  BOOST_TEST(packed_bytes(wire_format::exact, 10) == 40u);
}

BOOST_AUTO_TEST_CASE(the_same_bytes_are_unpacked_once) {
  tensor_memory memory;
  auto packed = *pack(at::randn({64, 32}), wire_format::int8, memory);
  std::vector<at::Tensor> tensors(3, packed.bytes);
  std::vector<packing> packings(3, packed.how);
  unpack_all(tensors, packings, memory);
  BOOST_TEST(tensors[1].const_data_ptr() == tensors[0].const_data_ptr());
  BOOST_TEST(tensors[2].sizes() == tensors[0].sizes());
  const auto before = tensors[0].clone();
  tensors[1].zero_();
  BOOST_TEST(at::equal(tensors[0], before));
  BOOST_TEST(at::equal(tensors[2], before));
  tensors.assign(2, packed.bytes);
  packings.assign(2, packed.how);
  packings[1].sizes = {32, 64};
  BOOST_CHECK_EXCEPTION(unpack_all(tensors, packings, memory), error, says("are said to be different tensors"));
}

BOOST_AUTO_TEST_CASE(packings_that_do_not_fit_are_refused) {  // PF-3
  tensor_memory memory;
  const auto refused = [&](const at::Tensor& bytes, const packing& how, const char* why) {
    std::vector<at::Tensor> tensors{bytes};
    std::vector<packing> packings{how};
    BOOST_CHECK_EXCEPTION(unpack_all(tensors, packings, memory), error, says(why));
  };
  const packing good{wire_format::bfloat16, 0, {2000}, {}};
  const auto bytes = at::zeros({4000}, at::kByte);
  auto huge = good;
  huge.sizes = {std::int64_t{1} << 58};
  refused(bytes, huge, "another number of bytes");
  huge.sizes = {-1};
  refused(bytes, huge, "sizes that no tensor has");
  auto strided = good;
  strided.strides = {1, 1};
  refused(bytes, strided, "sizes that no tensor has");
  auto other = good;
  other.format = wire_format::int8;
  refused(bytes, other, "another number of bytes");
  other.format = static_cast<wire_format>(9);
  refused(bytes, other, "a format that is not known");
  auto far = good;
  far.exponent = 127;
  refused(bytes, far, "an exponent");
  auto blocks = good;
  blocks.format = wire_format::int8;
  constexpr std::int64_t codes = 2000;  // 8 scales follow
  for (const float scale :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0F, -0.0F, 2.7e36F}) {
    auto hostile = at::ones({codes + 8 * 4}, at::kByte);
    hostile.narrow(0, codes + 7 * 4, 4).view(at::kFloat).fill_(scale);
    refused(hostile, blocks, "a scale that is negative, infinite or NaN");
  }
  for (const std::int64_t scales : {0, 7, 9})  // fewer and more than blocks
    refused(at::zeros({codes + scales * 4}, at::kByte), blocks, "another number of bytes");
  refused(at::zeros({1000}), good, "no bytes");
  refused(at::Tensor(), good, "no bytes");
  std::vector<at::Tensor> tensors{bytes};
  std::vector<packing> packings{good, good};
  BOOST_CHECK_EXCEPTION(unpack_all(tensors, packings, memory), error, says("1 tensors, and says of 2"));
}

BOOST_AUTO_TEST_CASE(repeated_gradients_are_exact_in_the_mean_with_residuals_alone) {  // ER-1
  tensor_memory memory;
  at::manual_seed(4);
  const auto gradient = at::randn({2048}) * at::logspace(-4, 0, 2048);  // many elements are less than half a step
  const auto mean = [&](residual_book* book) {
    auto sum = at::zeros({2048}, at::kDouble);
    constexpr int times = 400;
    for (int i = 0; i < times; ++i) {
      std::vector<at::Tensor> tensors{gradient};
      std::vector<packing> packings;
      pack_all(tensors, packings, wire_format::int8, memory, {book, node_id{5}, 1});
      unpack_all(tensors, packings, memory);
      sum += tensors[0];
    }
    return largest_error(sum / times, gradient);
  };
  residual_book book(1 << 20);
  const auto with = mean(&book);
  const auto without = mean(nullptr);
  BOOST_TEST(with < 1e-4);
  BOOST_TEST(without > 20 * with);
}

BOOST_AUTO_TEST_CASE(a_gradient_that_is_not_finite_ends_its_residual) {
  tensor_memory memory;
  residual_book book(1 << 20);
  const auto send = [&](const at::Tensor& gradient) {
    std::vector<at::Tensor> tensors{gradient};
    std::vector<packing> packings;
    pack_all(tensors, packings, wire_format::int8, memory, {&book, node_id{5}, 77});
    return packings.empty();
  };
  auto gradient = at::rand({2000});
  BOOST_TEST(!send(gradient));
  BOOST_TEST(book.bytes() == 8000u);
  gradient[3] = std::numeric_limits<float>::infinity();
  BOOST_TEST(send(gradient));
  BOOST_TEST(book.bytes() == 0u);
  gradient[3] = 1;
  BOOST_TEST(!send(gradient));
}

BOOST_AUTO_TEST_CASE(what_a_device_has_compressed_travels_unless_an_element_became_infinite) {
  packing how;
  how.format = wire_format::bfloat16;
  BOOST_TEST(complete(how, {}, 4, 0x7f7f7fff));
  BOOST_TEST(!complete(how, {}, 4, 0x7f7f8000));  // rounded to the next bfloat16, this is infinite
  how.format = wire_format::float16;
  BOOST_TEST(!complete(how, {}, 4, 0x7f000000));
  BOOST_TEST(complete(how, {}, 4, 0x7effffff));
  BOOST_TEST(how.exponent < 0);
}
