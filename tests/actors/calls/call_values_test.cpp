// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/call_values.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>

BOOST_AUTO_TEST_SUITE(values_of_calls)

// What a caller may make long counts, because it waits with the call.
BOOST_AUTO_TEST_CASE(all_that_a_call_holds_counts) {
  constexpr std::size_t many = 100'000;
  const auto empty = troupe::calls::bytes_of(troupe::call_request());
  BOOST_TEST(empty >= sizeof(troupe::contracts::incoming_call) + 256);  // and the tables where the call waits
  struct {
    std::function<void(troupe::call_request&)> fill;
    std::uint64_t bytes;
  } const fields[] = {
    {[](auto& x) { x.what = troupe::requests::function{std::string(many, 'x')}; }, many},
    {[](auto& x) { x.what = troupe::requests::expect_disk_space{std::string(many, 'x')}; }, many},
    {[](auto& x) { x.calls.resize(many); }, many},
    {[](auto& x) { x.failed.resize(many); }, 8 * many},
    {[](auto& x) { x.payload.place.resize(many); }, 8 * many},
    {[](auto& x) { x.payload.requires_grad.resize(many); }, many},
    {[](auto& x) { x.payload.devices.assign(many, at::kCPU); }, 2 * many},
    {[](auto& x) { x.payload.tensors = {at::zeros({many}, at::kByte)}; }, many},
    {[](auto& x) { x.payload.tensors.assign(many, at::empty({0})); }, 200 * many},  // a tensor without elements takes memory
    {[](auto& x) { x.payload.tensors.resize(many); }, 8 * many},
    {[](auto& x) { x.values["text"] = std::string(many, 'x'); }, many},
    {[](auto& x) { x.values[std::string(many, 'x')] = true; }, many},
  };
  for (const auto& each : fields) {
    troupe::call_request call;
    each.fill(call);
    BOOST_TEST(troupe::calls::bytes_of(call) >= empty + each.bytes, "field " << &each - fields);
    BOOST_TEST(troupe::calls::bytes_of(call) <= empty + 2 * each.bytes, "field " << &each - fields);
  }
}

// OG-3: the size of a message does not count tensors that left ahead of the message.
BOOST_AUTO_TEST_CASE(a_message_of_many_bytes_leaves_in_fragments) {
  constexpr std::int64_t many = 250 << 10;
  const auto call_of = [](std::int64_t bytes) {
    troupe::call_request call;
    call.payload.tensors = {at::empty({bytes}, at::kByte)};
    return call;
  };
  BOOST_TEST(troupe::calls::leaves_in_fragments(call_of(many)));
  BOOST_TEST(!troupe::calls::leaves_in_fragments(call_of(many - 1'000)));
  auto ahead = call_of(100 * many);
  ahead.payload.ahead.transfers = {5};
  BOOST_TEST(!troupe::calls::leaves_in_fragments(ahead));
  ahead.values["bytes"] = std::string(static_cast<std::size_t>(many), 'x');
  BOOST_TEST(troupe::calls::leaves_in_fragments(ahead));
}

BOOST_AUTO_TEST_SUITE_END()
