// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/tensor_packing.hpp>

#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/messages/errors.hpp>

#include "cuda/kernels_on_host.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::vector<at::Tensor> some_tensors(c10::Device device) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 40; ++i) tensors.push_back(at::randn({i, 7}, at::kFloat));
  tensors.push_back(at::randint(100, {13}, at::kByte));
  tensors.push_back(at::randn({5, 6}, at::kDouble).t());
  tensors.push_back(at::randn({}, at::kFloat));
  for (auto& each : tensors) each = each.to(device);
  return tensors;
}

std::vector<at::Tensor> empty_like(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> made;
  for (const auto& each : tensors) made.push_back(at::empty_strided(each.sizes(), each.strides(), each.options()).fill_(0));
  return made;
}

void check_round_trip(const std::vector<at::Tensor>& tensors, const devices::cuda::functions* kernels) {
  const auto packed = devices::pack(tensors, kernels);
  for (const auto offset : packed.offsets) BOOST_TEST(offset % 16 == 0);
  const auto back = empty_like(tensors);
  devices::unpack(packed, back, kernels);
  for (std::size_t i = 0; i < tensors.size(); ++i) BOOST_TEST(at::equal(back[i].cpu(), tensors[i].cpu()), "tensor " << i);
}

void expect_refusal(errc code, const std::string& text, const std::function<void()>& call) {
  BOOST_CHECK_EXCEPTION(call(), error, [&](const error& refused) {
    return refused.code() == code && std::string(refused.what()).find(text) != std::string::npos;
  });
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(tensor_packing, simulated::fixture)

BOOST_AUTO_TEST_CASE(tensors_come_back_with_their_bits_with_and_without_kernels) {  // TK-1, TK-3
  const auto tensors = some_tensors(at::kCPU);
  check_round_trip(tensors, nullptr);
  kernels_on_host kernels;
  check_round_trip(tensors, &kernels.table);
  BOOST_TEST(kernels.launches() == 2);
  BOOST_TEST(at::equal(devices::pack(tensors, nullptr).bytes.narrow(0, 32, 28),
                       devices::pack(tensors, &kernels.table).bytes.narrow(0, 32, 28)));
}

BOOST_AUTO_TEST_CASE(two_thousand_tensors_need_two_launches_each_way) {  // TK-3
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 2000; ++i) tensors.push_back(at::randn({1 + i % 30}));
  kernels_on_host kernels;
  check_round_trip(tensors, &kernels.table);
  BOOST_TEST(kernels.launches() == 4);
}

BOOST_AUTO_TEST_CASE(a_tensor_with_gaps_is_packed_without_them) {  // TK-1
  const auto spaced = at::randn({6, 8}).slice(1, 0, 8, 2);
  const auto packed = devices::pack({spaced}, nullptr);
  BOOST_TEST(packed.bytes.numel() == 6 * 4 * 4);
  const auto back = at::zeros({6, 4});
  devices::unpack(packed, {back}, nullptr);
  BOOST_TEST(at::equal(back, spaced));
  expect_refusal(errc::misuse, "unpack: expected a tensor without gaps as tensor 0",
                 [&] { devices::unpack(packed, {spaced}, nullptr); });
}

BOOST_AUTO_TEST_CASE(copies_wait_for_the_work_that_made_the_tensors) {  // TK-2
  const auto tensors = some_tensors(first);
  const auto back = empty_like(tensors);
  simulated::synchronize();
  simulated::gate held(default_stream);
  for (const auto& each : tensors) each.fill_(3);
  const auto packed = devices::pack(tensors, nullptr);
  devices::unpack(packed, back, nullptr);
  simulated::settle();
  held.open();
  simulated::synchronize();
  for (const auto& each : back) BOOST_TEST(at::equal(each.cpu(), at::full_like(each.cpu(), 3)));
}

BOOST_AUTO_TEST_CASE(what_can_not_be_packed_is_refused_and_named) {  // TK-4
  const auto plain = at::ones({2});
  expect_refusal(errc::misuse, "pack: expected a defined tensor as tensor 1", [&] { devices::pack({plain, {}}, nullptr); });
  expect_refusal(errc::misuse, "pack: expected a strided tensor as tensor 0, got the layout Sparse",
                 [&] { devices::pack({plain.to_sparse()}, nullptr); });
  expect_refusal(errc::misuse, "expected a tensor on cpu as tensor 1, got one on simulated:0", [&] {
    devices::pack({plain, plain.to(first)}, nullptr);
  });
  for (const auto& empty : {at::_efficientzerotensor({2}), at::empty({2}, at::kMeta)})
    expect_refusal(errc::misuse, "pack: expected a tensor with memory as tensor 0", [&] { devices::pack({empty}, nullptr); });
  const auto packed = devices::pack({plain, plain}, nullptr);
  expect_refusal(errc::misuse, "unpack: expected 2 tensors, as were packed, got 1",
                 [&] { devices::unpack(packed, {plain}, nullptr); });
  expect_refusal(errc::misuse, "expected at most 16 bytes as tensor 0, got 20", [&] {
    devices::unpack(packed, {at::ones({5}), plain}, nullptr);
  });
  expect_refusal(errc::misuse, "expected at most 16 bytes as tensor 1, got 20", [&] {
    devices::unpack(packed, {plain, at::ones({5})}, nullptr);
  });
}

// The elements of these tensors do not exist, and nobody reads them.
BOOST_AUTO_TEST_CASE(a_tensor_beyond_the_largest_grid_is_refused_and_named) {  // TK-4
  unsigned char byte = 0;
  const auto huge = at::from_blob(&byte, {(std::int64_t{1} << 45) + 1}, at::kByte);
  kernels_on_host kernels;
  expect_refusal(errc::misuse, "unpack: expected a tensor of at most 32 TiB as tensor 0, got a larger one", [&] {
    devices::unpack({huge, {0}}, {huge}, &kernels.table);
  });
}

BOOST_AUTO_TEST_CASE(a_launch_that_fails_is_an_error_with_kernel_device_and_reason) {  // KL-3
  kernels_on_host kernels;
  kernels.table.pack = [](const auto*, auto*, void*) { return 719; };
  expect_refusal(errc::function_failed, "the kernel 'pack' on cpu, got: a reason (CUDA error 719)",
                 [&] { devices::pack({at::ones({2})}, &kernels.table); });
}

BOOST_AUTO_TEST_CASE(no_tensors_are_packed_to_nothing) {
  kernels_on_host kernels;
  for (const auto* each :
       {static_cast<const devices::cuda::functions*>(nullptr), static_cast<const devices::cuda::functions*>(&kernels.table)}) {
    const auto packed = devices::pack({}, each);
    BOOST_TEST(packed.bytes.numel() == 0);
    devices::unpack(packed, {}, each);
  }
}

BOOST_AUTO_TEST_CASE(only_gpus_have_kernels) {
  BOOST_TEST(devices::kernels_for(at::kCPU) == nullptr);
  BOOST_TEST(devices::kernels_for(first) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
