// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/messages/tensor_rules.hpp>

#include "samples.hpp"
#include "support/allocation_count.hpp"

using namespace troupe;
using testing::bytes;
using testing::framed;

namespace {

constexpr std::size_t prefix = 12;

std::size_t header_size(const bytes& wire) {
  std::uint32_t size = 0;
  std::memcpy(&size, wire.data(), 4);
  return size;
}

// Reads bytes and checks WI-1 and WI-2: the result is an error, or a message that can be printed and sent on, and reading
// allocates little memory.
template <class T>
caf::error read(const bytes& wire) {
  caf::error failed;
  std::size_t used = 0;
  T x{};
  testing::reading_system();  // creates the system at the first call
  to_string(x);               // protobuf builds its descriptions of headers at the first call
  {
    testing::allocation_count count;
    failed = testing::decode(wire, x);
    used = count.bytes();
  }
  std::size_t header = std::min(wire.size(), wire.size() < 4 ? 0 : header_size(wire));
  const auto allowed = std::min(48 * header, std::size_t{256} << 20);
  BOOST_TEST(used <= allowed + wire.size() + 16 * 1024,
             used << " bytes for a message of " << wire.size() << " with a header of " << header);
  if (failed) {
    BOOST_TEST(static_cast<int>(to_exception(failed).code()) == static_cast<int>(errc::malformed_message));
  } else {
    to_string(x);
    testing::encoded(x);
  }
  return failed;
}

template <class T>
std::vector<bytes> samples(std::uint64_t seeds) {
  std::vector<bytes> wires;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    testing::generator random{seed};
    T x = testing::make<T>(random);
    wires.push_back(testing::encoded(x));
  }
  return wires;
}

void check_refused(const wire::Tensors& tensors, const char* why, std::size_t payload = 4096) {
  wire::Autograd header;
  *header.mutable_tensors() = tensors;
  auto failed = read<autograd_message>(framed(header.SerializeAsString(), payload));
  BOOST_TEST(caf::to_string(failed).find(why) != std::string::npos, caf::to_string(failed) << " lacks '" << why << "'");
}

// The header of a float tensor, with the given sizes, payload and strides.
wire::Tensors described(const std::vector<std::uint64_t>& sizes, std::uint64_t payload,
                        const std::vector<std::uint64_t>& strides = {}) {
  wire::Tensors tensors;
  tensors.add_kinds(1);
  tensors.add_dtypes(11);
  tensors.add_shapes(static_cast<std::uint32_t>(sizes.size()) | (strides.empty() ? 0 : 0x10000));
  tensors.mutable_sizes()->Add(sizes.begin(), sizes.end());
  tensors.mutable_strides()->Add(strides.begin(), strides.end());
  tensors.add_payloads(payload);
  return tensors;
}

