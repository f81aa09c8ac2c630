// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/trailing_elements.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/sender_check.hpp>

#include "samples.hpp"
#include "support/contains.hpp"

using namespace troupe;
using test::contains;
using testing::bytes;

BOOST_AUTO_TEST_SUITE(elements_that_trail_their_message)

namespace {

constexpr node_id sender{7};
constexpr std::size_t size = std::size_t{20} << 10;

at::Tensor counting(std::size_t from, std::size_t count) {
  return at::arange(static_cast<std::int64_t>(from), static_cast<std::int64_t>(from + count)).to(at::kByte);
}

/// A connection: the messages that were written, and the elements that trail them.
struct connection {
  bytes buffer;
  trailing_elements trailing{buffer};

  /// Writes the piece. Returns the bytes of its message.
  bytes write(tensor_piece piece, bool may_trail = true) {
    trailing.begin_message(may_trail);
    const auto before = static_cast<std::ptrdiff_t>(buffer.size());
    caf::binary_serializer sink(testing::reading_system(), buffer);
    BOOST_REQUIRE(!sink(piece));
    return {buffer.begin() + before, buffer.end()};
  }
};

std::optional<trailing_place> place_of(const bytes& message) {
  const auto& config = dynamic_cast<const trailing_receiver&>(testing::reading_system().config());
  return config.place_of_trailing({message.data(), message.size()});
}

/// Reads the message. Returns why it can't be read.
std::string why_not_read(const bytes& message, const trailing_place* where) {
  const reading_trailing elements(where);
  tensor_piece piece;
  const auto failed = testing::decode(message, piece);
  return failed ? caf::to_string(failed) : "";
}

struct others_sender final : sender_check {
  bool introduces(const std::string&, node_id) override { return false; }
  answer is(node_id) const override { return answer::no; }
  bool is_named(const std::string&) const override { return false; }
  std::string who() const override { return "node 'b'"; }
  bool may_end(const context_id&) const override { return false; }
};

}  // namespace

// TE-1, TE-2
BOOST_AUTO_TEST_CASE(elements_trail_the_next_piece_of_their_connection_alone) {
  const auto elements = counting(0, size);
  const tensor_piece piece{sender, 1, 2 * size, 0, elements};
  connection one;
  connection other;
  BOOST_TEST(one.write(piece, false).size() > size);
  BOOST_TEST(one.write(piece).size() < 100U);
  BOOST_TEST(one.trailing.has_any());
  BOOST_TEST(one.write(piece).size() > size);  // the elements of the piece before wait
  const auto waiting = one.trailing.end_message();
  BOOST_TEST(trailing_elements::taking(one.buffer, size) == nullptr);  // the message has ended
  BOOST_TEST(waiting.bytes.data() == static_cast<const char*>(elements.const_data_ptr()));
  BOOST_TEST(waiting.bytes.size() == size);
  BOOST_TEST(!one.trailing.has_any());
  other.trailing.begin_message(true);
  caf::binary_serializer sink(testing::reading_system(), one.buffer);  // another buffer than that of `other`
  auto copy = piece;
  BOOST_REQUIRE(!sink(copy));
  BOOST_TEST(!other.trailing.has_any());
  {
    connection ended;
    ended.trailing.begin_message(true);
  }
  BOOST_TEST(trailing_elements::taking(one.buffer, size) == nullptr);
}

BOOST_AUTO_TEST_CASE(few_elements_and_more_than_a_fragment_go_within_the_message) {
  for (const auto count : {trailing_elements::least - 1, trailing_elements::most + 1}) {
    connection by;
    BOOST_TEST(by.write({sender, 1, 2 * count, 0, counting(0, count)}).size() > count);
    BOOST_TEST(!by.trailing.has_any());
  }
  for (const auto count : {trailing_elements::least, trailing_elements::most}) {
    connection by;
    BOOST_TEST(by.write({sender, 1, 2 * count, 0, counting(0, count)}).size() < 100U);
    BOOST_TEST(by.trailing.end_message().bytes.size() == count);
  }
}

// AT-7: a transfer of three pieces, the second of which has its elements in its message.
BOOST_AUTO_TEST_CASE(elements_are_read_into_the_memory_of_their_transfer) {
  connection by;
  auto& arriving = testing::arrived();
  for (std::size_t at = 0; at < 3 * size; at += size) {
    const bool trails = at != size;
    const auto message = by.write({sender, 5, 3 * size, at, counting(at, size)}, trails);
    const auto where = place_of(message);
    BOOST_TEST(where.has_value() == trails);
    if (trails) {
      BOOST_TEST(where->memory.size() == size);
      BOOST_TEST(arriving.look_at(sender, 5).second == at);  // they count when the message is read
      const auto waiting = by.trailing.end_message();
      std::copy(waiting.bytes.begin(), waiting.bytes.end(), where->memory.begin());
    }
    BOOST_TEST(why_not_read(message, trails ? &*where : nullptr) == "");
    BOOST_TEST(arriving.look_at(sender, 5).second == at + size);
  }
  const auto elements = arriving.take(sender, 5, 3 * size);
  BOOST_REQUIRE(elements);
  const auto* all = static_cast<const unsigned char*>(elements.data());
  for (std::size_t i = 0; i < 3 * size; ++i) BOOST_REQUIRE(all[i] == i % 256);
}

