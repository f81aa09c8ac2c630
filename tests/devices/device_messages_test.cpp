// SPDX-License-Identifier: BSD-3-Clause
// Messages whose tensors were offered on a device.
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensor_codec.hpp>
#include <troupe/messages/tensor_rules.hpp>

#include "messages/samples.hpp"
#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(messages_with_tensors_of_devices)

namespace {

constexpr node_id sender{7};

struct fixture : simulated::fixture {
  ~fixture() { testing::arrived().drop(sender); }

  /// The elements come as transfer `number`, as if a device had copied them.
  static void come(std::uint64_t number, const at::Tensor& elements) {
    const auto bytes = elements.nbytes();
    const tensor_offer offer{sender, number, bytes, 0, bytes, 0, 1, 0, "allocation", "event"};
    arriving_tensors::prepared_piece piece;
    testing::arrived().take_offers(sender, offer.process, memory_mark{});
    BOOST_REQUIRE(!testing::arrived().prepare(offer, piece));
    BOOST_REQUIRE(!testing::arrived().add(offer, piece, elements.storage()));
  }
  /// Reads a message with these tensors, of which all elements left ahead, as transfers from 1 on.
  static std::string read(const std::vector<at::Tensor>& tensors, std::vector<std::uint64_t> transfers,
                          std::vector<at::Tensor>& to, std::vector<packing> packings = {}) {
    autograd_message message;
    message.tensors = tensors;
    message.packings = std::move(packings);
    message.ahead = {sender, std::move(transfers)};
    const auto wire = testing::encoded(message);
    autograd_message came;
    const auto failed = testing::decode(wire, came);
    to = came.tensors;
    return failed ? caf::to_string(failed) : "";
  }

  std::vector<at::Tensor> came;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(are_read_with_their_shapes, fixture) {
  const auto x = at::arange(6000.0).to(first);
  const auto strided = at::arange(6000, at::kInt).reshape({60, 100}).to(first).t();
  come(1, x);
  come(2, strided);
  BOOST_TEST(read({x, strided, at::ones({2})}, {1, 2, 0}, came) == "");
  BOOST_TEST(came.at(0).device().str() == "simulated:0");
  BOOST_TEST(at::equal(came.at(0).cpu(), x.cpu()));
  BOOST_TEST(came.at(1).strides() == strided.strides());
  BOOST_TEST(at::equal(came.at(1).cpu(), strided.cpu()));
}

BOOST_FIXTURE_TEST_CASE(are_not_written_if_they_were_not_offered, fixture) {
  autograd_message message;
  message.tensors = {at::zeros({6000}, at::device(first)), at::zeros({6000})};
  testing::bytes wire;
  for (const auto& ahead : {sent_ahead{}, sent_ahead{sender, {0, 5}}}) {
    message.ahead = ahead;
    BOOST_TEST(contains(caf::to_string(testing::encode(wire, message)), "was not offered"));
    BOOST_TEST(wire.empty());
  }
  BOOST_TEST(!why_it_cannot_travel(message.tensors[0]).empty());
  BOOST_TEST(why_it_cannot_travel(message.tensors[0], true).empty());
}

BOOST_FIXTURE_TEST_CASE(whose_elements_nobody_can_check_are_refused, fixture) {
  const auto truths = at::ones({6000}, at::device(first)).to(at::kBool);
  come(1, truths);
  BOOST_TEST(contains(read({at::ones({6000}, at::kBool)}, {1}, came), "of bool came from a device"));
  const auto sparse = at::ones({5000}).to_sparse();
  come(2, at::zeros({5000}, at::device(first).dtype(at::kLong)));
  BOOST_TEST(contains(read({sparse}, {2, 0}, came), "is sparse, and came from a device"));
  come(3, at::zeros({5000}, at::device(first)));
  BOOST_TEST(contains(read({sparse}, {0, 3}, came), "is sparse, and came from a device"));
  tensor_memory memory;
  const auto packed = pack(at::rand({5000}), wire_format::bfloat16, memory);
  BOOST_REQUIRE(packed);
  come(4, at::zeros({static_cast<std::int64_t>(packed->bytes.nbytes())}, at::device(first).dtype(at::kByte)));
  BOOST_TEST(contains(read({packed->bytes}, {4}, came, {packed->how}), "is compressed, and came from a device"));
}

BOOST_FIXTURE_TEST_CASE(do_not_share_their_elements, fixture) {
  const auto x = at::arange(6000.0).to(first);
  come(1, x);
  BOOST_TEST(contains(read({x, x}, {1, 1}, came), "did not"));
}

BOOST_AUTO_TEST_SUITE_END()
