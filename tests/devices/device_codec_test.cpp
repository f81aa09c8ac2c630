// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/device_codec.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/devices/compressed_tensors.hpp>
#include <troupe/devices/tensor_packing.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/packed_tensors.hpp>

#include "support/contains.hpp"
#include "support/simulated_codec.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::array formats{wire_format::bfloat16, wire_format::float16, wire_format::int8};
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct message {
  std::vector<at::Tensor> tensors;
  std::vector<packing> packings;
};

bool same_bits(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes() && one.strides() == other.strides() && one.dtype() == other.dtype() &&
         at::equal(one.contiguous().view(at::kByte), other.contiguous().view(at::kByte));
}

struct codec_fixture : simulated::fixture {
  /// What leaves if the tensors of the device are compressed where they are.
  message from_device(std::vector<at::Tensor> tensors, wire_format format, const residual_line& residuals = {}) {
    auto staged = stage.to_host_coded(std::move(tensors), format, residuals);
    staged.wait();
    message result{staged.tensors, {}};
    coded = staged.rest ? staged.rest->coded.size() : 0;
    if (staged.rest) devices::finish(*staged.rest, result.tensors, result.packings, stage).wait();
    pack_all(result.tensors, result.packings, format, memory, residuals);
    return result;
  }
  message from_host(std::vector<at::Tensor> tensors, wire_format format, const residual_line& residuals = {}) {
    message result{std::move(tensors), {}};
    pack_all(result.tensors, result.packings, format, memory, residuals);
    return result;
  }
  void check_same(const at::Tensor& tensor, wire_format format, const std::string& what) {
    const auto expected = from_host({tensor}, format);
    const auto found = from_device({tensor.to(first)}, format);
    BOOST_TEST_CONTEXT(what << " as " << to_text(format)) {
      BOOST_TEST(coded == 1U);
      BOOST_TEST((found.packings == expected.packings));
      BOOST_TEST(same_bits(found.tensors.at(0), expected.tensors.at(0)));
    }
  }

  simulated::own_kernels kernels;
  devices::staging stage;
  tensor_memory memory;
  std::size_t coded = 0;
};

