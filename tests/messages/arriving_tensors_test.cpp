// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <memory>

#include <ATen/ATen.h>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/tensor_codec.hpp>

#include "samples.hpp"
#include "support/contains.hpp"
#include "support/resident_memory.hpp"

using namespace troupe;
using test::contains;
using testing::bytes;

namespace {

constexpr node_id a{7};
constexpr node_id b{8};
constexpr std::uint64_t page = arriving_tensors::least_bytes;

const c10::Device gpu(c10::DeviceType::CUDA, 0);

/// Memory that belongs to something besides its elements.
c10::Storage memory_for_device(std::uint64_t size) {
  auto owner = std::make_unique<bytes>(size);
  void* const elements = owner->data();
  const auto release = [](void* self) { delete static_cast<bytes*>(self); };
  return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(size),
                      c10::DataPtr(elements, owner.release(), release, c10::Device(at::kCPU)));
}

/// Adds the bytes [offset, offset + size) of a transfer whose byte i is i % 251. Returns what is wrong.
std::string add(arriving_tensors& to, node_id from, std::uint64_t number, std::uint64_t total, std::uint64_t offset,
                std::uint64_t size) {
  bytes elements(size);
  for (std::size_t i = 0; i < size; ++i) elements[i] = static_cast<char>((offset + i) % 251);
  const char* bad = to.add({from, number, total, offset, {}}, caf::as_bytes(caf::make_span(elements)));
  return bad != nullptr ? bad : "";
}

bool counts_up(const c10::Storage& elements, std::uint64_t total) {
  const auto* at = static_cast<const unsigned char*>(elements.data());
  for (std::uint64_t i = 0; i < total; ++i)
    if (at[i] != i % 251) return false;
  return elements.nbytes() == total;
}

/// Sends tensors ahead of their message, one transfer after another, in pieces of `piece` bytes. A part of a tensor (such as
/// the indices of a sparse tensor) that is smaller than a page is not sent ahead.
template <class Message>
void send_ahead(Message& message, std::vector<at::Tensor>& tensors, std::uint64_t first, std::uint64_t piece = 5000) {
  wire::Tensors unused;
  travelling_tensors forms;
  describe_tensors(tensors, unused, forms);
  message.ahead.from = a;
  for (const auto& form : forms) {
    if (form.nbytes() < page) {
      message.ahead.transfers.push_back(0);
      continue;
    }
    message.ahead.transfers.push_back(first);
    for (std::uint64_t at = 0; at < form.nbytes(); at += piece) {
      tensor_piece each{a, first, form.nbytes(), at, bytes_of(form, at, std::min(piece, form.nbytes() - at))};
      BOOST_REQUIRE(!testing::decode(testing::encoded(each), each));
    }
    ++first;
  }
}

std::string why_not_read(const bytes& wire) {
  autograd_message message;
  return caf::to_string(testing::decode(wire, message));
}

/// A message with one float tensor of 2,000 elements. Its header says that the elements left ahead as transfer 5.
bytes one_ahead() {
  autograd_message message;
  message.tensors = {at::arange(2000.)};
  message.ahead = {a, {5}};
  return testing::encoded(message);
}

