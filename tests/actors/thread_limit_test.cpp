// SPDX-License-Identifier: BSD-3-Clause
// Deeply nested calls between the driver and one other process. In one test that process may have few threads only.
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/process_cluster.hpp"
#include "support/thread_count.hpp"

namespace {

using troupe::test::becomes_idle;
using troupe::test::becomes_true;
using troupe::test::loopback_settings;
using troupe::test::says;
using troupe::test::threads_of;

constexpr std::int64_t deep = 2000;
constexpr rlim_t most_threads = 60;
// The system limits the threads of a user, but not of root. So the process with the limit belongs to a user without other
// processes.
constexpr uid_t user_without_processes = 64123;

void add_functions(troupe::node& here) {
  here.functions().add("down", [](troupe::call_arguments& arguments) {
    const auto left = troupe::get<std::int64_t>(arguments.values, "left");
    if (left == 0) return troupe::call_reply{};
    const auto other = troupe::get<std::string>(arguments.values, "other");
    return arguments.here.peer(other).call("down", {}, {{"left", left - 1}, {"other", arguments.here.name()}}).get();
  });
}

void take_few_threads() {
  const rlimit few{most_threads, most_threads};
  if (setrlimit(RLIMIT_NPROC, &few) != 0 ||
      setresuid(user_without_processes, user_without_processes, user_without_processes) != 0)
    std::perror("thread limit: a process can't be limited");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // the change of the user has cleared the setting that the nursery made
}

/// Settings of a node that lets nodes of other users in.
troupe::settings with_other_users(const std::string& name) {
  auto result = loopback_settings(name);
  result.insecure = true;
  return result;
}

void be_process(const std::string& name, std::uint16_t port) {
  if (name == "limited") take_few_threads();
  troupe::test::be_node("thread limit", with_other_users(name), port, add_functions);
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct shared_nursery {
  shared_nursery() { processes = &own; }
  troupe::test::nursery own{be_process};
  static inline troupe::test::nursery* processes = nullptr;
};

/// A driver and one other process.
struct pair : troupe::test::process_cluster {
  explicit pair(const std::string& name) : process_cluster(*shared_nursery::processes, with_other_users("driver"), {name}) {
    add_functions(driver());
    const auto missing = meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
  }

  troupe::peer there() { return driver().peer(names().front()); }
  std::size_t threads_there() const { return threads_of(pid(names().front())); }
  /// Runs nested calls that alternate between the two nodes.
  void nest(std::int64_t calls) { there().call("down", {}, {{"left", calls}, {"other", std::string("driver")}}).get(); }
};

boost::test_tools::assertion_result can_limit_another_user(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(geteuid() == 0);
  if (!result) {
    result.message() << "only root makes a process of another user";
    std::printf("SKIPPED: only root makes a process of another user, whose threads alone are counted\n");
  }
  return result;
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

BOOST_AUTO_TEST_CASE(two_thousand_nested_calls_leave_no_threads) {
  constexpr std::size_t kept = 16;
  pair cluster("free");
  cluster.nest(2);
  const auto before_here = threads_of();
  const auto before_there = cluster.threads_there();
  cluster.nest(deep);
  BOOST_TEST(becomes_true([&] { return threads_of() <= before_here + kept; }), threads_of() << " threads here");
  BOOST_TEST(becomes_true([&] { return cluster.threads_there() <= before_there + kept; }), cluster.threads_there()
                                                                                             << " threads there");
}

BOOST_AUTO_TEST_CASE(a_node_at_its_limit_of_threads_fails_the_call_and_goes_on,
                     *boost::unit_test::label("other_users") * boost::unit_test::precondition(can_limit_another_user)) {
  pair cluster("limited");
  for (int i = 0; i < 2; ++i) {
    BOOST_CHECK_EXCEPTION(
      cluster.nest(deep), troupe::error,
      says("node 'limited' gets no thread for it beside the ", "that run calls (Resource temporarily unavailable)"));
    BOOST_TEST(cluster.threads_there() <= most_threads);
    cluster.nest(20);
    auto there = cluster.there();
    BOOST_TEST(becomes_idle(there));
    BOOST_TEST(becomes_idle(cluster.driver()));
  }
}
