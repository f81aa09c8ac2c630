// SPDX-License-Identifier: BSD-3-Clause
// Explores every order of deliveries, losses, crashes, cuts and deadlines in small passes, and a great many orders in larger
// passes.
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <memory>
#include <unordered_set>

#include "engine/protocol/pass_model.hpp"

using namespace troupe::model;

namespace {

struct tally {
  std::size_t worlds = 0;
  std::size_t ends = 0;
  std::size_t succeeded = 0;
  std::size_t failed = 0;
};

// The steps that led to a world, back to the first.
struct trail {
  std::shared_ptr<const trail> before;
  step taken;
};
using trail_ptr = std::shared_ptr<const trail>;

std::string text_of(const trail_ptr& end) {
  std::string text;
  for (auto at = end; at; at = at->before)
    text = std::string(name_of(at->taken.what)) + ' ' + std::to_string(at->taken.a) + '-' + std::to_string(at->taken.b) + ", " +
           text;
  return text;
}

// Visits each world that can follow from the first world, and visits no world twice.
tally explore(const graph& g, troubles allowed, std::uint8_t passes) {
  tally result;
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::pair<world, trail_ptr>> open;
  open.emplace_back(world(g, allowed, passes), nullptr);
  while (!open.empty()) {
    auto [now, how] = std::move(open.back());
    open.pop_back();
    const auto next = now.steps();
    auto wrong = now.wrong_now();
    if (wrong.empty() && next.empty()) wrong = now.wrong_at_end();
    BOOST_REQUIRE_MESSAGE(wrong.empty(), wrong << " after " << text_of(how));
    ++result.worlds;
    if (next.empty()) {
      ++result.ends;
      result.succeeded += now.succeeded();
      result.failed += now.failures();
    }
    for (const auto& each : next) {
      auto moved = &each == &next.back() ? std::move(now) : now;
      moved.take(each);
      if (seen.insert(moved.hash()).second) open.emplace_back(std::move(moved), std::make_shared<trail>(trail{how, each}));
    }
  }
  BOOST_TEST_MESSAGE(result.worlds << " worlds, " << result.ends << " ends, " << result.succeeded << " passes succeed, "
                                   << result.failed << " fail");
  return result;
}

/// Node 0 calls 1, which calls 2. A result of 2 is not used.
graph nested_with_an_unused_result() {
  graph g(3);
  const auto loss = g.function(0);
  const auto there = g.function(1);
  const auto nested = g.function(2);
  const auto unused = g.function(2);
  const auto leaf = g.function(0);
  return g.root(loss)
    .connect(loss, there)
    .connect(there, nested)
    .connect(nested, leaf)
    .connect(unused, leaf)
    .unused(unused)
    .joined(1, 0)
    .joined(2, 1);
}

/// Node 0 calls 1 and 2 with the same tensor and adds the results.
graph diamond() {
  graph g(3);
  const auto loss = g.function(0);
  const auto left = g.function(1);
  const auto right = g.function(2);
  const auto leaf = g.function(0);
  return g.root(loss).connect(loss, left).connect(loss, right).connect(left, leaf).connect(right, leaf);
}

/// Node 0 calls 1 and uses one of two results. On node 1 the gradients of both results would meet.
graph partly_used() {
  graph g(2);
  const auto loss = g.function(0);
  const auto used = g.function(1);
  const auto shared = g.function(1);
  const auto leaf = g.function(0);
  return g.root(loss).connect(loss, used).connect(used, shared).connect(shared, leaf).unused(shared);
}

/// Node 0 calls 1 and 2. Results of 1 are used in part, those of 2 not at all. So sends of 0 and 1 wait, and 2 never hears of
/// the pass.
graph not_used() {
  graph g(3);
  const auto loss = g.function(0);
  const auto used = g.function(1);
  const auto shared = g.function(1);
  const auto forgotten = g.function(2);
  const auto leaf = g.function(0);
  return g.root(loss).connect(loss, used).connect(used, leaf).unused(shared).unused(forgotten).connect(forgotten, leaf);
}

/// Node 0 calls 1, which calls 2 and 3 and adds their results. Node 3 calls 2, which has joined the context by then.
graph calls_of_calls(bool with_an_unused_result) {
  graph g(4);
  const auto loss = g.function(0);
  const auto sum = g.function(1);
  const auto third = g.function(3);
  const auto second = g.function(2);
  const auto arguments = g.function(1);
  g.root(loss).connect(loss, sum).connect(sum, third).connect(third, second).connect(second, arguments).connect(sum, second);
  if (with_an_unused_result) g.unused(second);
  return g.joined(1, 0).joined(2, 1).joined(3, 1);
}

/// Each of the nodes 1 to 4 is called by the one before it and returns nothing that needs a gradient: node 1 gets no gradients back, and
/// has to be told that its subtree is done.
graph one_way() {
  graph g(4);
  const auto loss = g.function(0);
  const auto first = g.function(1);
  const auto more = g.function(1);
  const auto second = g.function(2);
  const auto third = g.function(3);
  g.root(loss).connect(loss, first).connect(loss, more).connect(first, second).connect(second, third);
  return g.joined(1, 0).joined(2, 1).joined(3, 2);
}

/// Node 0 calls 1 and uses the first of two tensors of the answer. The second comes from node 2, and from node 1. With `unused`, node 1 has
/// called node 2 for a result that it did not use.
graph message_in_part(bool unused) {
  graph g(3);
  const auto loss = g.function(0);
  const auto recv = g.function(0);
  const auto send = g.function(1);
  const auto first = g.function(1);
  const auto second = g.function(1);
  const auto third = g.function(2);
  const auto leaf = g.function(1);
  g.root(loss).message(recv, send).connect(loss, recv, 0);
  g.connect(send, first).connect(send, second).connect(first, leaf).connect(second, third).connect(third, leaf);
  if (unused) g.unused(third);
  return g.joined(1, 0).joined(2, 1);
}

std::vector<graph> small_graphs() { return {nested_with_an_unused_result(), diamond(), partly_used()}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(explorations, *boost::unit_test::label("explored"))

// IN-1, IN-3, PA-1, PA-2, PA-4, PA-5
BOOST_AUTO_TEST_CASE(two_passes_succeed_in_every_order_when_nothing_goes_wrong) {
  for (const auto& g : small_graphs()) {
    const auto all = explore(g, {}, 2);
    BOOST_TEST(all.failed == 0u);
    BOOST_TEST(all.succeeded == 2 * all.ends);
  }
}

// PA-6: subtrees report together. A node whose parent does not know of it reports as well.
BOOST_AUTO_TEST_CASE(passes_through_calls_of_calls_end_in_every_order) {
  for (auto g : {calls_of_calls(false), calls_of_calls(true), one_way()}) {
    for (const std::uint8_t untold : {0, 4, 8, 12}) {
      g.untold = untold;
      const auto all = explore(g, {}, 1);
      BOOST_TEST(all.succeeded == all.ends);
    }
  }
  for (const auto& allowed : {troubles{.losses = 1}, troubles{.crashes = 1}, troubles{.cuts = 1}, troubles{.throwing = 2}})
    BOOST_TEST(explore(one_way(), allowed, 1).failed > 0u);
}

// What only an unused tensor of a message leads to hears so from node to node, in smart mode and in fast mode.
BOOST_AUTO_TEST_CASE(passes_over_messages_that_are_used_in_part_end_in_every_order) {
  for (const bool unused : {false, true}) {
    const auto g = message_in_part(unused);
    const auto all = explore(g, {}, 2);
    BOOST_TEST(all.failed == 0u);
    BOOST_TEST(all.succeeded == 2 * all.ends);
    const auto fast = explore(g, {.fast = true}, 1);
    BOOST_TEST(fast.succeeded == (unused ? 0 : fast.ends));
    for (const auto& allowed : {troubles{.losses = 1}, troubles{.crashes = 1}, troubles{.cuts = 1}, troubles{.throwing = 3}})
      BOOST_TEST(explore(g, allowed, 1).failed > 0u);
  }
}

// IN-2, PA-3: one thing may go wrong.
BOOST_AUTO_TEST_CASE(every_pass_ends_and_leaves_nothing_whatever_goes_wrong_once) {
  for (const auto& g : small_graphs()) {
    for (const auto& allowed :
         {troubles{.losses = 1}, troubles{.crashes = 1}, troubles{.cuts = 1}, troubles{.deadlines = 1}, troubles{.releases = 1},
          troubles{.throwing = 1}, troubles{.throwing = 2, .strangers = true}, troubles{.crashes = 1, .strangers = true}}) {
      const auto all = explore(g, allowed, allowed.losses + allowed.strangers > 0 ? 1 : 2);
      BOOST_TEST((all.failed > 0u || allowed.releases > 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_pass_ends_and_leaves_nothing_when_two_things_go_wrong) {
  for (const auto& g : {nested_with_an_unused_result(), partly_used()})
    for (const auto& allowed :
         {troubles{.crashes = 2}, troubles{.crashes = 1, .deadlines = 1}, troubles{.cuts = 1, .throwing = 2}})
      explore(g, allowed, 1);
}

// IN-4: nothing goes wrong, or one thing.
BOOST_AUTO_TEST_CASE(fast_passes_succeed_where_all_is_used_and_else_fail_in_every_order_and_leave_nothing) {
  for (const auto& g : {diamond(), nested_with_an_unused_result(), partly_used(), not_used()}) {
    const bool used = g.waiting_undropped() == 0;
    const auto all = explore(g, {.fast = true}, 2);
    BOOST_TEST(all.succeeded == (used ? 2 * all.ends : 0));
    BOOST_TEST(all.failed == (used ? 0 : 2 * all.ends));
    for (const auto& allowed :
         {troubles{.losses = 1, .fast = true}, troubles{.crashes = 1, .fast = true}, troubles{.cuts = 1, .fast = true},
          troubles{.deadlines = 1, .fast = true}, troubles{.releases = 1, .fast = true}, troubles{.throwing = 1, .fast = true},
          troubles{.strangers = true, .fast = true}})
      BOOST_TEST(explore(g, allowed, 1).ends > 0u);
  }
}

// Larger passes: 2 to 5 nodes, up to 24 functions, two passes, several troubles at once. TROUPE_RANDOM_ORDERS sets the number
// of orders.
BOOST_AUTO_TEST_CASE(random_orders_of_larger_passes_end_and_leave_nothing) {
  const auto* asked = std::getenv("TROUPE_RANDOM_ORDERS");
  const std::uint64_t orders = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 1'000'000;
  constexpr std::uint64_t orders_of_one = 50;  // random orders per graph
  std::size_t succeeded = 0;
  std::size_t failed = 0;
  for (std::uint64_t seed = 0; seed < orders / orders_of_one; ++seed) {
    std::mt19937_64 random(seed);
    const auto nodes = 2 + random() % 4;  // before the next draw: a seed is one graph with any compiler
    const auto g = draw_graph(random, nodes, 1 + random() % 24, seed % 2 == 0 ? 0.0 : 0.25, seed % 3 == 0);
    for (std::uint64_t order = 0; order < orders_of_one; ++order) {
      troubles allowed;
      if (order % 2 == 1) {
        const auto some = [&] { return static_cast<std::uint8_t>(random() % 4 == 0 ? 1 : 0); };
        allowed = {.losses = some(),
                   .crashes = some(),
                   .cuts = some(),
                   .deadlines = some(),
                   .releases = some(),
                   .strangers = some() != 0};
        if (some() != 0) allowed.throwing = static_cast<std::uint8_t>(random() % g.home.size());
      }
      allowed.fast = seed % 5 == 4;
      world now(g, allowed, 2);
      std::string wrong;
      while (wrong.empty() && now.take_any(random))
        if (order % 25 == 1) wrong = now.wrong_now();
      if (wrong.empty()) wrong = now.wrong_now();
      if (wrong.empty()) wrong = now.wrong_at_end();
      BOOST_REQUIRE_MESSAGE(wrong.empty(), wrong << " with seed " << seed << ", order " << order);
      succeeded += now.succeeded();
      failed += now.failures();
    }
  }
  BOOST_TEST_MESSAGE(succeeded << " passes succeed, " << failed << " fail");
  BOOST_TEST(succeeded > orders / 2);
  BOOST_TEST(failed > orders / 20);
}

BOOST_AUTO_TEST_SUITE_END()