// AT-7: the transfer begins anew, or its sender goes down, while the elements come. They get no place in another arrival.
BOOST_AUTO_TEST_CASE(elements_of_a_transfer_that_ended_meanwhile_do_not_count) {
  auto& arriving = testing::arrived();
  for (const bool begins_anew : {true, false}) {
    connection by;
    const auto message = by.write({sender, 6, size, 0, counting(0, size)});
    const auto where = place_of(message);
    BOOST_REQUIRE(where.has_value());
    std::fill(where->memory.begin(), where->memory.end(), 'x');
    if (begins_anew)
      BOOST_TEST(place_of(message)->memory.data() != where->memory.data());
    else
      arriving.drop(sender);
    std::fill(where->memory.begin(), where->memory.end(), 'y');  // the memory is still there
    BOOST_TEST(contains(why_not_read(message, &*where), "ended before the elements"));
    BOOST_TEST(!arriving.take(sender, 6, size));
  }
}

BOOST_AUTO_TEST_CASE(a_piece_whose_elements_did_not_trail_it_is_refused) {
  connection by;
  const auto message = by.write({sender, 7, size, 0, counting(0, size)});
  BOOST_TEST(contains(why_not_read(message, nullptr), "did not trail it"));
  const trailing_place of_another{size + 1, {}, {}, 0, nullptr};
  BOOST_TEST(contains(why_not_read(message, &of_another), "did not trail it"));
}

BOOST_AUTO_TEST_CASE(a_piece_that_does_not_fit_has_no_place_and_says_why_when_it_is_read) {
  connection by;
  const auto message = by.write({sender, 8, 3 * size, size, counting(0, size)});
  const auto where = place_of(message);
  BOOST_REQUIRE(where.has_value());
  BOOST_TEST(where->memory.empty());
  BOOST_TEST(where->bytes == size);
  BOOST_TEST(contains(why_not_read(message, &*where), "does not go on where the one before it ended"));
}

BOOST_AUTO_TEST_CASE(a_piece_for_which_there_is_no_memory_is_refused) {
  connection by;
  auto& arriving = testing::arrived();
  arriving.use_memory_for_devices([](c10::Device, std::uint64_t) -> c10::Storage { throw std::bad_alloc(); });
  const auto message = by.write({sender, 11, size, 0, counting(0, size), c10::Device(c10::kCUDA, 0)});
  const auto where = place_of(message);
  arriving.use_memory_for_devices(nullptr);
  BOOST_REQUIRE(where.has_value());
  BOOST_TEST(where->memory.empty());
  BOOST_TEST(where->bytes == size);
  BOOST_TEST(contains(why_not_read(message, &*where), "has no memory for the elements"));
  BOOST_TEST(!arriving.look_at(sender, 11).first);
}

BOOST_AUTO_TEST_CASE(elements_of_a_piece_that_names_another_sender_have_no_place) {
  connection by;
  const auto message = by.write({sender, 9, size, 0, counting(0, size)});
  others_sender other;
  const reading_from checked(&other);
  const auto where = place_of(message);
  BOOST_REQUIRE(where.has_value());
  BOOST_TEST(where->memory.empty());
  BOOST_TEST(contains(why_not_read(message, &*where), "another node than its sender"));
  BOOST_TEST(!testing::arrived().look_at(sender, 9).first);
}

BOOST_AUTO_TEST_CASE(a_message_without_trailing_elements_or_with_too_many_has_no_place) {
  connection by;
  BOOST_TEST(!place_of(by.write({sender, 10, size, 0, counting(0, size)}, false)).has_value());
  BOOST_TEST(!place_of({}).has_value());
  BOOST_TEST(!place_of(bytes(12, '\xff')).has_value());
  wire::TensorPiece header;
  header.set_from(sender.value);
  header.set_transfer(10);
  header.set_total(1U << 30);
  for (const std::uint64_t trailing : {trailing_elements::most, trailing_elements::most + 1}) {
    header.set_trailing(trailing);
    const auto text = header.SerializeAsString();
    bytes message(12);
    message[0] = static_cast<char>(text.size());
    message.insert(message.end(), text.begin(), text.end());
    BOOST_TEST(place_of(message).has_value() == (trailing == trailing_elements::most));
  }
  testing::arrived().drop(sender);
}

BOOST_AUTO_TEST_SUITE_END()
