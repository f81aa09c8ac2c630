// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_values.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/config_value.hpp>
#include <caf/duration.hpp>
#include <caf/error.hpp>
#include <caf/message.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <caf/timespan.hpp>
#include <caf/timestamp.hpp>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/messages/messages.hpp>

BOOST_AUTO_TEST_SUITE(values_of_messages)

namespace {

using troupe::network::content_of;
using troupe::network::is_answer_of_node;
using troupe::network::message_outline;
using troupe::network::message_values;

std::string number_text(std::uint64_t number) {
  std::string result;
  for (int shift = 56; shift >= 0; shift -= 8) result += static_cast<char>(number >> shift);
  return result;
}

/// A message as CAF writes it.
std::string message_text(const std::string& types, const std::string& values = {}) {
  return std::string(2, '\0') + static_cast<char>(types.size()) + types + values;
}

std::string node_text() {
  return number_text(static_cast<std::uint64_t>(caf::node_id::default_data::class_id)) + std::string(24, 'n');
}

bool is_wrong(const std::string& types, const std::string& values = {}) { return message_values::of(types, values).is_wrong; }

struct writer {
  troupe::nodes::system_config config{troupe::settings{}};  // with a network, because only then a node has an id
  caf::actor_system system{config};

  template <class T>
  std::string written(T value) {
    std::vector<char> bytes;
    caf::binary_serializer to(system, bytes);
    BOOST_REQUIRE(!to(value));
    return {bytes.begin(), bytes.end()};
  }

