// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/settlement.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <boost/test/unit_test.hpp>

namespace {

using torchtroupe::settlement;

}  // namespace

// RS-1: the worker that has the settlement ends once it is told, and must not end before the one that entered last is told too.
BOOST_AUTO_TEST_CASE(all_workers_are_told_before_the_wait_is_over) {
  settlement rounds(2);
  std::thread ends;
  std::promise<void> has_ended;
  std::atomic<bool> last_is_told{false}, was_told{false};
  const settlement::outcome first, last;
  first.then([&](const auto&) {
    ends = std::thread([&] {
      rounds.wait();
      was_told = last_is_told.load();
      has_ended.set_value();
    });
    has_ended.get_future().wait_for(std::chrono::milliseconds(100));  // as long as an end would take that does not wait
  });
  last.then([&](const auto&) { last_is_told = true; });
  rounds.enter(1, "first", 0, first);
  rounds.enter(1, "last", 2, last);
  ends.join();
  BOOST_TEST(was_told);
  BOOST_TEST(first.get() == 2u);
  BOOST_TEST(last.get() == 2u);
}

// RS-2
BOOST_AUTO_TEST_CASE(a_round_after_a_loss_fails_until_the_worker_is_found) {
  settlement rounds(1);
  rounds.lost("other", "it was killed");
  const settlement::outcome failed, ended;
  rounds.enter(1, "first", 0, failed);
  BOOST_CHECK_THROW(failed.get(), troupe::error);
  rounds.found("other");
  rounds.enter(1, "first", 0, ended);
  BOOST_TEST(ended.get() == 0u);
}
