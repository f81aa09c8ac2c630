// SPDX-License-Identifier: BSD-3-Clause
#include <queue>
#include <random>

#include <boost/test/unit_test.hpp>

#include <troupe/engine/ready_queue.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(ready_queues)

BOOST_AUTO_TEST_CASE(the_highest_rank_comes_first_and_in_it_the_latest_function) {
  ready_queue queue;
  queue.push({5, 0, 0});
  queue.push({1, 2, 1});
  queue.push({9, 1, 2});
  queue.push({7, 2, 3});
  std::vector<std::uint32_t> order;
  while (!queue.empty()) order.push_back(queue.pop());
  BOOST_TEST(order == (std::vector<std::uint32_t>{3, 1, 2, 0}));
}

// RQ-1
BOOST_AUTO_TEST_CASE(ties_come_out_as_from_the_queue_that_libtorch_uses) {
  using pair = std::pair<std::uint64_t, std::uint32_t>;
  const auto later = [](const pair& a, const pair& b) { return a.first < b.first; };
  std::mt19937 random(3);
  for (const std::uint64_t sequences : {2U, 4U, 20U, 300U}) {
    for (const std::size_t kept :
         {0U, 1U, 6U, 40U, 500U}) {  // the queue has about so many functions, and pushes and pops take turns
      ready_queue ours;
      std::priority_queue<pair, std::vector<pair>, decltype(later)> theirs(later);
      std::size_t firsts = 0;
      for (std::uint32_t i = 0; i < 5000; ++i) {
        if (theirs.size() <= kept || (random() % 2 == 0 && theirs.size() < 2 * kept)) {
          const std::uint64_t sequence = random() % sequences;
          firsts += !theirs.empty() && sequence > theirs.top().first ? 1 : 0;
          ours.push({sequence, 0, i});
          theirs.emplace(sequence, i);
        } else {
          BOOST_REQUIRE(ours.pop() == theirs.top().second);
          theirs.pop();
        }
        BOOST_REQUIRE(ours.size() == theirs.size());
      }
      BOOST_TEST((kept == 0 || firsts > 50));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
