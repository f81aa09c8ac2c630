// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/compression.hpp>

#include <boost/test/unit_test.hpp>

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <troupe/messages/errors.hpp>

#include "cuda/float_samples.hpp"
#include "cuda/plain_codec.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

void expect_misuse(const std::string& text, const std::function<void()>& call) {
  BOOST_CHECK_EXCEPTION(call(), error, [&](const error& failed) {
    return failed.code() == errc::misuse && std::string(failed.what()).find(text) != std::string::npos;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(compression)

BOOST_AUTO_TEST_CASE(blocks_have_the_bits_of_the_plain_codec) {  // KC-2
  std::mt19937 random(1);
  for (const std::size_t count : {0, 1, 255, 256, 257, 512, 3000}) {
    std::vector<float> elements = gradients(count, 2, random);
    if (count > 300) elements[290] = std::numeric_limits<float>::infinity();
    std::vector<float> residual = gradients(count, 0.01F, random);
    const plain_codec expected(elements, residual);
    std::vector<std::int8_t> codes(count);
    std::vector<float> scales(devices::scales_for(count));
    std::vector<float> decoded(count);
    devices::encode_blocks(elements, residual, codes, scales);
    devices::decode_blocks(codes, scales, decoded);
    BOOST_TEST((codes == expected.codes));
    BOOST_TEST((bits_of(scales) == bits_of(expected.scales)));
    BOOST_TEST((bits_of(residual) == bits_of(expected.residual)));
    BOOST_TEST((bits_of(decoded) == bits_of(expected.decoded)));
  }
}

BOOST_AUTO_TEST_CASE(nothing_behind_the_spans_is_written) {  // KC-2
  const std::vector<float> elements(300, 1);
  std::vector<float> residual(310, 0), scales(12, 9), decoded(310, 9);
  std::vector<std::int8_t> codes(310, 9);
  devices::encode_blocks(elements, std::span(residual).first(300), std::span(codes).first(300), std::span(scales).first(2));
  devices::decode_blocks(std::span(codes).first(300), std::span(scales).first(2), std::span(decoded).first(300));
  for (std::size_t i = 300; i < 310; ++i)
    BOOST_TEST((residual[i] == 0 && codes[i] == 9 && scales[i - 298] == 9 && decoded[i] == 9));
}

BOOST_AUTO_TEST_CASE(an_empty_residual_stands_for_none) {  // KC-2
  std::mt19937 random(2);
  const auto elements = gradients(600, 1, random);
  const plain_codec expected(elements, std::vector<float>(600, 0));
  std::vector<std::int8_t> codes(600);
  std::vector<float> scales(3);
  devices::encode_blocks(elements, {}, codes, scales);
  BOOST_TEST((codes == expected.codes));
  BOOST_TEST((bits_of(scales) == bits_of(expected.scales)));
}

BOOST_AUTO_TEST_CASE(halves_have_the_bits_of_libtorch) {  // KC-2
  std::mt19937 random(3);
  const auto elements = any_finite(1000, random);
  std::vector<std::uint16_t> bits(1000);
  std::vector<float> back(1000);
  devices::to_bfloat16(elements, bits);
  devices::from_bfloat16(bits, back);
  for (std::size_t i = 0; i < 1000; ++i) {
    BOOST_TEST(bits[i] == c10::BFloat16(elements[i]).x);
    BOOST_TEST(back[i] == static_cast<float>(c10::BFloat16(elements[i])));
  }
  devices::to_float16(elements, bits);
  devices::from_float16(bits, back);
  for (std::size_t i = 0; i < 1000; ++i) {
    BOOST_TEST(bits[i] == c10::Half(elements[i]).x);
    BOOST_TEST(back[i] == static_cast<float>(c10::Half(elements[i])));
  }
}

BOOST_AUTO_TEST_CASE(spans_that_do_not_fit_are_refused) {  // KC-1
  const std::vector<float> elements(300, 1);
  std::vector<float> residual(300, 2);
  std::vector<std::int8_t> codes(300, 3);
  std::vector<float> scales(2, 4);
  std::vector<float> fewer(299);
  std::vector<std::uint16_t> bits(299);
  expect_misuse("to_bfloat16: expected a span of 300 for the results, got 299", [&] { devices::to_bfloat16(elements, bits); });
  expect_misuse("to_float16: ", [&] { devices::to_float16(elements, bits); });
  expect_misuse("from_bfloat16: ", [&] { devices::from_bfloat16(bits, residual); });
  expect_misuse("from_float16: ", [&] { devices::from_float16(bits, residual); });
  expect_misuse("encode_blocks: expected a span of 300 for the residual, got 299",
                [&] { devices::encode_blocks(elements, fewer, codes, scales); });
  expect_misuse("for the codes, got 299",
                [&] { devices::encode_blocks(elements, residual, std::span(codes).first(299), scales); });
  expect_misuse("expected a span of 2 for the scales, got 1",
                [&] { devices::encode_blocks(elements, residual, codes, std::span(scales).first(1)); });
  expect_misuse("decode_blocks: expected a span of 2 for the scales, got 299",
                [&] { devices::decode_blocks(codes, fewer, residual); });
  expect_misuse("for the elements, got 299", [&] { devices::decode_blocks(codes, scales, fewer); });
  BOOST_TEST((residual == std::vector<float>(300, 2)));
  BOOST_TEST((codes == std::vector<std::int8_t>(300, 3)));
}

BOOST_AUTO_TEST_SUITE_END()