/// Values whose magnitudes are drawn from the whole range of float32.
at::Tensor of_all_magnitudes(std::int64_t count) { return at::randn({count}) * at::exp2(at::rand({count}) * 250 - 126); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(compression_by_devices, codec_fixture)

BOOST_AUTO_TEST_CASE(makes_the_bits_of_the_host) {
  for (const auto format : formats) {
    check_same(at::randn({5000}), format, "usual values");
    check_same(at::randn({64, 33}).t(), format, "a transposed matrix");
    check_same(at::zeros({2048}), format, "zeros");
    check_same(at::full({1024}, 1e-40F), format, "denormal values");
    check_same(of_all_magnitudes(4096) * 0.01F, format, "values of all magnitudes");
    check_same(at::full({1024}, 0x1p+126F), format, "large values");
    check_same(at::full({1024}, 0x1.fp+127F), format, "values that float16 can't hold");
  }
}

BOOST_AUTO_TEST_CASE(leaves_to_the_host_what_a_format_can_not_hold) {  // XC-2
  for (const auto format : formats)
    for (const auto value : {infinity, -infinity, not_a_number, 3.4e38F}) {
      auto tensor = at::randn({3000});
      tensor[2999] = value;
      check_same(tensor, format, "a value " + std::to_string(value));
    }
}

BOOST_AUTO_TEST_CASE(leaves_alone_what_is_not_to_be_compressed) {
  const std::vector<at::Tensor> others{at::ones({1023}), at::ones({2000}, at::kDouble), at::arange(3000), at::Tensor()};
  for (const auto format : formats) {
    std::vector<at::Tensor> there;
    for (const auto& each : others) there.push_back(each.defined() ? each.to(first) : each);
    const auto found = from_device(there, format);
    BOOST_TEST((coded == 0U && found.packings.empty()));
    for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(same_bits(found.tensors[i], others[i]));
  }
  BOOST_TEST(!devices::is_codable(at::ones({2000}, at::device(first)), wire_format::exact));
  BOOST_TEST(!devices::is_codable(at::ones({2000}), wire_format::int8));
}

BOOST_AUTO_TEST_CASE(few_bytes_leave_the_device_in_one_copy) {
  const auto x = at::randn({10'000}).to(first);
  const auto bytes_before = simulated::host_bytes();
  const auto before = simulated::host_copies();
  from_device({x, x + 1, at::ones({3}, at::device(first))}, wire_format::bfloat16);
  BOOST_TEST(simulated::host_bytes() - bytes_before < 2 * 10'000 * 2 + 200);
  BOOST_TEST(simulated::host_copies() - before == 1U);
}

BOOST_AUTO_TEST_CASE(residuals_stay_on_the_device_and_make_the_bits_of_the_host) {
  residual_book here(1 << 20);
  residual_book there(1 << 20);
  for (int step = 0; step < 4; ++step) {
    const auto x = at::randn({40, 50});
    const auto expected = from_host({x}, wire_format::int8, {&here, {7}, 5});
    const c10::StreamGuard on(step % 2 == 0 ? stream : other);  // each step on another stream
    const auto found = from_device({x.to(first)}, wire_format::int8, {&there, {7}, 5});
    BOOST_TEST((coded == 1U && same_bits(found.tensors.at(0), expected.tensors.at(0))), "step " << step);
  }
  const auto kept = there.take({{7}, 5, 0}, at::empty({40, 50}, at::device(first)));
  BOOST_TEST((kept.device() == first && at::equal(kept.cpu(), here.take({{7}, 5, 0}, at::empty({40, 50})))));
}

BOOST_AUTO_TEST_CASE(a_residual_of_another_device_does_not_count) {  // ER-2
  residual_book book(1 << 20);
  const auto x = at::randn({2000});
  from_device({x.to(first)}, wire_format::int8, {&book, {7}, 5});
  const auto found = from_device({x.to(second)}, wire_format::int8, {&book, {7}, 5});
  BOOST_TEST(same_bits(found.tensors.at(0), from_host({x}, wire_format::int8).tensors.at(0)));
  const auto on_host = from_host({x}, wire_format::int8, {&book, {7}, 5});
  BOOST_TEST(same_bits(on_host.tensors.at(0), found.tensors.at(0)));
}

BOOST_AUTO_TEST_CASE(what_a_format_can_not_hold_has_the_elements_of_its_time) {  // ST-1, XC-2
  for (const auto format : formats) {
    auto x = at::randn({3000});
    x[5] = not_a_number;
    const c10::StreamGuard on(stream);
    auto there = x.to(first);
    simulated::synchronize();
    simulated::gate late(stream);
    residual_book book(1 << 20);
    auto staged = stage.to_host_coded({there}, format, {&book, {7}, 5});
    there.zero_();
    late.open();
    staged.wait();
    simulated::gate program(stream);  // later work of the program
    auto tensors = staged.tensors;
    std::vector<packing> packings;
    devices::finish(*staged.rest, tensors, packings, stage).wait();
    BOOST_TEST((packings.empty() && same_bits(tensors.at(0), x)), to_text(format));
  }
}

BOOST_AUTO_TEST_CASE(a_device_without_memory_for_elements_is_an_error_that_names_them) {
  auto came = from_host({at::randn({2000})}, wire_format::bfloat16);
  const simulated::scarce_memory full(1);
  BOOST_CHECK_EXCEPTION(devices::unpack_to_devices(came.tensors, came.packings, {first}, "argument", memory, {}), error,
                        [](const error& failed) {
                          return failed.code() == errc::function_failed &&
                                 contains(failed.what(), "argument[0] could not be decompressed on simulated:0");
                        });
}

BOOST_AUTO_TEST_CASE(no_thread_waits_for_codes_and_later_work_does_not_change_them) {  // XC-1, ST-1
  for (const bool feeds_back : {false, true}) {
    residual_book book(1 << 20);
    const auto x = at::randn({5000});
    const c10::StreamGuard on(stream);
    const auto sent = x.to(first);
    simulated::synchronize();
    simulated::gate late(stream);
    auto there = sent + 1;
    auto staged = stage.to_host_coded({there}, wire_format::int8, feeds_back ? residual_line{&book, {7}, 5} : residual_line{});
    there.zero_();  // after the codes were made, on the same stream
    there.reset();
    simulated::settle();
    BOOST_TEST(!staged.ready());
    late.open();
    staged.wait();
    BOOST_TEST(same_bits(staged.tensors.at(0), from_host({x + 1}, wire_format::int8).tensors.at(0)), feeds_back);
  }
}

BOOST_AUTO_TEST_CASE(int8_without_kernels_is_made_by_the_host) {  // XC-3
  const auto x = at::randn({5000});
  devices::set_kernels(at::kPrivateUse1, nullptr);
  const auto found = from_device({x.to(first)}, wire_format::int8);
  BOOST_TEST(coded == 0U);
  BOOST_TEST(same_bits(found.tensors.at(0), from_host({x}, wire_format::int8).tensors.at(0)));
}

BOOST_AUTO_TEST_CASE(what_arrives_goes_to_its_device_in_few_bytes) {
  for (const auto format : formats) {
    const auto x = at::randn({100, 90}).t();
    auto came = from_host({x, at::ones({3}), x * 2, at::Tensor()}, format);
    auto expected = came;
    unpack_all(expected.tensors, expected.packings, memory);
    const auto before = simulated::host_bytes();
    devices::unpack_to_devices(came.tensors, came.packings, {first, at::kCPU, second, first}, "argument", memory, {});
    BOOST_TEST(simulated::host_bytes() - before <= 2 * 2 * 9000U, to_text(format));
    BOOST_TEST((came.packings.empty() && came.tensors[1].is_cpu() && !came.tensors[3].defined()));
    BOOST_TEST((came.tensors[0].device() == first && came.tensors[2].device() == second));
    for (const auto i : {0U, 2U}) {
      BOOST_TEST(same_bits(came.tensors[i].cpu(), expected.tensors[i]), to_text(format));
      BOOST_TEST(came.tensors[i].strides() == x.strides());
    }
  }
}

BOOST_AUTO_TEST_CASE(each_exponent_of_float16_is_undone_as_on_the_host) {
  for (int exponent = -126; exponent <= 120; exponent += 3) {
    auto came = from_host({at::randn({1024}).clamp(-1, 1) * std::ldexp(1.0F, exponent)}, wire_format::float16);
    auto expected = came;
    unpack_all(expected.tensors, expected.packings, memory);
    devices::unpack_to_devices(came.tensors, came.packings, {first}, "argument", memory, {});
    BOOST_TEST(same_bits(came.tensors[0].cpu(), expected.tensors[0]), "exponent " << exponent);
  }
}

BOOST_AUTO_TEST_CASE(bytes_that_do_not_fit_are_refused_before_a_device_gets_them) {
  auto came = from_host({at::randn({2000})}, wire_format::int8);
  static_cast<std::uint8_t*>(came.tensors[0].mutable_data_ptr())[came.tensors[0].nbytes() - 1] = 0xff;  // of a scale
  const auto before = simulated::host_bytes();
  BOOST_CHECK_EXCEPTION(devices::unpack_to_devices(came.tensors, came.packings, {first}, "argument", memory, {}), error,
                        [](const error& refused) { return refused.code() == errc::malformed_message; });
  BOOST_TEST(simulated::host_bytes() == before);
}

BOOST_AUTO_TEST_SUITE_END()
