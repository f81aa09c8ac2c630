// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/transfers_ahead.hpp>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/messages/tensor_codec.hpp>

BOOST_AUTO_TEST_SUITE(transfers_ahead_of_a_message)

namespace {

using namespace troupe;
using namespace troupe::transfers;

constexpr std::int64_t piece = 256 << 10;

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

struct message {
  explicit message(const std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& destinations = {})
      : transfers(transfers_ahead(tensors, destinations, ahead, last, leaving)) {}

  std::uint64_t last = 6;
  sent_ahead ahead{{5}, {}};
  std::unordered_map<std::uint64_t, leaving_elements> leaving;
  std::vector<transfer> transfers;
};

}  // namespace

BOOST_AUTO_TEST_CASE(are_its_large_tensors) {
  const message made({bytes(5 * piece), bytes(10), bytes(2 * piece)});
  BOOST_TEST(made.ahead.transfers == (std::vector<std::uint64_t>{7, 0, 8}), boost::test_tools::per_element());
  BOOST_REQUIRE(made.transfers.size() == 2U);
  BOOST_TEST(made.transfers[1].number == 8U);
  BOOST_TEST(made.transfers[1].bytes == static_cast<std::uint64_t>(2 * piece));
  BOOST_TEST(made.last == 8U);
}

BOOST_AUTO_TEST_CASE(have_their_elements_as_they_lie_in_memory) {
  const auto even = at::arange(2 * (piece / 8) + 3, at::kLong).reshape({-1, 1});
  const auto strided = at::arange(piece / 2, at::kInt).reshape({2, piece / 4}).t();
  const message made({even.narrow(0, 1, even.size(0) - 1), strided});
  const auto first = bytes_of(made.leaving.at(7).elements, 0, 16);
  BOOST_TEST(first.view(at::kLong)[0].item<std::int64_t>() == 1);
  BOOST_TEST(bytes_of(made.leaving.at(8).elements, piece, 8).view(at::kInt)[0].item<int>() == piece / 4);
}

BOOST_AUTO_TEST_CASE(are_one_transfer_if_they_have_the_same_elements) {
  const auto x = bytes(3 * piece);
  const message made({x, x, bytes(2 * piece), x.view(at::kInt), x.narrow(0, 0, 2 * piece)});
  BOOST_TEST(made.ahead.transfers == (std::vector<std::uint64_t>{7, 7, 8, 7, 9}), boost::test_tools::per_element());
  BOOST_TEST(made.leaving.size() == 3U);
}

BOOST_AUTO_TEST_CASE(know_the_devices_of_their_tensors) {
  const c10::Device first(at::kCUDA, 1);
  const c10::Device second(at::kCUDA, 2);
  const auto indices = at::arange(piece).reshape({1, piece});
  const auto sparse = at::sparse_coo_tensor(indices, at::ones({piece}), {piece});
  const c10::Device host(at::kCPU);
  const message made({bytes(5 * piece), at::Tensor(), sparse, bytes(2 * piece)}, {first, host, host, second});
  BOOST_REQUIRE(made.leaving.size() == 4U);
  BOOST_TEST((made.leaving.at(7).destination == first && made.leaving.at(8).destination == host));
  BOOST_TEST((made.leaving.at(9).destination == host && made.leaving.at(10).destination == second));
  BOOST_TEST((message({bytes(5 * piece)}).leaving.at(7).destination == host));
  const auto twice = bytes(2 * piece);
  BOOST_TEST((message({twice, twice}, {first, first}).leaving.at(7).destination == host));
}

BOOST_AUTO_TEST_CASE(are_none_if_the_tensors_are_small) {
  BOOST_TEST(!any_large({bytes(piece / 2), at::Tensor(), bytes(piece / 2)}));
  BOOST_TEST(any_large({bytes(piece / 2), at::Tensor(), bytes(piece / 2 + 1)}));
  BOOST_TEST(!any_large(std::vector<at::Tensor>(100, bytes(piece / 5))));
  BOOST_TEST(any_large({bytes(1), bytes(2 * piece)}));
}

BOOST_AUTO_TEST_SUITE_END()