constexpr std::uint64_t huge = std::uint64_t{1} << 62;
constexpr auto minus_one = ~std::uint64_t{0};

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_message_cut_at_any_byte_is_refused, T, testing::message_types) {
  for (const bytes& wire : samples<T>(6))
    for (std::size_t size = 0; size < wire.size(); ++size)
      BOOST_TEST(static_cast<bool>(read<T>(bytes(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(size)))));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_byte_of_a_header_may_change, T, testing::message_types) {
  testing::generator random{99};
  for (bytes wire : samples<T>(6)) {
    std::size_t end = prefix + header_size(wire);
    bool all = end < 100;
    for (std::size_t i = 0; i < end; ++i) {
      char original = wire[i];
      for (int draw = 1; draw < (all ? 256 : 25); ++draw) {
        wire[i] = static_cast<char>(original ^ (all ? draw : static_cast<int>(1 + random() % 255)));
        read<T>(wire);
      }
      wire[i] = original;
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_number_in_a_header_may_be_extreme, T, testing::message_types) {
  static constexpr std::uint64_t extremes[] = {
    0, 1, minus_one, huge, minus_one >> 1, 0xffffffff, 0x80000000, std::uint64_t{1} << 32, 0xf0000001, 0x7fffffff};
  for (const bytes& wire : samples<T>(6)) {
    std::size_t end = std::min(prefix + header_size(wire), std::size_t{600});
    for (std::size_t width : {4u, 8u}) {
      for (std::size_t i = 0; i + width <= end; ++i) {
        for (std::uint64_t extreme : extremes) {
          bytes changed = wire;
          std::memcpy(changed.data() + i, &extreme, width);
          read<T>(changed);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(garbage_is_refused_or_read, T, testing::message_types) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    testing::generator random{seed};
    std::string header(random() % 100, '\0');
    for (char& c : header)
      c = static_cast<char>(random() % 4 == 0 ? random() : random() % 0x30);  // mostly tags of fields with small numbers
    read<T>(framed(header, random() % 50));
    bytes noise(random() % 60);
    for (char& c : noise) c = static_cast<char>(random());
    read<T>(noise);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nesting_without_end_is_refused, T, testing::message_types) {
  BOOST_TEST(static_cast<bool>(read<T>(framed(std::string(100000, '\x0b')))));  // groups in groups
  std::string nested;
  for (int i = 0; i < 2000; ++i) {
    std::string length;
    for (std::size_t n = nested.size(); length.empty() || n > 0; n >>= 7)
      length += static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
    nested = '\x2a' + length + nested;
  }
  read<T>(framed(nested));
}

// libprotobuf would reserve up to 50 MB for each of these texts (WI-2).
BOOST_AUTO_TEST_CASE(lengths_beyond_the_message_reserve_nothing) {
  std::string text = std::string("\x2a\xff\xff\xff\x17", 5) + "text";  // text of an attribute, claims 50 MB
  std::string outer = std::string("\x22\xff\xff\xff\x37", 5) + text;   // an attribute that claims 117 MB
  std::string inner = std::string("\x22", 1) + static_cast<char>(text.size()) + text;
  BOOST_TEST(static_cast<bool>(read<call_request>(framed(outer))));
  BOOST_TEST(static_cast<bool>(read<call_request>(framed(inner))));
  BOOST_TEST(static_cast<bool>(read<call_request>(framed(std::string("\x0a\xff\xff\xff\x17", 5) + "name"))));
  std::string unknown = std::string("\x7a\xff\xff\xff\x17", 5) + "text";  // in a field of a later version
  BOOST_TEST(
    static_cast<bool>(read<call_request>(framed(std::string("\x2a", 1) + static_cast<char>(unknown.size()) + unknown))));
  // An option of a new optimizer claims 117 MB, and its name 50 MB, within a request of the true length.
  std::string name = std::string("\x0a\xff\xff\xff\x17", 5) + "text";
  std::string option =
    std::string(1, static_cast<char>(wire::CreateOptimizer::kOptionsFieldNumber << 3 | 2)) + "\xff\xff\xff\x37" + name;
  const auto tag = static_cast<unsigned>(wire::CallRequest::kCreateOptimizerFieldNumber << 3 | 2);
  BOOST_REQUIRE(tag < 1U << 14);
  std::string asked{static_cast<char>(tag | 0x80), static_cast<char>(tag >> 7), static_cast<char>(option.size())};
  BOOST_TEST(static_cast<bool>(read<call_request>(framed(asked + option))));
}

// The entries that are cheapest on the wire and still take memory here, a megabyte of each (WI-2).
BOOST_AUTO_TEST_CASE(a_million_cheap_entries_take_little_memory) {
  auto many = [](const std::string& entry) {
    std::string header;
    while (header.size() < 1000000) header += entry;
    return framed(header);
  };
  read<call_request>(many(std::string("\x22\x00", 2)));  // empty attributes
  read<call_result>(many(std::string("\x0a\x00", 2)));
  read<call_request>(many(std::string("\x2a\x00", 2)));  // payloads, which the parser merges
  read<welcome>(many(std::string("\x2a\x00", 2)));       // empty news
  read<gossip>(many(std::string("\x12\x00", 2)));
  read<std::vector<member>>(many(std::string("\x0a\x00", 2)));
  read<autograd_message>(many(std::string("\x30\x01", 2)));                      // requires_grad, not packed
  read<autograd_message>(many(std::string("\x0a\x05\x35\x00\x00\x00\x00", 7)));  // devices, payloads merged
  read<discover>(many(std::string("\x21") + std::string(8, 'x')));
  read<farewell>(many("\x12\x01x"));
  const auto asking = [](int field,
                         const std::string& request) {  // the largest that a call may ask for without a limit on entries
    wire::CallRequest call;
    const auto& part = *call.GetDescriptor()->FindFieldByNumber(field);
    BOOST_REQUIRE(call.GetReflection()->MutableMessage(&call, &part)->ParseFromString(request));
    return framed(call.SerializeAsString());
  };
  wire::Select names;
  while (names.names_size() < 30'000) names.add_names("");
  BOOST_TEST(!read<call_request>(asking(wire::CallRequest::kSelectFieldNumber, names.SerializeAsString())));
  wire::CreateOptimizer groups;
  while (groups.groups_size() < 15'000) groups.add_groups()->set_number(static_cast<std::uint64_t>(groups.groups_size()));
  BOOST_TEST(!read<call_request>(asking(wire::CallRequest::kCreateOptimizerFieldNumber, groups.SerializeAsString())));
  wire::SetRates rates;
  for (std::uint32_t i = 0; i < 30'000; ++i) rates.add_rate_groups(i), rates.add_rates(i);
  BOOST_TEST(!read<call_request>(asking(wire::CallRequest::kSetRatesFieldNumber, rates.SerializeAsString())));
  read<node_status>(many(std::string("\x8a\x01\x00", 3)));  // empty names of peers
  std::string distinct;
  for (int i = 0; i < 60000; ++i) {  // attributes with different names, which are kept
    std::string name{static_cast<char>(i), static_cast<char>(i >> 8), static_cast<char>(i >> 16)};
    distinct += std::string("\x22\x07\x0a\x03", 4) + name + std::string("\x10\x01", 2);
  }
  BOOST_TEST(!read<call_request>(framed(distinct)));
  wire::Autograd header;
  for (int i = 0; i < 50000; ++i) {  // tensors without dimensions and without bytes
    header.mutable_tensors()->add_kinds(1);
    header.mutable_tensors()->add_dtypes(0);
    header.mutable_tensors()->add_shapes(1);
    header.mutable_tensors()->add_sizes(0);
    header.mutable_tensors()->add_payloads(0);
  }
  BOOST_TEST(!read<autograd_message>(framed(header.SerializeAsString())));
  header.Clear();
  for (std::size_t i = 0; i < max_tensors; ++i) header.mutable_tensors()->add_kinds(0);
  BOOST_TEST(!read<autograd_message>(framed(header.SerializeAsString())));
  header.mutable_tensors()->add_kinds(0);
  check_refused(header.tensors(), "has 65537 tensors, at most 65536 travel");
}

// The largest header that is read at all. What it holds takes memory for each byte, not for each entry (WI-2).
BOOST_AUTO_TEST_CASE(the_largest_headers_take_little_memory) {
  const auto largest = [](const std::string& entry) {
    std::string header;
    header.reserve(max_header_bytes);
    while (header.size() + entry.size() <= max_header_bytes) header += entry;
    return framed(header);
  };
  const auto too_many = [](const caf::error& failed) {
    return caf::to_string(failed).find("more entries than") != std::string::npos;
  };
  BOOST_TEST(too_many(read<call_request>(largest(std::string("\x22\x00", 2)))));          // empty attributes
  BOOST_TEST(too_many(read<call_request>(largest(std::string("\x22\x02\x0a\x00", 4)))));  // with empty names
  BOOST_TEST(too_many(read<call_result>(largest(std::string("\x0a\x00", 2)))));
  BOOST_TEST(too_many(read<gossip>(largest(std::string("\x12\x00", 2)))));
  BOOST_TEST(too_many(read<node_status>(largest(std::string("\x8a\x01\x00", 3)))));      // empty names of peers
  BOOST_TEST(too_many(read<propagate_gradients>(largest(std::string("\x7a\x00", 2)))));  // empty shapes
  BOOST_TEST(too_many(read<heartbeat>(largest(std::string("\x7a\x00", 2)))));            // a field of a later version
  BOOST_TEST(too_many(read<heartbeat>(largest(std::string("\x78\x00", 2)))));
  BOOST_TEST(too_many(read<call_request>(largest(std::string("\x2a\x02\x7a\x00", 4)))));  // such a field of an inner message
  read<discover>(largest(std::string("\x21") + std::string(8, 'x')));
  BOOST_TEST(too_many(read<held_objects>(largest(std::string("\x10\x01", 2)))));
  read<autograd_message>(largest(std::string("\x0a\x02\x28\x01", 4)));  // requires_grad
  read<farewell>(largest("\x12\x01x"));
  farewell last;
  last.reason = std::string(max_header_bytes - 100, 'x');
  BOOST_TEST(!read<farewell>(testing::encoded(last)));
  last.reason += std::string(100, 'x');
  bytes unwritten;
  BOOST_TEST(caf::to_string(testing::encode(unwritten, last)).find("is too large") != std::string::npos);
  BOOST_TEST(caf::to_string(read<farewell>(framed(std::string(max_header_bytes + 1, '\0')))).find("claims") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(lists_that_no_node_sends_are_refused) {
  const auto longer = static_cast<int>(max_entries + 1);
  const auto is_refused = [](const caf::error& failed) {
    return caf::to_string(failed).find("than any node sends") != std::string::npos;
  };
  const auto fill = [&](auto& list) { list.Resize(longer, 1); };
  wire::CallRequest call;
  fill(*call.mutable_failed());
  BOOST_TEST(is_refused(read<call_request>(framed(call.SerializeAsString()))));
  call.mutable_failed()->RemoveLast();
  BOOST_TEST(!read<call_request>(framed(call.SerializeAsString())));
  wire::CallResult result;
  fill(*result.mutable_participants());
  BOOST_TEST(is_refused(read<call_result>(framed(result.SerializeAsString()))));
  wire::PassAborted aborted;
  fill(*aborted.mutable_sent_to());
  BOOST_TEST(is_refused(read<pass_aborted>(framed(aborted.SerializeAsString()))));
  call.Clear();
  auto& group = *call.mutable_create_optimizer()->add_groups();
  group.set_number(1);
  group.mutable_modules()->Resize(static_cast<int>(max_attributes) + 1, 1);
  BOOST_TEST(is_refused(read<call_request>(framed(call.SerializeAsString()))));
  group.mutable_modules()->RemoveLast();
  BOOST_TEST(!read<call_request>(framed(call.SerializeAsString())));
  auto& change = *call.mutable_set_rates();
  change.mutable_rates()->Resize(static_cast<int>(max_attributes) + 1, 1);
  change.mutable_rate_groups()->Resize(static_cast<int>(max_attributes) + 1, 1);
  BOOST_TEST(is_refused(read<call_request>(framed(call.SerializeAsString()))));
  call.Clear();
  for (std::size_t i = 0; i <= max_attributes; ++i) {
    auto& entry = *call.add_values();
    entry.set_name(std::to_string(i));
    entry.set_truth(true);
  }
  BOOST_TEST(is_refused(read<call_request>(framed(call.SerializeAsString()))));
  call.mutable_values()->RemoveLast();
  call.mutable_values(0)->set_name(std::string(max_attribute_name_bytes, 'n'));
  BOOST_TEST(!read<call_request>(framed(call.SerializeAsString())));
  call.mutable_values(0)->set_name(std::string(max_attribute_name_bytes + 1, 'n'));
  BOOST_TEST(is_refused(read<call_request>(framed(call.SerializeAsString()))));
}

// What nodes may send is within the limits, whatever it is: the news of all members, and a call with as much of everything as a call
// may have.
BOOST_AUTO_TEST_CASE(devices_that_no_node_has_are_refused_or_left_out) {
  const auto greeting = [](int devices, std::uint32_t number) {
    wire::Hello header;
    header.set_id(1);
    for (int i = 0; i < devices; ++i) header.add_devices(number);
    return framed(header.SerializeAsString());
  };
  BOOST_TEST(!read<hello>(greeting(max_devices, 1 << 16)));
  BOOST_TEST(!!read<hello>(greeting(max_devices + 1, 1 << 16)));
  BOOST_TEST(!!read<hello>(greeting(1'000'000, 0)));
  wire::Welcome header;
  header.mutable_self()->set_id(1);
  for (const std::uint32_t number : {0U, 1U, 2U << 16 | 128, 0xffffU << 16, ~0U, 1U << 16 | 3})
    header.mutable_self()->add_devices(number);
  welcome x;
  BOOST_TEST(!testing::decode(framed(header.SerializeAsString()), x));
  BOOST_TEST_REQUIRE(x.self.devices.size() ==
                     2U);  // the CPU has no index, no device has index 128, and a kind to come has no name here
  BOOST_CHECK(x.self.devices.at(0) == c10::Device(c10::kCPU));
  BOOST_CHECK(x.self.devices.at(1) == wire_device(1U << 16 | 3));
}

BOOST_AUTO_TEST_CASE(the_largest_messages_that_nodes_send_are_read) {
  welcome all;
  for (std::uint64_t i = 1; i <= 65'536 + 1024 + 1; ++i)
    all.news.push_back({{std::string(64, 'n'), {i}, std::string(253, 'h'), 65535}, ~std::uint32_t{0}, member_state::left});
  BOOST_TEST(!read<welcome>(testing::encoded(all)));
  call_request call;
  const std::string name(max_attribute_name_bytes - 5, 'n');
  for (std::size_t i = 0; i < 10'000; ++i) call.values[name + std::to_string(i)] = std::string(600, 'v');
  check_can_travel(call.values, "these");
  const auto tensor = at::empty({0, 1, 1}, at::kFloat);
  call.payload.tensors.assign(max_tensors * 4 / 5, tensor);
  call.payload.requires_grad.assign(call.payload.tensors.size(), true);
  check_count_travels(call.payload.tensors, "these");
  call.failed.assign(max_entries, pass_number{1});
  BOOST_TEST(!read<call_request>(testing::encoded(call)));
}

BOOST_AUTO_TEST_CASE(shapes_no_tensor_has_are_refused) {
  check_refused(described({minus_one}, 4), "negative sizes");
  check_refused(described({2, minus_one - 1}, 4), "negative sizes");
  check_refused(described({std::uint64_t{1} << 63}, 4), "negative sizes");
  check_refused(described({huge}, 4), "more elements than a tensor can have");
  check_refused(described({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0), "more elements");
  check_refused(described({0, huge, huge}, 0), "more elements");
  check_refused(described(std::vector<std::uint64_t>(1025, 1), 4), "more dimensions");
}

BOOST_AUTO_TEST_CASE(payloads_that_do_not_fit_are_refused) {
  check_refused(described({3}, 16), "12 bytes by its shape, 16 by the header");
  check_refused(described({3}, 0), "12 bytes by its shape");
  check_refused(described({1025}, 4100), "has 4100 bytes, the message has only 4096 left");
  check_refused(described({std::uint64_t{1} << 50}, std::uint64_t{4} << 50), "the message has only 4096 left");
}

BOOST_AUTO_TEST_CASE(strides_that_leave_the_payload_are_refused) {
  check_refused(described({2, 2}, 16, {4, 1}), "gaps or overlap");
  check_refused(described({2, 2}, 16, {1, 1}), "gaps or overlap");
  check_refused(described({2, 2}, 16, {0, 1}), "gaps or overlap");
  check_refused(described({2, 2}, 16, {huge, 1}), "gaps or overlap");
  check_refused(described({2, 2}, 16, {2, minus_one}), "gaps or overlap");
  check_refused(described({1, 4}, 16, {minus_one, 1}), "gaps or overlap");
}

BOOST_AUTO_TEST_CASE(arrays_that_contradict_each_other_are_refused) {
  auto tensors = described({4}, 16);
  tensors.add_kinds(1);
  check_refused(tensors, "speaks of 2 defined tensors or their components, but has 1 dtypes");
  tensors = described({4}, 16);
  tensors.add_dtypes(1);
  check_refused(tensors, "has 2 dtypes");
  tensors = described({4}, 16);
  tensors.add_payloads(1);
  check_refused(tensors, "2 payloads");
  tensors = described({4}, 16);
  tensors.add_sizes(4);
  check_refused(tensors, "more sizes or strides than its tensors");
  tensors = described({4}, 16);
  tensors.add_strides(1);
  check_refused(tensors, "more sizes or strides than its tensors");
  tensors = described({4}, 16);
  tensors.set_shapes(0, 2);
  check_refused(tensors, "more dimensions than the header describes");
  tensors.set_shapes(0, 1 | 0x10000);
  check_refused(tensors, "more dimensions than the header describes");
  tensors.set_shapes(0, 0xfffe0001);
  check_refused(tensors, "more dimensions than the header describes");
}

BOOST_AUTO_TEST_CASE(dtypes_and_kinds_that_are_not_known_are_refused) {
  auto tensors = described({4}, 16);
  for (std::uint32_t dtype : {22u, 100u, 0x7fffffffu, 0xffffffffu}) {
    tensors.set_dtypes(0, dtype);
    check_refused(tensors, "which is not known");
  }
  for (std::uint32_t kind : {4u, 0xffffffffu}) {
    tensors.set_kinds(0, kind);
    check_refused(tensors, "update this node");
  }
}

BOOST_AUTO_TEST_CASE(packed_tensors_that_are_none_are_refused) {  // WI-2
  constexpr std::uint32_t no_exponent = 1U << 15 << 8;
  const auto packed = [](std::vector<std::uint64_t> sizes, std::uint64_t payload, std::uint32_t how) {
    auto result = described(sizes, payload);
    result.set_kinds(0, 3);
    result.add_packings(how);
    return result;
  };
  const auto accepted = [](const wire::Tensors& tensors, std::size_t payload) {
    wire::Autograd header;
    *header.mutable_tensors() = tensors;
    return !read<autograd_message>(framed(header.SerializeAsString(), payload));
  };
  BOOST_TEST(accepted(packed({1000}, 2000, no_exponent | 1), 2000));
  BOOST_TEST(accepted(packed({1000}, 2000, no_exponent | 2), 2000));
  BOOST_TEST(accepted(packed({1000}, 1016, no_exponent | 3), 1016));
  BOOST_TEST(accepted(packed({0}, 0, no_exponent | 3), 0));
  check_refused(packed({1000}, 4000, no_exponent | 1), "has elements of 2000 bytes by its shape, 4000 by the header");
  check_refused(packed({1000}, 1000, no_exponent | 3), "has elements of 1016 bytes by its shape");
  for (const std::uint32_t how :
       {0u, no_exponent, no_exponent | 4, no_exponent | 0xff, 1u, 0xffffff01u, no_exponent + (127u << 8) + 2})
    check_refused(packed({1000}, 2000, how), "update this node");
  auto bad = packed({1000}, 2000, no_exponent | 1);
  bad.set_dtypes(0, 12);
  check_refused(bad, "is compressed, but is not of float32");
  bad = packed({1000}, 2000, no_exponent | 1);
  bad.clear_packings();
  check_refused(bad, "the header does not say how");
  bad = packed({1000}, 2000, no_exponent | 1);
  bad.add_packings(no_exponent | 1);
  check_refused(bad, "more wire formats than compressed tensors");
  bad = described({4}, 16);
  bad.add_packings(no_exponent | 1);
  check_refused(bad, "more wire formats than compressed tensors");
  check_refused(packed({std::uint64_t{1} << 30}, std::uint64_t{1} << 30, no_exponent | 3),
                "more bytes without compression than the message may have left");
  check_refused(packed({std::uint64_t{1} << 29, 2}, std::uint64_t{2} << 30, no_exponent | 1),
                "more bytes without compression than the message may have left");
  auto two = packed({std::uint64_t{3} << 28}, 805306368 + 12582912, no_exponent | 3);  // 3 GiB each
  two.add_ahead(7);                                                                    // so that no elements have to follow
  two.MergeFrom(wire::Tensors(two));
  check_refused(two, "tensor 1 has more bytes without compression");
  check_refused(packed({huge, huge}, 2000, no_exponent | 1), "more elements than a tensor can have");
}

BOOST_AUTO_TEST_CASE(sparse_tensors_that_are_none_are_refused) {
  autograd_message message;
  message.tensors = {at::eye(3).to_sparse()};
  bytes wire = testing::encoded(message);
  BOOST_TEST(!read<autograd_message>(wire));
  wire::Autograd header;
  BOOST_REQUIRE(header.ParseFromArray(wire.data() + prefix, static_cast<int>(header_size(wire))));
  const wire::Tensors good = header.tensors();
  const auto changed = [&good](auto change) {
    wire::Tensors bad = good;
    change(bad);
    return bad;
  };
  check_refused(changed([](auto& t) { t.set_dtypes(0, 8); }), "not one int64 for each dimension and value");
  check_refused(changed([](auto& t) { t.set_sizes(2, 6), t.set_payloads(1, 24); }), "not one int64");
  check_refused(changed([](auto& t) { t.mutable_sparse_sizes()->RemoveLast(); }), "more dimensions than the header describes");
  check_refused(changed([](auto& t) { t.add_sparse_sizes(3); }), "more sizes or strides");
  check_refused(changed([](auto& t) { t.clear_coalesced(); }), "more dimensions than the header describes");
  check_refused(changed([](auto& t) { t.set_sparse_sizes(0, minus_one); }), "negative sizes");
  check_refused(changed([](auto& t) { t.set_sparse_sizes(0, 0); }), "indices outside its shape", 48 + 12);
  check_refused(good, "out of order", 48 + 12);  // all indices are 0 here
  bytes outside = wire;
  outside[outside.size() - 60] = 3;
  BOOST_TEST(static_cast<bool>(read<autograd_message>(outside)));
  outside[outside.size() - 53] = static_cast<char>(0x80);  // negative
  BOOST_TEST(static_cast<bool>(read<autograd_message>(outside)));
}

BOOST_AUTO_TEST_CASE(bools_that_are_none_are_refused) {
  autograd_message message;
  message.tensors = {at::ones({100}, at::kBool)};
  bytes wire = testing::encoded(message);
  BOOST_TEST(!read<autograd_message>(wire));
  wire.back() = 2;
  BOOST_TEST(static_cast<bool>(read<autograd_message>(wire)));
}

BOOST_AUTO_TEST_CASE(fields_out_of_range_are_refused) {
  wire::Hello greeting;
  greeting.set_port(65536);
  BOOST_TEST(static_cast<bool>(read<hello>(framed(greeting.SerializeAsString()))));
  wire::Gossip news;
  news.add_news()->set_id(1);
  BOOST_TEST(!read<gossip>(framed(news.SerializeAsString())));
  news.mutable_news(0)->set_state(4);
  BOOST_TEST(static_cast<bool>(read<gossip>(framed(news.SerializeAsString()))));
  wire::ParticipantFailed failed;
  failed.set_code(256);
  BOOST_TEST(static_cast<bool>(read<participant_failed>(framed(failed.SerializeAsString()))));
  wire::Discover discovery;
  discovery.add_send_nodes(1);
  BOOST_TEST(static_cast<bool>(read<discover>(framed(discovery.SerializeAsString()))));
  wire::Autograd payload;
  payload.mutable_joint()->add_requires_grad(true);
  BOOST_TEST(static_cast<bool>(read<autograd_message>(framed(payload.SerializeAsString()))));
  payload.mutable_joint()->clear_requires_grad();
  payload.mutable_joint()->add_devices(0);
  BOOST_TEST(static_cast<bool>(read<autograd_message>(framed(payload.SerializeAsString()))));
  payload.mutable_tensors()->add_kinds(0);
  BOOST_TEST(!read<autograd_message>(framed(payload.SerializeAsString())));
  payload.mutable_joint()->set_devices(0, 0x7fff0000);  // no such kind of device
  BOOST_TEST(static_cast<bool>(read<autograd_message>(framed(payload.SerializeAsString()))));
  wire::Autograd autocast;
  const auto half = *wire_number(at::kHalf);
  autocast.mutable_joint()->add_autocast(half);  // on the CPU
  autocast.mutable_joint()->add_autocast(*wire_number(c10::Device(at::kCUDA)) | half);
  BOOST_TEST(!read<autograd_message>(framed(autocast.SerializeAsString())));
  autocast.mutable_joint()->add_autocast(*wire_number(at::kBFloat16));  // on the CPU again
  BOOST_TEST(static_cast<bool>(read<autograd_message>(framed(autocast.SerializeAsString()))));
  wire::NodeStatus status;
  status.add_peer_names("b");
  BOOST_TEST(static_cast<bool>(read<node_status>(framed(status.SerializeAsString()))));
  status.add_peer_ids(1), status.add_peer_hosts("h"), status.add_peer_ports(1), status.add_peer_up(true);
  status.add_peer_contexts(0), status.add_messages_sent(0), status.add_messages_received(0);
  status.add_bytes_sent(0), status.add_bytes_received(0);
  BOOST_TEST(!read<node_status>(framed(status.SerializeAsString())));  // as an older node sends it
  status.add_bytes_read(0), status.add_bytes_read(0);
  BOOST_TEST(static_cast<bool>(read<node_status>(framed(status.SerializeAsString()))));
  status.mutable_bytes_read()->RemoveLast();
  BOOST_TEST(!read<node_status>(framed(status.SerializeAsString())));
  status.add_peer_reasons("frozen"), status.add_peer_reasons("of nobody");
  BOOST_TEST(static_cast<bool>(read<node_status>(framed(status.SerializeAsString()))));
  // CAF hands on a call, an answer and gradients; each of them numbers a message.
  const auto numbered = [](auto* joint, std::uint64_t number) { joint->set_message_number(number); };
  for (const auto number : {highest_message_number, highest_message_number + 1, ~std::uint64_t{0}}) {
    const bool is_refused = number > highest_message_number;
    wire::CallRequest question;
    numbered(question.mutable_joint(), number);
    BOOST_TEST(static_cast<bool>(read<call_request>(framed(question.SerializeAsString()))) == is_refused);
    wire::CallResult answer;
    numbered(answer.mutable_joint(), number);
    BOOST_TEST(static_cast<bool>(read<call_result>(framed(answer.SerializeAsString()))) == is_refused);
    wire::PropagateGradients gradients;
    gradients.mutable_carried()->add_weight(0);
    numbered(&gradients, number);
    BOOST_TEST(static_cast<bool>(read<propagate_gradients>(framed(gradients.SerializeAsString()))) == is_refused);
  }
  wire::MemoryMark mark;
  for (int words = 0; words < 6; ++words) {
    BOOST_TEST(static_cast<bool>(read<memory_mark>(framed(mark.SerializeAsString()))) == (words != 4));
    mark.add_words(1);
  }
  wire::CallRequest call;
  const auto is_read = [&call] { return !read<call_request>(framed(call.SerializeAsString())); };
  call.mutable_read()->set_of(3);
  BOOST_TEST(is_read());
  call.mutable_read()->set_of(4);
  BOOST_TEST(!is_read());
  call.mutable_write()->add_names("weight");
  BOOST_TEST(!is_read());  // without a tensor
  call.mutable_tensors()->add_kinds(0);
  BOOST_TEST(is_read());
  call.mutable_write()->set_of(3);  // gradients
  BOOST_TEST(!is_read());
  call.Clear();
  auto& groups = *call.mutable_create_optimizer();
  groups.add_groups()->set_number(1);
  BOOST_TEST(is_read());
  groups.add_groups()->set_number(1);
  BOOST_TEST(!is_read());
  call.mutable_step()->add_rates(0.1);
  BOOST_TEST(!is_read());
  call.mutable_step()->add_rate_groups(0);
  BOOST_TEST(is_read());
  call.Clear();
  call.add_values()->set_name("x");
  BOOST_TEST(static_cast<bool>(read<call_request>(framed(call.SerializeAsString()))));
  call.mutable_values(0)->set_truth(true);
  BOOST_TEST(!read<call_request>(framed(call.SerializeAsString())));
  *call.add_values() = call.values(0);
  BOOST_TEST(static_cast<bool>(read<call_request>(framed(call.SerializeAsString()))));
}

BOOST_AUTO_TEST_CASE(the_allocation_count_counts) {
  testing::allocation_count count;
  delete[] new int[1000];
  BOOST_TEST(count.bytes() >= 4000u);
  at::Tensor tensor = at::empty({100000}, at::kByte);
  BOOST_TEST(count.bytes() >= 104000u);
}