  /// Looks at the message as CAF writes it. A value of two bytes does not fit into one more byte behind it: so all bytes were looked at.
  message_values look(const caf::message& what) {
    const auto bytes = written(what);
    const auto content = content_of(bytes);
    BOOST_REQUIRE(content.has_value());
    const auto result = message_values::of(content->types, content->values);
    const std::string more = std::string(content->values) + 'x';
    BOOST_TEST(message_values::of(std::string(content->types) + "+@u16", more).is_wrong, content->types);
    BOOST_TEST(!message_values::of(std::string(content->types) + "+@u8", more).is_wrong, content->types);
    return result;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_caf_writes_is_read_to_its_last_byte, writer) {  // MV-2
  const caf::scoped_actor self{system};
  const auto actor = caf::actor_cast<caf::actor>(self);
  const auto pointer = caf::actor_cast<caf::strong_actor_ptr>(actor);
  const caf::actor_addr address = actor.address();
  const caf::error plain = caf::sec::unexpected_message;
  const auto detailed = caf::make_error(caf::sec::runtime_error, std::string("why"), plain, caf::make_message(std::int8_t{1}));
  for (const auto& each :
       {caf::make_message(), caf::make_message(std::int8_t{1}, std::int16_t{2}, std::int32_t{3}, std::int64_t{4}),
        caf::make_message(std::uint8_t{1}, std::uint16_t{2}, std::uint32_t{3}, std::uint64_t{4}),
        caf::make_message(1.5F, 2.5, true), caf::make_message(static_cast<long double>(0.25)),
        caf::make_message(caf::atom("go"), caf::unit, std::string(300, 'x')),
        caf::make_message(std::u16string(u"ab"), std::u32string(U"abc")), caf::make_message(std::vector<char>(200, 'x')),
        caf::make_message(caf::timespan(7), caf::timestamp(caf::timespan(7)), caf::duration(std::chrono::seconds(7))),
        caf::make_message(std::vector<std::string>{"a", "bc"}, std::set<std::string>{"d"},
                          std::map<std::string, std::string>{{"k", "v"}}),
        caf::make_message(system.node(), caf::node_id{}), caf::make_message(plain), caf::make_message(detailed, std::int8_t{1}),
        caf::make_message(caf::make_message(caf::make_message(std::string("deep")), std::int8_t{1}), std::int8_t{2}),
        caf::make_message(caf::message_id{}, std::vector<caf::atom_value>{caf::atom("a"), caf::atom("b")})}) {
    const auto found = look(each);
    BOOST_TEST(!found.is_wrong, caf::to_string(each));
    BOOST_TEST(!found.has_unknown_layout, caf::to_string(each));
    BOOST_TEST(found.pointers == 0U);
  }
  const auto many = look(caf::make_message(actor, pointer, address, caf::strong_actor_ptr{},
                                           std::vector<caf::actor>{actor, actor}, std::vector<caf::actor_addr>{address},
                                           caf::exit_msg{address, plain}, caf::down_msg{address, detailed}));
  BOOST_TEST(!many.is_wrong);
  BOOST_TEST(many.pointers == 8U);
  BOOST_TEST(
    !look(caf::make_message(troupe::farewell{{7}, "so long"}, troupe::heartbeat{{7}, 3, {}}, std::int8_t{1})).is_wrong);
}

// Each name that CAF gives to a type of its own is of a type that was read through, or is wrong.
BOOST_FIXTURE_TEST_CASE(no_other_type_of_cafs_comes, writer) {  // MV-1
  const std::set<std::string> read_through = {"@actor",
                                              "@actorvec",
                                              "@addr",
                                              "@addrvec",
                                              "@atom",
                                              "@charbuf",
                                              "@down",
                                              "@duration",
                                              "@error",
                                              "@exit",
                                              "@i16",
                                              "@i32",
                                              "@i64",
                                              "@i8",
                                              "@ldouble",
                                              "@message",
                                              "@message_id",
                                              "@node",
                                              "@str",
                                              "@strmap",
                                              "@strong_actor_ptr",
                                              "@strset",
                                              "@strvec",
                                              "@timeout",
                                              "@timespan",
                                              "@timestamp",
                                              "@u16",
                                              "@u16str",
                                              "@u32",
                                              "@u32str",
                                              "@u64",
                                              "@u8",
                                              "@unit",
                                              "@weak_actor_ptr",
                                              "bool",
                                              "double",
                                              "float",
                                              "std::vector<@actor>",
                                              "std::vector<@addr>",
                                              "std::vector<@atom>"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 1 < caf::type_nrs; ++i) names.emplace_back(caf::numbered_type_names[i]);
  for (const auto& [name, make] : config.value_factories_by_name)
    if (!name.starts_with("troupe.")) names.push_back(name);
  for (const auto* of_brokers : {"@accept_handle", "@acceptor_closed_msg", "@acceptor_passivated_msg", "@address_listing",
                                 "@connection_closed_msg", "@connection_handle", "@connection_passivated_msg",
                                 "@new_connection_msg", "@new_data_msg", "@protocol", "@receive_buffer"})
    names.emplace_back(of_brokers);
  BOOST_TEST(names.size() > 50U);
  for (const auto& each : names) {
    const auto types = "@<>+" + each;
    const std::string zeros(64, '\0');
    const bool comes = read_through.contains(each);
    // Zeros are a value of each of these types, but for those with a message or a node in them.
    const std::set<std::string> not_zero = {"@message",          "@error",         "@exit", "@down", "@node", "@actor", "@addr",
                                            "@strong_actor_ptr", "@weak_actor_ptr"};
    if (comes && !not_zero.contains(each)) BOOST_TEST(!is_wrong(types, zeros), each);
    if (!comes) BOOST_TEST(is_wrong(types, zeros), each);
    if (!comes) BOOST_TEST(is_wrong("@<>+my.type+" + each, zeros), each);
    if (!comes) BOOST_TEST(is_wrong("@<>+" + each), each);
  }
}

BOOST_AUTO_TEST_CASE(values_that_caf_can_not_read_are_wrong) {  // MV-2
  BOOST_TEST(is_wrong("@<>+@charbuf", "\377\377\377\377\17"));
  BOOST_TEST(is_wrong("@<>+@str", "\4abc"));
  BOOST_TEST(is_wrong("@<>+@actorvec", "\377\377\377\377\17"));
  const auto pointer = [](std::uint64_t actor, const std::string& node) {
    return is_wrong("@<>+@strong_actor_ptr", number_text(actor) + node);
  };
  const auto nobody = number_text(static_cast<std::uint64_t>(caf::atom("")));
  const auto uri = number_text(static_cast<std::uint64_t>(caf::node_id::uri_data::class_id)) + std::string(24, '\0');
  BOOST_TEST(!pointer(1, node_text()));
  BOOST_TEST(!pointer(0, nobody));
  BOOST_TEST(pointer(0, node_text()));
  BOOST_TEST(pointer(1, nobody));
  BOOST_TEST(pointer(1, uri));
  BOOST_TEST(is_wrong("@<>+@node", uri));
  std::string nested = message_text("@<>");
  for (std::size_t i = 0; i < message_values::most_nested; ++i) nested = message_text("@<>+@message", nested);
  BOOST_TEST(!is_wrong("@<>+@message", nested.substr(message_text("@<>+@message").size())));
  BOOST_TEST(is_wrong("@<>+@message", nested));
  const auto error_with = [](const std::string& context) {
    return message_values::of_error('\1' + number_text(0) + context).is_wrong;
  };
  BOOST_TEST(!error_with(""));  // a value of a type that the other end has not registered
  BOOST_TEST(!error_with(message_text("@<>+@str", "\3abc")));
  for (const auto* each : {"@<>+settings", "@<>+@config_value", "@<>+std::vector<@message>", "@<>+my.type+@group"})
    BOOST_TEST(error_with(message_text(each, std::string(10, '\0'))), each);
  BOOST_TEST(error_with("x"));
  BOOST_TEST(message_values::of_error("").is_wrong);
  // CAF passes over an empty name in a list. The walk has to refuse the list, because it would not look at the values behind the name.
  BOOST_TEST(error_with(message_text("@<>+@message+@node", message_text("@<>+@u8+", "x") + uri)));
  BOOST_TEST(error_with(message_text("@<>+@message+@charbuf", message_text("@<>+@u8+", "x") + "\377\377\377\377\17")));
  BOOST_TEST(is_wrong("@<>+troupe.call", std::string("\1\0\0\0\377\377\377\377\377\377\377\377x", 13)));
}

// Before, an honest node lost its connection when it could not write a value.
BOOST_FIXTURE_TEST_CASE(what_caf_could_not_write_is_not_wrong, writer) {  // MV-2
  troupe::call_request large;
  large.what = troupe::requests::function{std::string(troupe::max_header_bytes + 1, 'x')};
  const std::vector<std::uint64_t> unregistered = {1};
  const auto nested = caf::make_message(unregistered);
  const caf::error with_context(1, caf::atom("test"), nested);
  for (const auto& each :
       {caf::make_message(large), caf::make_message(std::string("a"), large, std::int8_t{1}),
        caf::make_message(std::string("a"), nested), caf::make_message(caf::make_message(std::int8_t{2}, nested)),
        caf::make_message(with_context), caf::make_message(std::int8_t{1}, nested, std::string("b")),
        caf::make_message(with_context, std::string("c")), caf::make_message(caf::make_message(large), std::string("d"))}) {
    const auto bytes = written(each);
    const auto content = content_of(bytes);
    BOOST_REQUIRE(content.has_value());
    BOOST_TEST(!message_values::of(content->types, content->values).is_wrong, content->types);
  }
  for (const auto* never : {"@<>+@config_value", "@<>+@str+@group", "@<>+troupe.call+@config_value"})
    BOOST_TEST(is_wrong(never));
}

BOOST_AUTO_TEST_CASE(more_values_than_a_node_sends_are_wrong) {  // MV-4
  const auto size_text = [](std::size_t size) {
    std::string result;
    for (; size > 0x7f; size >>= 7) result += static_cast<char>(0x80 | (size & 0x7f));
    return result + static_cast<char>(size);
  };
  const auto texts = [&](std::size_t count) { return size_text(count) + std::string(count, '\0'); };
  constexpr auto most = message_values::most_values;
  BOOST_TEST(!is_wrong("@<>+@strvec", texts(most - 1)));
  BOOST_TEST(is_wrong("@<>+@strvec", texts(most)));
  BOOST_TEST(is_wrong("@<>+@strvec+@strset", texts(most / 2) + texts(most / 2)));
  BOOST_TEST(is_wrong("@<>+@strmap", size_text(most) + std::string(2 * most, '\0')));
  std::string units = "@<>";
  for (std::size_t i = 0; i <= most; ++i) units += "+@u8";
  BOOST_TEST(is_wrong(units, std::string(most + 1, 'x')));
  constexpr auto pointers = message_values::most_pointers;
  std::string actors = size_text(pointers + 1);
  for (std::size_t i = 0; i <= pointers; ++i) actors += number_text(7) + node_text();
  BOOST_TEST(is_wrong("@<>+@actorvec", actors));
}

BOOST_AUTO_TEST_CASE(behind_an_own_type_names_are_searched) {  // MV-3
  const auto own = message_values::of("@<>+my.type+@str", "whatever @config_value, settings and @group");
  BOOST_TEST(!own.is_wrong);
  BOOST_TEST(own.has_unknown_layout);
  for (const auto* each :
       {"+@config_value", "@<>+@str+settings", "+std::vector<@message>", "+@downstream_msg", "+dictionary<@config_value>",
        "+stream<@str>", "+@charbuf", "++@group", "+++@open_stream_msg", "+x+settings", "+std::vector<troupe.call>"})
    BOOST_TEST(is_wrong("@<>+my.type", std::string("x") + each), each);
  BOOST_TEST(is_wrong("@<>+@message", message_text("@<>+my.type", "x@<>+@group")));
  BOOST_TEST(!is_wrong("@<>+my.type", "x+@"));
  BOOST_TEST(!is_wrong("@<>+my.type", "x@group+"));
  // Before, CAF threw at the first of these, and took 4 GiB and ten seconds for the second one.
  const auto uri = number_text(static_cast<std::uint64_t>(caf::node_id::uri_data::class_id)) + std::string(2, '\0');
  const std::string announced("\1x\377\377\377\377\17");
  BOOST_TEST(is_wrong("@<>+my.type+@node", "\1x" + uri + std::string(40, '\377')));
  BOOST_TEST(is_wrong("@<>+my.type+@charbuf", announced));
  BOOST_TEST(is_wrong("@<>+@message+@charbuf", message_text("@<>+my.type") + announced));
  BOOST_TEST(is_wrong("@<>+my.type+@message", "\1x" + message_text("@<>+@charbuf", announced)));
  for (const auto* each : {"@actor", "@addr", "@strong_actor_ptr", "@weak_actor_ptr", "@actorvec", "std::vector<@addr>",
                           "@message", "@error", "@exit", "@down"}) {
    BOOST_TEST(is_wrong(std::string("@<>+my.type+@str+") + each, "\1x" + uri), each);
    BOOST_TEST(!is_wrong(std::string("@<>+my.type+@str+") + each, "\1x" + node_text()), each);
  }
  BOOST_TEST(!is_wrong("@<>+my.type+@u64", "\1x" + uri));  // the program's own number may look like the mark of a URI
}

// CAF leaves a message empty that it can't read within another one, and goes on with the next value where it has stopped. Before, the walk went on
// behind the message.
BOOST_FIXTURE_TEST_CASE(behind_a_message_that_caf_might_not_read_names_are_searched, writer) {  // MV-3
  const auto uri =
    number_text(static_cast<std::uint64_t>(caf::node_id::uri_data::class_id)) + std::string(2, '\0') + std::string(40, '\377');
  const auto of_troupe = [](const std::string& name, const std::string& header) {
    return message_text("@<>+" + name, static_cast<char>(header.size()) + std::string(11, '\0') + header);
  };
  const auto nobody = number_text(static_cast<std::uint64_t>(caf::atom("")));
  for (const auto* name : {"troupe.call", "troupe.unknown", "my.type"}) {
    const auto values = of_troupe(name, uri) + std::string(12, '\0') + nobody;
    const auto all = message_text("@<>+@message+@u64+@u32+@node", values);
    caf::binary_deserializer from(system, all.data(), all.size());
    caf::message read;
    BOOST_CHECK_THROW(static_cast<void>(from(read)), std::exception);
    BOOST_TEST(is_wrong("@<>+@message+@u64+@u32+@node", values), name);
    BOOST_TEST(is_wrong("@<>+@error+@u64+@u32+@node", '\1' + number_text(0) + values), name);
    BOOST_TEST(is_wrong("@<>+@message+@u64+@u32+@charbuf", of_troupe(name, "\377\377\377\377\17") + std::string(13, '\0')),
               name);
    BOOST_TEST(message_values::of("@<>+@message", of_troupe(name, "")).has_unknown_layout, name);
  }
  BOOST_TEST(is_wrong("@<>+@message+@node", "\0\1" + uri));
  // No node follows, but CAF reads one within the message whose list of types is none.
  const auto within = message_text("@<>+@message", message_text("@<>+@node+", uri));
  caf::binary_deserializer from(system, within.data(), within.size());
  caf::message read;
  BOOST_CHECK_THROW(static_cast<void>(from(read)), std::exception);
  BOOST_TEST(is_wrong("@<>+@message", message_text("@<>+@node+", uri)));
  const auto none = message_values::of("@<>+@message+@str", std::string("\1b"));
  BOOST_TEST(!none.is_wrong);
  BOOST_TEST(none.has_unknown_layout);
  BOOST_TEST(is_wrong("@<>+@message+@message", "\1b" + message_text("@<>+@config_value")));
  BOOST_TEST(!message_values::of("@<>+troupe.call", std::string(12, '\0')).has_unknown_layout);
}

BOOST_AUTO_TEST_CASE(the_node_of_a_pointer_is_told) {
  const auto pointer = number_text(3) + node_text();
  const auto nobody = number_text(0) + number_text(static_cast<std::uint64_t>(caf::atom("")));
  const auto values = pointer + nobody;
  const auto two = message_values::of("@<>+@strong_actor_ptr+@actor", values);
  BOOST_TEST(two.pointers == 1U);
  BOOST_TEST(two.node == node_text());
}

BOOST_AUTO_TEST_CASE(nodes_answer_types_of_troupe_and_plain_ones) {
  for (const auto* each : {"@<>", "@<>+troupe.hello", "@<>+@unit", "@<>+@strong_actor_ptr+@u64", "@<>+bool"})
    BOOST_TEST(is_answer_of_node(each), each);
  for (const auto* each : {"@<>+@error", "@<>+troupe.hello+@actorvec", "@<>+my.type", "@<>+@charbuf", "@<>+"})
    BOOST_TEST(!is_answer_of_node(each), each);
}

BOOST_AUTO_TEST_SUITE_END()
