// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/sender_check.hpp>

#include <concepts>
#include <string>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/caf_error.hpp>

#include "samples.hpp"
#include "support/contains.hpp"

using namespace troupe;

namespace {

/// Believes one node: `a`, with the number 7.
struct believes_one final : sender_check {
  bool introduces(const std::string& name, node_id id) override { return name == "a" && id == node_id{7}; }
  answer is(node_id id) const override {
    return id == node_id{7} ? answer::yes : id == node_id{8} ? answer::no : answer::not_yet;
  }
  bool is_named(const std::string& name) const override { return name == "a"; }
  std::string who() const override { return "node 'a' (role member)"; }
  bool may_end(const context_id& context) const override { return may_end_all || context.node == node_id{7}; }

  bool may_end_all = true;
};

/// Makes the message say that it is from a node. Messages that do not say it stay as they are.
template <class T>
void say(T& x, const std::string& name, node_id id) {
  if constexpr (std::same_as<T, hello>) {
    x.name = name;
    x.id = id;
  } else if constexpr (std::same_as<T, welcome>) {
    x.self.name = name;
    x.self.id = id;
  } else if constexpr (std::same_as<T, propagate_gradients>) {
    x.from = name;
  } else if constexpr (std::same_as<T, call_request>) {
    x.payload.message.node = id;
  } else if constexpr (requires {
                         { x.from } -> std::convertible_to<node_id>;
                       }) {
    x.from = id;
  }
}

template <class T>
constexpr bool says_who =
  !std::same_as<T, autograd_message> && !std::same_as<T, member> && !std::same_as<T, std::vector<member>> &&
  !std::same_as<T, call_result> && !std::same_as<T, discover> && !std::same_as<T, discovered> && !std::same_as<T, prune> &&
  !std::same_as<T, abort_pass> && !std::same_as<T, release_context> && !std::same_as<T, node_status> &&
  !std::same_as<T, memory_mark>;

template <class T>
constexpr bool names_itself = std::same_as<T, hello> || std::same_as<T, welcome> || std::same_as<T, propagate_gradients>;

template <class T>
errc code_of_reading(sender_check* by, const testing::bytes& wire) {
  T x{};
  const reading_from scope(by);
  const auto failed = testing::decode(wire, x);
  if (!failed) return errc::none;
  const auto problem = to_exception(failed);
  const bool is_about_sender = problem.code() == errc::refused || problem.code() == errc::unknown_peer;
  if (by != nullptr && is_about_sender) BOOST_TEST(test::contains(problem.what(), by->who()), problem.what());
  return problem.code();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(senders)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_message_is_read_only_if_it_is_from_whom_it_says, T, testing::message_types) {
  believes_one who;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    testing::generator random{seed};
    auto x = testing::make<T>(random);
    say(x, "a", node_id{7});
    const auto honest = testing::encoded(x);
    say(x, "b", node_id{8});
    const auto forged = testing::encoded(x);
    const auto of_anybody = code_of_reading<T>(nullptr, honest);
    BOOST_TEST((code_of_reading<T>(nullptr, forged) == of_anybody));
    if (of_anybody != errc::none) continue;  // tensors ahead that never came
    BOOST_TEST((code_of_reading<T>(&who, honest) == errc::none));
    BOOST_TEST((code_of_reading<T>(&who, forged) == (says_who<T> ? errc::refused : errc::none)));
    if constexpr (!says_who<T> || names_itself<T>) continue;
    say(x, "c", node_id{9});
    BOOST_TEST((code_of_reading<T>(&who, testing::encoded(x)) == errc::unknown_peer));
  }
}

// What ends a context, or a pass of it, comes from the node that has opened the context.
BOOST_AUTO_TEST_CASE_TEMPLATE(only_who_may_end_a_context_is_read_when_it_does, T, testing::message_types) {
  if constexpr (std::same_as<T, release_context> || std::same_as<T, abort_pass> || std::same_as<T, prune> ||
                std::same_as<T, discover>) {
    believes_one who;
    testing::generator random{1};
    auto x = testing::make<T>(random);
    for (const bool may_end_all : {true, false})
      for (const std::uint64_t opener : {7, 8}) {
        who.may_end_all = may_end_all;
        x.context.node = node_id{opener};
        const auto expected = may_end_all || opener == 7 ? errc::none : errc::refused;
        BOOST_TEST((code_of_reading<T>(&who, testing::encoded(x)) == expected));
      }
  }
}

BOOST_AUTO_TEST_CASE(the_check_counts_for_its_scope_and_thread_alone) {
  believes_one outer;
  believes_one inner;
  BOOST_TEST(reading_from::current() == nullptr);
  {
    const reading_from first(&outer);
    {
      const reading_from second(&inner);
      BOOST_TEST(reading_from::current() == &inner);
    }
    BOOST_TEST(reading_from::current() == &outer);
  }
  BOOST_TEST(reading_from::current() == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
