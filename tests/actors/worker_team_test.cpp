// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/actors/worker_team.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/messages/errors.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/collected_warnings.hpp"
#include "support/environment_variable.hpp"
#include "support/no_more_threads.hpp"
#include "support/thread_name.hpp"

using namespace troupe;
using test::threads_named;

namespace {

struct host {
  nodes::system_config config{nodes::system_config::for_tests{}};  // the scheduler has no threads, but the workers have
  caf::actor_system system{config};
};

at::Tensor gradient(engine::cpu_workers* workers) {
  at::Tensor leaf = at::linspace(0, 1, 300'000).requires_grad_();
  at::Tensor sum = at::zeros({});
  for (int i = 0; i < 6; ++i) sum = sum + (leaf * (i + 0.3)).sin().exp().sum();
  backward({sum}, {}, {.workers = workers});
  return leaf.grad();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(worker_teams)

BOOST_AUTO_TEST_CASE(begin_work_at_once_while_a_worker_is_idle) {  // LH-3
  host here;
  worker_team team(here.system, 2);
  for (int round = 0; round < 20; ++round) {
    std::promise<void> second;
    std::promise<void> third;
    std::promise<bool> first;
    team.post([&] { first.set_value(third.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready); });
    team.post([&] { second.set_value(); });
    second.get_future().wait();
    team.post([&] { third.set_value(); });
    BOOST_TEST(first.get_future().get());
  }
}

BOOST_AUTO_TEST_CASE(begin_work_in_its_order_when_one_has_finished) {  // LH-3, EW-1
  host here;
  worker_team team(here.system, 1);
  std::promise<void> all_posted;
  std::promise<void> last;
  std::vector<int> order;
  team.post([&] { all_posted.get_future().wait(); });
  for (int i = 0; i < 5; ++i)
    team.post([&, i] {
      order.push_back(i);
      if (i == 4) last.set_value();
    });
  all_posted.set_value();
  last.get_future().wait();
  BOOST_TEST(order == (std::vector<int>{0, 1, 2, 3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(end_within_the_limit_although_work_does_not) {  // WT-1, LH-1, XS-1
  auto here = std::make_unique<host>();
  const auto running = here->system.registry().running();
  std::promise<void> begins;
  std::promise<void> may_end;
  std::optional<worker_team> team;
  {
    const test::environment_variable limit("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT", "0.05");
    team.emplace(here->system, 1);
  }
  std::atomic<bool> has_begun_late{false};
  std::promise<void> ends;
  team->post([&begins, &ends, end = may_end.get_future().share()] {
    begins.set_value();
    end.wait();
    ends.set_value_at_thread_exit();
  });
  team->post([&] { has_begun_late = true; });
  begins.get_future().wait();
  test::collected_warnings warnings;
  team.reset();
  BOOST_TEST(
    warnings.texts == std::vector<std::string>{"troupe: 1 of 1 workers have not ended within 0.05 s: a function still runs "
                                               "there, and the thread ends with it."},
    boost::test_tools::per_element());
  BOOST_TEST(here->system.registry().running() == running);
  here.reset();  // does not wait for the work either
  may_end.set_value();
  ends.get_future().wait();
  BOOST_TEST(!has_begun_late);
}

BOOST_AUTO_TEST_CASE(a_worker_without_work_is_not_left_alone) {  // XS-2
  host here;
  caf::scoped_actor actor(here.system);
  const auto running = here.system.registry().running();
  support::thread_stay stay;
  stay.outside([] {});
  BOOST_TEST(!stay.leave_alone(here.system, caf::actor(actor)));
  BOOST_TEST(here.system.registry().running() == running);
}

BOOST_AUTO_TEST_CASE(refuse_a_limit_that_is_no_number) {
  host here;
  const test::environment_variable limit("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT", "soon");
  BOOST_CHECK_EXCEPTION(worker_team(here.system, 1), error, [](const error& why) {
    return why.code() == errc::misuse &&
           std::string(why.what()).find("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(run_what_is_posted_on_threads_of_their_own) {
  host here;
  worker_team team(here.system, 2);
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 2; ++i)
    team.post([&] {
      std::unique_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
      changed.notify_all();
      changed.wait(lock, [&] { return threads.size() == 2; });  // a single thread would wait here for ever
    });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return threads.size() == 2; });
  BOOST_TEST(threads.count(std::this_thread::get_id()) == 0u);
}

BOOST_AUTO_TEST_CASE(have_as_many_threads_as_was_said) {
  host here;
  worker_team team(here.system, 3);
  BOOST_TEST(test::becomes_true([] { return threads_named("troupe.worker") == 3; }));  // those of the last test may still end
  BOOST_TEST(team.count() == 3U);
}

// EW-1
BOOST_AUTO_TEST_CASE(run_all_that_is_posted_once_and_elsewhere) {
  constexpr int posted = 100;
  host here;
  std::mutex mutex;
  std::condition_variable changed;
  int runs = 0;
  std::set<std::thread::id> threads;
  {
    worker_team team(here.system, 2);
    for (int i = 0; i < posted; ++i)
      team.post([&] {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        ++runs;
        changed.notify_all();
      });
    std::unique_lock lock(mutex);
    BOOST_TEST(changed.wait_for(lock, std::chrono::seconds(10), [&] { return runs >= posted; }));
  }
  BOOST_TEST(runs == posted);
  BOOST_TEST(threads.count(std::this_thread::get_id()) == 0u);
}

BOOST_AUTO_TEST_CASE(give_a_pass_the_bits_that_it_has_without_them) {
  host here;
  worker_team team(here.system, 2);
  const at::Tensor expected = gradient(nullptr);
  for (int round = 0; round < 5; ++round) BOOST_TEST(at::equal(gradient(&team), expected));
  BOOST_TEST(team.grain() > 0);
}

// WT-1, LH-1
BOOST_AUTO_TEST_CASE(end_with_their_workers) {
  host here;
  std::atomic<int> finished{0};
  {
    worker_team team(here.system, 1);
    std::promise<void> begun;
    team.post([&] {
      begun.set_value();
      ++finished;
    });
    begun.get_future().wait();
  }
  BOOST_TEST(finished == 1);
}

BOOST_AUTO_TEST_CASE(without_workers_are_refused) {
  host here;
  BOOST_CHECK_EXCEPTION(worker_team(here.system, 0), error, [](const error& reason) { return reason.code() == errc::misuse; });
}

// LH-1
BOOST_AUTO_TEST_CASE(a_team_that_gets_too_few_threads_leaves_none) {
  host here;
  {
    const test::few_more_threads two;
    BOOST_CHECK_EXCEPTION(worker_team(here.system, 8), error, [](const error& refused) {
      const std::string text = refused.what();
      return text.find("8 workers got threads for") != std::string::npos && text.find("threads for 0") == std::string::npos;
    });
  }
  // A thread whose actor has ended is in the list for a moment more.
  BOOST_TEST(test::becomes_true([] { return threads_named("troupe.worker") == 0; }));
}

// Other nodes may send nothing to a worker: a message of theirs could end it.
BOOST_AUTO_TEST_CASE(are_actors_of_the_node_alone) {
  settings options;
  options.name = "guarded";
  node here(options);
  auto& network = dynamic_cast<network::shared_multiplexer&>(here.system().middleman().backend());
  const auto begin = here.system().latest_actor_id();
  std::set<caf::actor_id> guarded;
  {
    worker_team team(here, 2);
    for (auto id = begin; id <= here.system().latest_actor_id(); ++id)
      if (network.peers().own->find(id) == gate::own_actors::kind::inner) guarded.insert(id);
  }
  // Some are actors that the node has made meanwhile, and that live on.
  const auto has_ended = [&](caf::actor_id id) { return !network.peers().own->find(id); };
  BOOST_TEST(std::count_if(guarded.begin(), guarded.end(), has_ended) >= 2);
}

BOOST_AUTO_TEST_CASE(a_team_that_gets_no_threads_is_refused_and_its_system_ends) {
  host here;
  {
    const test::no_more_threads none;
    BOOST_CHECK_EXCEPTION(worker_team(here.system, 2), error, [](const error& refused) {
      return std::string(refused.what()).find("2 workers got threads for 0") != std::string::npos;
    });
  }
  worker_team team(here.system, 2);
}

BOOST_AUTO_TEST_SUITE_END()
