// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_head.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/message.hpp>
#include <caf/node_id.hpp>

#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/messages.hpp>

#include "actors/lone_services.hpp"

using troupe::network::outline_of;

BOOST_AUTO_TEST_SUITE(message_outlines)

namespace {

/// Payloads as CAF writes them.
struct written : troupe::test::lone_services {
  std::vector<caf::strong_actor_ptr> passes_through;

  std::string direct(caf::message of) {
    std::vector<char> result;
    caf::binary_serializer sink{system, result};
    BOOST_REQUIRE(!sink(passes_through, of));
    return {result.begin(), result.end()};
  }
  std::string routed(caf::message of) {
    std::vector<char> nodes;
    caf::binary_serializer sink{system, nodes};
    auto node = caf::make_node_id(7, {1, 2, 3});
    BOOST_REQUIRE(!sink(node, node));
    return std::string(nodes.begin(), nodes.end()) + direct(std::move(of));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_types_and_the_first_atom_are_read_as_caf_wrote_them, written) {
  for (const bool is_routed : {false, true}) {
    const auto outline = [&](caf::message of) {
      const auto bytes = is_routed ? routed(std::move(of)) : direct(std::move(of));
      const auto result = outline_of(bytes, is_routed);
      BOOST_REQUIRE_MESSAGE(result.has_value(), bytes.substr(0, 40));
      return std::make_tuple(std::string(result->types), result->first, result->begins_with_atom());
    };
    const auto status = troupe::support::status_atom::value;
    const auto number = troupe::support::status_atom::uint_value();
    BOOST_TEST((outline(caf::make_message(status)) == std::make_tuple(std::string("@<>+@atom"), number, true)));
    BOOST_TEST(
      (outline(caf::make_message(status, std::int64_t{7})) == std::make_tuple(std::string("@<>+@atom+@i64"), number, true)));
    BOOST_TEST(
      (outline(caf::make_message(caf::exit_msg{})) == std::make_tuple(std::string("@<>+@exit"), std::uint64_t{0}, false)));
    BOOST_TEST((outline(caf::make_message(troupe::farewell{})) ==
                std::make_tuple(std::string("@<>+troupe.bye"), std::uint64_t{0}, false)));
    BOOST_TEST((outline(caf::message{}) == std::make_tuple(std::string("@<>"), std::uint64_t{0}, false)));
  }
}

BOOST_FIXTURE_TEST_CASE(what_nodes_do_not_send_has_no_outline, written) {
  const auto right = direct(caf::make_message(troupe::support::status_atom::value));
  for (std::size_t bytes = 0; bytes < right.size(); ++bytes) BOOST_TEST(!outline_of(right.substr(0, bytes), false).has_value());
  BOOST_TEST(!outline_of(right, true).has_value());
  passes_through.emplace_back();
  BOOST_TEST(!outline_of(direct(caf::make_message(1)), false).has_value());
  BOOST_TEST(!outline_of(std::string("\0\0\0\xFF\xFF\xFF\xFF@<>", 10), false).has_value());
  BOOST_TEST(!outline_of(std::string("\0\0\0\3abc", 7), false).has_value());
}

// CAF reads "@<>+@u8+" as "@<>+@u8". Before, the walk through the values took the last name for one of a type of the program's.
BOOST_AUTO_TEST_CASE(a_list_of_types_is_written_in_one_way) {
  const auto has_outline = [](const std::string& types) {
    return outline_of(std::string(3, '\0') + static_cast<char>(types.size()) + types + std::string(20, '\0'), false)
      .has_value();
  };
  for (const auto* fine : {"@<>", "@<>+@u8", "@<>+@atom+my.type"}) BOOST_TEST(has_outline(fine), fine);
  for (const auto* other : {"@<>+", "@<>+@u8+", "@<>++@u8", "@<>+@u8++@u8", "@<>@u8", "@<> +@u8", "@<+@u8", "+@u8"})
    BOOST_TEST(!has_outline(other), other);
}

BOOST_AUTO_TEST_SUITE_END()