bytes changed(const bytes& wire, const std::function<void(wire::Tensors&)>& change) {
  std::uint32_t size = 0;
  std::memcpy(&size, wire.data(), 4);
  wire::Autograd header;
  BOOST_REQUIRE(header.ParseFromArray(wire.data() + 12, static_cast<int>(size)));
  change(*header.mutable_tensors());
  return testing::framed(header.SerializeAsString());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(arriving)

BOOST_AUTO_TEST_CASE(pieces_in_their_order_are_the_elements) {  // AT-2
  arriving_tensors all;
  const std::uint64_t total = 3 * page + 17;
  BOOST_TEST(add(all, a, 1, total, 0, page) == "");
  BOOST_TEST(add(all, b, 1, total, 0, 2 * page) == "");  // from another sender
  BOOST_TEST(add(all, a, 1, total, page, 2 * page) == "");
  BOOST_TEST(add(all, a, 1, total, 3 * page, 17) == "");
  BOOST_TEST(all.bytes() == total + 2 * page);
  BOOST_TEST(counts_up(all.take(a, 1, total), total));
  BOOST_TEST(!all.take(a, 1, total));  // the transfer is over
  BOOST_TEST(!all.take(b, 1, total));  // the transfer is not whole
  BOOST_TEST(all.bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(a_piece_that_does_not_fit_ends_its_transfer) {  // AT-3
  struct {
    std::uint64_t total, offset, size;
    const char* why;
  } const bad[] = {{2 * page, 0, page, ""},  // begins anew; the next piece does not continue it
                   {4 * page, 2 * page, page, "does not go on"},
                   {5 * page, page, page, "does not go on"},
                   {4 * page, page, 3 * page + 1, "beyond the end"},
                   {4 * page, ~std::uint64_t{0}, 8, "beyond the end"},
                   {4 * page, page, page - 1, "smaller than a page"},
                   {4 * page, page, 0, "smaller than a page"},
                   {page - 1, 0, page - 1, "too small"},
                   {~std::uint64_t{0}, 0, page, "too large"},
                   {0, 0, 1, "calls a transfer off brings"}};
  for (const auto& each : bad) {
    arriving_tensors all;
    BOOST_TEST(add(all, a, 1, 4 * page, 0, page) == "");
    const auto why = add(all, a, 1, each.total, each.offset, each.size);
    BOOST_TEST((each.why[0] == '\0' ? why.empty() : why.find(each.why) != std::string::npos), why);
    BOOST_TEST(!add(all, a, 1, 4 * page, page, page).empty());
    BOOST_TEST(all.bytes() == 0u, why);
  }
}

BOOST_AUTO_TEST_CASE(a_transfer_that_is_begun_anew_called_off_or_of_a_node_that_is_gone_leaves_nothing) {
  arriving_tensors all;
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{4}, ~std::uint64_t{0}}) {
    BOOST_TEST(add(all, a, number, 2 * page, 0, page) == "");
    BOOST_TEST(add(all, a, number, 3 * page, 0, page) == "");
    BOOST_TEST(add(all, b, number, 2 * page, 0, page) == "");
  }
  BOOST_TEST(all.bytes() == 6 * page);
  BOOST_TEST(add(all, b, 4, 0, 0, 0) == "");
  BOOST_TEST(all.bytes() == 5 * page);
  all.drop(a);
  BOOST_TEST(all.bytes() == 2 * page);
  all.drop(b);
  BOOST_TEST(all.bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(each_sender_has_a_limit_of_its_own) {  // AT-4
  const std::string why = "more elements of its sender wait";
  arriving_tensors all;
  all.limit_sender(4 * page);
  BOOST_TEST(add(all, a, 1, 3 * page, 0, 3 * page) == "");
  BOOST_TEST(add(all, a, 2, 2 * page, 0, page) == "");
  BOOST_TEST(add(all, a, 2, 2 * page, page, page).find(why) != std::string::npos);
  BOOST_TEST(all.bytes() == 3 * page);  // nothing of the second transfer is kept
  BOOST_TEST(add(all, b, 1, 4 * page, 0, 4 * page) == "");
  BOOST_TEST(add(all, b, 2, page, 0, page).find(why) != std::string::npos);
  BOOST_TEST(counts_up(all.take(a, 1, 3 * page), 3 * page));
  BOOST_TEST(add(all, a, 3, 4 * page, 0, 4 * page) == "");
  BOOST_TEST(add(all, a, 3, 2 * page, 0, 2 * page) == "");  // begun anew
  all.drop(a);
  BOOST_TEST(add(all, a, 4, 4 * page, 0, 4 * page) == "");
  BOOST_TEST(add(all, a, 4, 0, 0, 0) == "");  // called off
  BOOST_TEST(add(all, a, 5, 4 * page, 0, 4 * page) == "");
}

BOOST_AUTO_TEST_CASE(a_sender_has_a_limit_for_what_it_announces) {  // AT-4
  const std::string why = "more elements of its sender wait";
  arriving_tensors all;
  all.limit_sender(4 * page);
  BOOST_TEST(add(all, a, 1, 10 * page, 0, page) == "");
  BOOST_TEST(add(all, a, 2, 6 * page, 0, page) == "");
  BOOST_TEST(add(all, a, 3, page, 0, page).find(why) != std::string::npos);
  BOOST_TEST(add(all, a, 2, 6 * page, page, page) == "");  // goes on
  BOOST_TEST(add(all, b, 1, 16 * page, 0, page) == "");
  BOOST_TEST(add(all, a, 2, 0, 0, 0) == "");  // called off
  BOOST_TEST(add(all, a, 3, 6 * page, 0, page) == "");
  BOOST_TEST(add(all, a, 3, 6 * page, 0, page) == "");  // begun anew
  BOOST_TEST(add(all, a, 4, page, 0, page).find(why) != std::string::npos);
  BOOST_TEST(all.bytes() == 3 * page);
}

BOOST_AUTO_TEST_CASE(a_sender_has_a_limit_for_its_transfers) {  // AT-4
  arriving_tensors all;
  all.limit_sender(100 * page, 2);
  BOOST_TEST(add(all, a, 1, page, 0, page) == "");
  BOOST_TEST(add(all, a, 2, 2 * page, 0, page) == "");
  BOOST_TEST(add(all, a, 3, page, 0, page).find("more elements of its sender wait") != std::string::npos);
  BOOST_TEST(add(all, a, 2, 2 * page, page, page) == "");
  BOOST_TEST(add(all, b, 3, page, 0, page) == "");
  BOOST_TEST(counts_up(all.take(a, 1, page), page));
  BOOST_TEST(add(all, a, 3, page, 0, page) == "");
}

// AT-4. The largest message of tensors that leave in pieces, and what else may be on its way.
BOOST_AUTO_TEST_CASE(the_largest_message_is_within_the_limits_of_its_sender) {
  arriving_tensors all;
  const auto small_tensor = std::uint64_t{64} << 10;
  const auto a_message = max_payload_bytes / small_tensor;
  BOOST_TEST(a_message + (std::uint64_t{256} << 20) / small_tensor <= arriving_tensors::most_transfers);
  for (std::uint64_t number = 1; number <= 6; ++number) BOOST_TEST(add(all, a, number, max_payload_bytes, 0, page) == "");
}

BOOST_AUTO_TEST_CASE(what_is_announced_takes_no_memory_before_it_comes) {  // AT-1
  arriving_tensors all;
  const auto before = test::resident_kib();
  for (std::uint64_t number = 0; number < 10; ++number) BOOST_TEST(add(all, a, number, std::uint64_t{1} << 30, 0, page) == "");
  BOOST_TEST(test::resident_kib() - before < 4096);
}

BOOST_AUTO_TEST_CASE(a_message_whose_tensors_came_ahead_is_read_as_one_whose_tensors_did_not) {  // WI-6
  testing::generator random{5};
  auto sparse = at::sparse_coo_tensor(at::arange(2000).reshape({1, 2000}), at::rand({2000, 2}), {2000, 2});
  autograd_message message;
  message.tensors = {at::rand({50, 40}),       at::rand({3}), at::Tensor(),
                     at::rand({60, 70}).t(),   sparse,        at::rand({4, 30, 40}).narrow(0, 1, 2),
                     at::arange(9000) % 2 == 0};
  testing::arrived().drop(a);  // pieces that an earlier test has read
  const auto before = testing::arrived().bytes();
  for (const std::uint64_t piece : {4096, 5000, 1 << 20}) {
    auto sent = message;
    send_ahead(sent, sent.tensors, 100, piece);
    BOOST_TEST(testing::encoded(sent).size() < 1000u);
    autograd_message came;
    const auto failed = testing::decode(testing::encoded(sent), came);
    BOOST_REQUIRE_MESSAGE(!failed, caf::to_string(failed));
    BOOST_TEST(testing::same(message, came));
    BOOST_TEST(came.tensors[3].strides() == message.tensors[3].strides());
    BOOST_TEST(came.ahead.transfers.empty());
    BOOST_TEST(testing::arrived().bytes() == before);
    came.tensors[0].resize_({100, 400});  // the memory is like any other
  }
  propagate_gradients gradients;
  gradients.carried.weight = {0};
  gradients.gradients = {at::rand({3000})};
  const auto expected = gradients.gradients[0];
  send_ahead(gradients, gradients.gradients, 200);
  propagate_gradients came;
  BOOST_REQUIRE(!testing::decode(testing::encoded(gradients), came));
  BOOST_TEST(at::equal(came.gradients.at(0), expected));
}

BOOST_AUTO_TEST_CASE(tensors_that_came_as_one_transfer_are_apart) {  // WI-6
  autograd_message message;
  message.tensors = {at::arange(3000.), at::arange(3000.), at::arange(3000.)};
  auto first = std::vector<at::Tensor>{message.tensors[0]};
  send_ahead(message, first, 300);
  message.ahead.transfers = {300, 300, 300};
  autograd_message came;
  BOOST_REQUIRE(!testing::decode(testing::encoded(message), came));
  came.tensors[1].add_(1);
  came.tensors[0].mul_(2);
  BOOST_TEST(at::equal(came.tensors[0], at::arange(3000.) * 2));
  BOOST_TEST(at::equal(came.tensors[1], at::arange(3000.) + 1));
  BOOST_TEST(at::equal(came.tensors[2], at::arange(3000.)));
}

BOOST_AUTO_TEST_CASE(tensors_for_a_device_come_in_memory_for_it_if_there_is_any) {  // AT-1
  const auto memory = [](c10::Device device, std::uint64_t size) {
    return device == gpu && size == 2 * page ? memory_for_device(size) : c10::Storage();
  };
  const auto is_for_device = [](const c10::Storage& elements) {
    return elements.data_ptr().get_deleter() == memory_for_device(1).data_ptr().get_deleter();
  };
  arriving_tensors all;
  const auto come = [&](c10::Device device, std::uint64_t size) {
    bytes elements(size);
    for (std::size_t i = 0; i < size; ++i) elements[i] = static_cast<char>(i % 251);
    BOOST_TEST(all.add({a, 1, size, 0, {}, device}, caf::as_bytes(caf::make_span(elements))) == nullptr);
    BOOST_TEST(all.look_at(a, 1).second == size);
    const auto came = all.take(a, 1, size);
    BOOST_TEST(counts_up(came, size));
    return is_for_device(came);
  };
  BOOST_TEST(!come(gpu, 2 * page));
  all.use_memory_for_devices(memory);
  BOOST_TEST(come(gpu, 2 * page));
  BOOST_TEST(!come(gpu, page));
  BOOST_TEST(!come(c10::Device(at::kCPU), 2 * page));
  BOOST_TEST((!all.look_at(a, 1).first && all.look_at(a, 1).second == 0U));
}

BOOST_AUTO_TEST_CASE(memory_for_a_device_is_for_one_tensor) {
  testing::arrived().use_memory_for_devices([](c10::Device, std::uint64_t size) { return memory_for_device(size); });
  autograd_message message;
  message.tensors = {at::arange(2000.), at::arange(2000.)};
  message.ahead = {a, {5, 5}};
  tensor_piece whole{a, 5, 8000, 0, bytes_of(message.tensors[0], 0, 8000), gpu};
  BOOST_REQUIRE(!testing::decode(testing::encoded(whole), whole));
  const auto why = why_not_read(testing::encoded(message));
  testing::arrived().use_memory_for_devices(nullptr);
  BOOST_TEST(contains(why, "tensor 1 should have come ahead of the message"), why);
}

BOOST_AUTO_TEST_CASE(a_message_whose_tensors_should_have_come_ahead_and_did_not_is_refused) {
  testing::generator random{6};
  const auto wire = one_ahead();
  const auto before = testing::arrived().bytes();
  BOOST_TEST(why_not_read(wire).find("should have come ahead of the message, and did not") != std::string::npos);
  auto piece = testing::whole_transfer(random, a, 5);  // a transfer of another size
  BOOST_REQUIRE(!testing::decode(testing::encoded(piece), piece));
  BOOST_TEST(why_not_read(wire).find("did not") != std::string::npos);
  BOOST_TEST(testing::arrived().bytes() == before);
  tensor_piece half{a, 5, 8000, 0, at::zeros({5000}, at::kByte)};
  BOOST_REQUIRE(!testing::decode(testing::encoded(half), half));
  BOOST_TEST(why_not_read(wire).find("did not") != std::string::npos);
  for (const std::uint64_t size : {0, 2}) {
    const auto bad = changed(wire, [&](auto& t) { t.mutable_ahead()->Resize(static_cast<int>(size), 5); });
    const auto why = why_not_read(bad);
    BOOST_TEST(why.find(size == 0 ? "the message has only 0 left" : "says of 2 whether they came ahead") != std::string::npos,
               why);
  }
  for (const auto& change : std::vector<std::function<void(wire::Tensors&)>>{
         [](auto& t) { t.set_ahead_from(8); }, [](auto& t) { t.set_ahead(0, 6); },
         [](auto& t) { t.set_sizes(0, 2001), t.set_payloads(0, 8004); }, [](auto& t) { t.set_sizes(0, 2001); }}) {
    tensor_piece whole{a, 5, 8000, 0, at::zeros({8000}, at::kByte)};
    BOOST_REQUIRE(!testing::decode(testing::encoded(whole), whole));
    BOOST_TEST(!why_not_read(changed(wire, change)).empty());
    BOOST_TEST(why_not_read(changed(wire, change)) != "none");
    testing::arrived().drop(a);
  }
}

BOOST_AUTO_TEST_CASE(a_message_that_lacks_one_of_its_tensors_leaves_none_of_the_others) {  // GW-7
  autograd_message message;
  message.tensors = {at::arange(2000.), at::arange(3000.), at::arange(4000.)};
  message.ahead = {a, {11, 12, 13}};
  const auto wire = testing::encoded(message);
  const auto before = testing::arrived().bytes();
  for (const auto& [number, tensor] : {std::pair{11, message.tensors[0]}, {13, message.tensors[2]}}) {
    tensor_piece whole{a, static_cast<std::uint64_t>(number), tensor.nbytes(), 0, bytes_of(tensor, 0, tensor.nbytes())};
    BOOST_REQUIRE(!testing::decode(testing::encoded(whole), whole));
  }
  BOOST_TEST(testing::arrived().bytes() > before);
  BOOST_TEST(why_not_read(wire).find("did not") != std::string::npos);
  BOOST_TEST(testing::arrived().bytes() == before);
}

BOOST_AUTO_TEST_CASE(who_says_of_too_few_tensors_that_they_left_ahead_writes_nothing) {
  autograd_message message;
  message.tensors = {at::zeros({2}), at::zeros({2})};
  message.ahead = {a, {1}};
  bytes wire;
  BOOST_TEST(caf::to_string(testing::encode(wire, message)).find("has 2 components") != std::string::npos);
  BOOST_TEST(wire.empty());
}

namespace {

tensor_offer on_device(std::uint64_t number, std::uint64_t total) {
  return {a, number, total, 0, total, 0, 1, 0, "allocation", "event"};
}

c10::Storage filled(std::uint64_t total) {
  return (at::arange(static_cast<std::int64_t>(total)) % 251).to(at::kByte).storage();
}

struct expecting {
  explicit expecting(std::uint64_t transfer = 1, std::uint64_t total = 2 * page) : offer(on_device(transfer, total)) {
    all.take_offers(a, offer.process, memory_mark{});
    BOOST_REQUIRE(!all.prepare(offer, piece));
  }

  arriving_tensors all;
  tensor_offer offer;
  arriving_tensors::prepared_piece piece;
};

}  // namespace

BOOST_AUTO_TEST_CASE(elements_that_a_device_copies_are_there_once_it_has_copied_them) {  // AT-6
  expecting here;
  BOOST_TEST(here.all.bytes() == 0U);
  BOOST_TEST(here.all.add(here.offer, {here.piece.arrival + 1, {}}, filled(2 * page)).has_value());
  BOOST_TEST(!here.all.add(here.offer, here.piece, filled(2 * page)));
  BOOST_TEST(here.all.bytes() == 2 * page);
  BOOST_TEST(here.all.add(here.offer, here.piece, filled(2 * page)).has_value());  // they are there already
  BOOST_TEST(counts_up(here.all.take(a, 1, 2 * page), 2 * page));
  BOOST_TEST(here.all.bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(elements_that_a_device_still_copies_are_not_handed_out) {  // AT-6
  expecting here;
  BOOST_TEST(!here.all.take(a, 1, 2 * page));
  BOOST_TEST(here.all.add(here.offer, here.piece, filled(2 * page)).has_value());
  BOOST_TEST(here.all.bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(a_copy_whose_transfer_has_ended_or_begun_anew_brings_nothing) {  // AT-6
  const std::vector<std::function<void(expecting&)>> ends = {
    [](auto& x) { x.all.drop(a); },
    [](auto& x) { x.all.give_up(x.offer, x.piece); },
    [](auto& x) { BOOST_TEST(add(x.all, a, 1, 0, 0, 0) == ""); },  // called off
    [](auto& x) { BOOST_TEST(add(x.all, a, 1, 2 * page, 0, page) == ""); },
    [](auto& x) {
      arriving_tensors::prepared_piece another;
      BOOST_TEST(!x.all.prepare(x.offer, another));
      BOOST_TEST(another.arrival != x.piece.arrival);
    },
  };
  for (const auto& end : ends) {
    expecting here;
    end(here);
    here.all.give_up(here.offer, here.piece);
    BOOST_TEST(here.all.add(here.offer, here.piece, filled(2 * page)).has_value());
    BOOST_TEST(!here.all.take(a, 1, 2 * page));
    here.all.drop(a);
    BOOST_TEST(here.all.bytes() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(no_piece_goes_on_where_a_device_copies) {  // AT-3
  for (const std::uint64_t offset : {page, 2 * page}) {
    expecting here;
    BOOST_TEST(!add(here.all, a, 1, 2 * page, offset, 2 * page - offset).empty());
    BOOST_TEST(here.all.bytes() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(elements_on_a_device_come_as_a_whole_and_count_for_their_sender) {  // AT-4, AT-5
  arriving_tensors all;
  arriving_tensors::prepared_piece piece;
  auto part = on_device(1, 4 * page);
  BOOST_TEST((all.prepare(part, piece)->code() == errc::refused));  // AT-5
  all.take_offers(a, part.process, memory_mark{});
  part.bytes = page;
  BOOST_TEST(all.prepare(part, piece).has_value());
  part.bytes = 4 * page;
  part.offset = page;
  BOOST_TEST(all.prepare(part, piece).has_value());
  all.limit_sender(3 * page);
  BOOST_TEST(!all.prepare(on_device(1, 2 * page), piece));
  BOOST_TEST(all.prepare(on_device(2, 2 * page), piece).has_value());
  BOOST_TEST(!all.prepare(on_device(3, page), piece));
}

BOOST_AUTO_TEST_SUITE_END()
