// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_values.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/config_value.hpp>
#include <caf/duration.hpp>
#include <caf/message.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <caf/timespan.hpp>
#include <caf/timestamp.hpp>

#include <troupe/actors/network/message_outline.hpp>
#include <troupe/actors/network/system_config.hpp>
#include <troupe/actors/settings.hpp>
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
  troupe::network::system_config config{troupe::settings{}};  // with a network, because only then a node has an id
  caf::actor_system system{config};

  template <class T>
  std::string written(T value) {
    std::vector<char> bytes;
    caf::binary_serializer to(system, bytes);
    BOOST_REQUIRE(!to(value));
    return {bytes.begin(), bytes.end()};
  }

  /// Looks at the message as CAF writes it. With each byte less it is wrong: so all of them were looked at.
  message_values look(const caf::message& what) {
    const auto bytes = written(what);
    const auto content = content_of(bytes);
    BOOST_REQUIRE(content.has_value());
    const auto result = message_values::of(content->types, content->values);
    if (!content->values.empty() && !result.has_own_types)
      BOOST_TEST(message_values::of(content->types, content->values.substr(0, content->values.size() - 1)).is_wrong,
                 content->types);
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
    BOOST_TEST(!found.has_own_types, caf::to_string(each));
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
    if (!name.starts_with("troupe.") && !name.starts_with("std::vector<troupe.")) names.push_back(name);
  for (const auto* of_brokers : {"@new_data_msg", "@receive_buffer", "@address_listing"}) names.emplace_back(of_brokers);
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
  BOOST_TEST(is_wrong("@<>+troupe.call", std::string("\1\0\0\0\377\377\377\377\377\377\377\377x", 13)));
}

BOOST_AUTO_TEST_CASE(behind_an_own_type_names_are_searched) {  // MV-3
  const auto own = message_values::of("@<>+my.type+@str", "whatever @config_value, settings and @group");
  BOOST_TEST(!own.is_wrong);
  BOOST_TEST(own.has_own_types);
  for (const auto* each : {"+@config_value", "@<>+@str+settings", "+std::vector<@message>", "+@downstream_msg",
                           "+dictionary<@config_value>", "+stream<@str>"})
    BOOST_TEST(is_wrong("@<>+my.type", std::string("x") + each), each);
  BOOST_TEST(is_wrong("@<>+@message", message_text("@<>+my.type", "x@<>+@group")));
}

BOOST_AUTO_TEST_CASE(nodes_answer_types_of_troupe_and_plain_ones) {
  for (const auto* each : {"@<>", "@<>+troupe.hello", "@<>+@unit", "@<>+@strong_actor_ptr+@u64", "@<>+bool"})
    BOOST_TEST(is_answer_of_node(each), each);
  for (const auto* each : {"@<>+@error", "@<>+troupe.hello+@actorvec", "@<>+my.type", "@<>+@charbuf", "@<>+"})
    BOOST_TEST(!is_answer_of_node(each), each);
}

BOOST_AUTO_TEST_SUITE_END()
