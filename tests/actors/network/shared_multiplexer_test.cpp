// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/shared_multiplexer.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <set>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/receive_policy.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/future.hpp>
#include <troupe/actors/network/network_threads.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/network/broker_connection.hpp"
#include "actors/network/posted_work.hpp"
#include "support/contains.hpp"
#include "support/no_more_threads.hpp"
#include "support/stderr_of_process.hpp"

namespace {

using namespace std::chrono_literals;
using troupe::network::network_threads;
using troupe::network::shared_multiplexer;

using troupe::test::long_enough;
using troupe::test::posted_work;

// An actor system with a network, and a broker that runs the work that is posted to it.
struct a_network {
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  shared_multiplexer& network = dynamic_cast<shared_multiplexer&>(system.middleman().backend());
  caf::actor broker = system.middleman().spawn_broker(
    [](caf::io::broker*) -> caf::behavior { return {[](const posted_work& what) { (*what.run)(); }}; });

  ~a_network() { caf::anon_send_exit(broker, caf::exit_reason::user_shutdown); }

  void in_broker(std::function<void()>& work) const { caf::anon_send(broker, posted_work{&work}); }

  template <class T>
  static T result_of(std::promise<T>& from) {
    auto result = from.get_future();
    BOOST_REQUIRE((result.wait_for(long_enough) == std::future_status::ready));
    return result.get();
  }
  /// Checks that a job that takes turns is sent elsewhere while `before` runs. `end` lets `before` end.
  void goes_elsewhere_behind(const std::function<void()>& before, const std::function<void()>& end) {
    std::promise<void> elsewhere;
    std::atomic<bool> ran{false};
    std::function<void()> work = [&] {
      network.run_soon({before, [] {}, true});
      network.run_soon({[&] { ran = true; }, [&] { elsewhere.set_value(); }, true});
    };
    in_broker(work);
    result_of(elsewhere);
    end();
    network.finish_jobs();
    BOOST_TEST(!ran);
  }
};

void nowhere() {}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(shared_multiplexer_jobs, a_network)

// NT-3
BOOST_AUTO_TEST_CASE(a_job_runs_on_the_thread_that_took_it_once_that_stopped_leading) {
  std::thread::id took;
  std::promise<std::thread::id> ran;
  bool taken = false;
  bool leads_no_more = false;
  std::function<void()> work = [&] {
    took = std::this_thread::get_id();
    taken = network.run_soon({[&] {
                                leads_no_more = !network.run_soon({nowhere, nowhere});
                                ran.set_value(std::this_thread::get_id());
                              },
                              nowhere});
  };
  in_broker(work);
  BOOST_TEST((result_of(ran) == took));
  BOOST_TEST(taken);
  BOOST_TEST(leads_no_more);
}

BOOST_AUTO_TEST_CASE(other_threads_take_no_jobs) { BOOST_TEST(!network.run_soon({nowhere, nowhere})); }

// NT-2
BOOST_AUTO_TEST_CASE(the_other_thread_leads_while_a_job_takes_its_time) {
  std::promise<void> gate;
  std::promise<std::thread::id> job;
  std::promise<std::thread::id> answered;
  bool refused = false;
  std::function<void()> long_work = [&] {
    network.run_soon({[&] {
                        job.set_value(std::this_thread::get_id());
                        gate.get_future().wait();
                      },
                      nowhere});
  };
  std::function<void()> next = [&] {
    refused = !network.run_soon({nowhere, nowhere});
    answered.set_value(std::this_thread::get_id());
  };
  in_broker(long_work);
  const auto busy = result_of(job);
  in_broker(next);
  BOOST_TEST((result_of(answered) != busy));
  BOOST_TEST(refused);
  gate.set_value();
  network.finish_jobs();
}

// NT-3
BOOST_AUTO_TEST_CASE(what_waits_behind_a_long_job_goes_elsewhere) {
  std::promise<void> gate;
  std::promise<void> elsewhere;
  std::atomic<bool> ran{false};
  std::function<void()> work = [&] {
    network.run_soon({[&] { gate.get_future().wait(); }, nowhere});
    network.run_soon({[&] { ran = true; }, [&] { elsewhere.set_value(); }});
  };
  in_broker(work);
  result_of(elsewhere);
  gate.set_value();
  network.finish_jobs();
  BOOST_TEST(!ran);
}

// NT-3: the job that runs ends while what waited behind it is sent elsewhere.
BOOST_AUTO_TEST_CASE(what_takes_turns_goes_elsewhere_with_what_waits_before_it) {
  std::promise<void> gate;
  std::promise<void> elsewhere;
  std::atomic<bool> ran{false};
  std::function<void()> work = [&] {
    const auto run = [&] { ran = true; };
    network.run_soon({[&] { gate.get_future().wait(); }, nowhere});
    network.run_soon({run, [&] { gate.set_value(); }});
    network.run_soon({run, [&] { elsewhere.set_value(); }, true});
  };
  in_broker(work);
  result_of(elsewhere);
  network.finish_jobs();
  BOOST_TEST(!ran);
}

// NT-3
BOOST_AUTO_TEST_CASE(what_takes_turns_waits_behind_a_short_job) {
  std::thread::id first, second;
  for (int i = 0; i < 1000 && (i == 0 || first != second);
       ++i) {  // once more if this machine was slow, and the job became long
    std::promise<void> gate, asked;
    std::promise<std::thread::id> began, ran;
    std::function<void()> work = [&] {
      const auto run = [&] {
        began.set_value(std::this_thread::get_id());
        gate.get_future().wait();
      };
      network.run_soon({run, nowhere, true});
    };
    std::function<void()> next = [&] {  // on the thread that leads meanwhile
      const auto run = [&] { ran.set_value(std::this_thread::get_id()); };
      const auto elsewhere = [&] { ran.set_value({}); };
      if (!network.run_soon({run, elsewhere, true})) elsewhere();
      asked.set_value();
    };
    in_broker(work);
    first = result_of(began);
    in_broker(next);
    result_of(asked);
    gate.set_value();
    second = result_of(ran);
  }
  BOOST_TEST((first == second));
}

// NT-3
BOOST_AUTO_TEST_CASE(what_takes_turns_goes_elsewhere_if_the_job_before_takes_too_long) {
  std::promise<void> gate;
  goes_elsewhere_behind([&] { gate.get_future().wait(); }, [&] { gate.set_value(); });
}

// NT-3
BOOST_AUTO_TEST_CASE(what_takes_turns_goes_elsewhere_at_once_if_the_job_before_waits_for_a_future) {
  const auto took = [] {
    a_network fresh;
    troupe::future<int> answer;
    std::chrono::steady_clock::time_point end;
    const auto begin = std::chrono::steady_clock::now();
    fresh.goes_elsewhere_behind([&] { answer.get(); },
                                [&] {
                                  end = std::chrono::steady_clock::now();
                                  answer.set_value(1);
                                });
    return end - begin;
  };
  bool was_quick = false;
  for (int i = 0; i < 100 && !was_quick; ++i)
    was_quick = took() < network_threads::longest_turn;  // a slow machine takes longer
  BOOST_TEST(was_quick);
}

// NT-2: the job waits for a future. A message that the job itself posts sets that future, so the other thread has to lead and
// handle the message while the job waits.
BOOST_AUTO_TEST_CASE(a_job_may_wait_for_what_a_message_brings) {
  std::promise<int> ran;
  troupe::future<int> brought;
  std::function<void()> bring = [&] {
    auto mine = brought;  // a copy: the test may end and destroy `brought` before set_value() returns
    mine.set_value(7);
  };
  std::function<void()> work = [&] {
    network.run_soon({[&] {
                        in_broker(bring);
                        ran.set_value(brought.get());
                      },
                      nowhere});
  };
  in_broker(work);
  BOOST_TEST(result_of(ran) == 7);
}

BOOST_AUTO_TEST_CASE(finish_jobs_waits_for_the_one_that_runs_and_lets_none_begin) {
  std::promise<void> begun;
  std::promise<void> gate;
  std::promise<bool> taken;
  std::atomic<bool> ended{false};
  std::function<void()> work = [&] {
    network.run_soon({[&] {
                        begun.set_value();
                        gate.get_future().wait();
                        ended = true;
                      },
                      nowhere});
  };
  in_broker(work);
  result_of(begun);
  auto finished = std::async(std::launch::async, [&] {
    network.finish_jobs();
    return ended.load();
  });
  BOOST_TEST((finished.wait_for(50ms) == std::future_status::timeout));
  gate.set_value();
  BOOST_TEST(finished.get());
  std::function<void()> late = [&] { taken.set_value(network.run_soon({nowhere, nowhere})); };
  in_broker(late);
  BOOST_TEST(!result_of(taken));
}

BOOST_AUTO_TEST_CASE(idle_work_runs_once_for_each_time_it_is_asked_for) {
  std::promise<void> first;
  std::promise<void> second;
  int times = 0;
  network.set_idle_work([&] { (++times == 1 ? first : second).set_value(); });
  std::function<void()> ask = [&] { network.ask_for_idle_work(); };
  in_broker(ask);
  result_of(first);
  in_broker(ask);
  result_of(second);
  BOOST_TEST(times == 2);
}

BOOST_AUTO_TEST_CASE(what_is_set_too_late_ends_the_process) {
  const auto idle = troupe::test::stderr_of_process([&] { network.ask_for_idle_work(); });
  BOOST_TEST(idle.second == SIGABRT);
  BOOST_TEST(troupe::test::contains(idle.first, "expected idle_work_"), idle.first);
  BOOST_REQUIRE(system.middleman().publish(broker, 0, "127.0.0.1"));
  const auto refused = troupe::test::stderr_of_process([&] { network.set_on_refused({}); });
  BOOST_TEST(refused.second == SIGABRT);
  BOOST_TEST(troupe::test::contains(refused.first, "expected doormen_.all.empty()"), refused.first);
}

// NT-4
BOOST_AUTO_TEST_CASE(idle_work_is_done_though_all_sleep) {
  constexpr int times = 20;
  std::vector<std::promise<void>> done(times);
  std::size_t next = 0;
  network.set_idle_work([&] { done[next++].set_value(); });
  for (auto& each : done) {
    network.ask_for_idle_work();
    result_of(each);
  }
}

// A node asks for idle work as soon as it has a network, and the network's thread may start late.
BOOST_AUTO_TEST_CASE(idle_work_that_was_asked_for_before_the_network_runs_is_done) {
  shared_multiplexer late(&system);
  std::promise<void> done;
  late.set_idle_work([&] { done.set_value(); });
  late.ask_for_idle_work();
  std::promise<void> looked;  // for idle work; nobody knows of `late` yet
  network.set_idle_work([&] { looked.set_value(); });
  network.ask_for_idle_work();
  result_of(looked);
  auto alive = late.make_supervisor();
  std::thread serves([&] { late.run(); });
  result_of(done);
  late.dispatch([&] { alive.reset(); });
  serves.join();
}

BOOST_AUTO_TEST_CASE(idle_work_is_done_though_there_is_always_more_to_do) {
  std::promise<void> done;
  bool idle_work_ran = false;
  network.set_idle_work([&] { idle_work_ran = true; });
  std::function<void()> work = [&] {
    if (idle_work_ran)
      done.set_value();
    else
      in_broker(work);
  };
  in_broker(work);
  network.ask_for_idle_work();
  result_of(done);
}

// SM-1, NT-4: if a message is lost, or if no thread finds a message, `all` is never set, and the test fails after
// `long_enough`.
BOOST_AUTO_TEST_CASE(what_any_thread_posts_at_any_time_is_done) {
  constexpr int senders = 4;
  constexpr int each = 5'000;
  std::promise<void> all;
  int done = 0;
  std::function<void()> count = [&] {
    if (done % 7 == 0) network.run_soon({nowhere, nowhere});
    if (++done == senders * each) all.set_value();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < senders; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < each; ++k) {
        in_broker(count);
        if (k % 100 == 0) std::this_thread::yield();
      }
    });
  for (auto& thread : threads) thread.join();
  result_of(all);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(network_threads_of_a_process)

namespace {

std::thread::id thread_of(const a_network& network) {
  std::promise<std::thread::id> told;
  std::function<void()> tell = [&] { told.set_value(std::this_thread::get_id()); };
  network.in_broker(tell);
  return a_network::result_of(told);
}

}  // namespace

// SM-2: after the flush no other event makes the network thread send the bytes.
BOOST_AUTO_TEST_CASE(bytes_that_a_broker_flushed_leave_before_the_thread_sleeps) {
  for (int round = 0; round < 5; ++round) {
    troupe::test::broker_connection to(caf::io::receive_policy::exactly(1), troupe::test::without_shared_memory());
    to.write("flushed");
    BOOST_TEST(to.receive(7) == "flushed");
  }
}

// NT-1
BOOST_AUTO_TEST_CASE(all_systems_are_served_by_the_same_two) {
  std::vector<std::unique_ptr<a_network>> all;
  for (int i = 0; i < 5; ++i) all.push_back(std::make_unique<a_network>());
  std::set<std::thread::id> seen;
  for (const auto& each : all) seen.insert(thread_of(*each));
  BOOST_TEST(seen.size() <= 2u);
}

// NT-2, NT-3
BOOST_AUTO_TEST_CASE(a_job_of_one_holds_up_no_other) {
  a_network one;
  a_network other;
  std::promise<void> begun;
  std::promise<void> gate;
  std::promise<bool> taken;
  std::function<void()> long_work = [&] {
    one.network.run_soon({[&] {
                            begun.set_value();
                            gate.get_future().wait();
                          },
                          nowhere});
  };
  std::function<void()> next = [&] { taken.set_value(other.network.run_soon({nowhere, nowhere})); };
  one.in_broker(long_work);
  a_network::result_of(begun);
  other.in_broker(next);
  BOOST_TEST(!a_network::result_of(taken));
  other.network.finish_jobs();  // does not wait for the job of `one`
  gate.set_value();
  one.network.finish_jobs();
}

// NT-5. If an actor system leaves memory behind at its end, the sanitizers report a leak. If the end of one system drops the
// posts of system `stays`, `all` is never set, and the test fails after `long_enough`.
BOOST_AUTO_TEST_CASE(systems_come_and_go_while_others_work) {
  constexpr int rounds = 2'000;
  a_network stays;
  std::promise<void> all;
  int done = 0;
  std::function<void()> count = [&] {
    if (++done == rounds) all.set_value();
  };
  std::thread posts([&] {
    for (int i = 0; i < rounds; ++i) stays.in_broker(count);
  });
  for (int i = 0; i < 20; ++i) {
    a_network goes;
    thread_of(goes);
  }
  posts.join();
  a_network::result_of(all);
}

// A node and its connections end on the thread that destroys the node. The connections of other nodes go on meanwhile.
BOOST_AUTO_TEST_CASE(nodes_come_and_go_while_others_call) {
  troupe::node stays{troupe::test::loopback_settings("stays")};
  troupe::node other{troupe::test::loopback_settings("other")};
  other.functions().add("touch", [](troupe::call_arguments&) { return troupe::call_reply{}; });
  const auto to = stays.peer(stays.join("127.0.0.1", other.port()));
  int calls = 0;
  std::jthread calls_on([&](const std::stop_token& enough) {
    for (; !enough.stop_requested(); ++calls) to.call("touch").get(long_enough);
  });
  for (int i = 0; i < 30; ++i) {
    troupe::node one{troupe::test::loopback_settings("one")};
    troupe::node two{troupe::test::loopback_settings("two")};
    one.join("127.0.0.1", two.port());
    two.join("127.0.0.1", other.port());
  }
  calls_on.request_stop();
  calls_on.join();
  BOOST_TEST(calls > 0);
}

// The work in the broker of `flooded` posts itself again and again.
BOOST_AUTO_TEST_CASE(one_that_is_flooded_keeps_no_other_waiting) {
  a_network flooded;
  a_network other;
  std::atomic<bool> enough{false};
  std::promise<void> dry;
  std::function<void()> more = [&] {
    if (enough)
      dry.set_value();
    else
      flooded.in_broker(more);
  };
  flooded.in_broker(more);
  for (int i = 0; i < 10; ++i) thread_of(other);
  enough = true;
  a_network::result_of(dry);
}

// stop() waits for the leader thread, so the leader thread itself may not call stop().
BOOST_AUTO_TEST_CASE(a_node_is_not_stopped_by_who_leads) {
  a_network network;
  troupe::node other{troupe::test::loopback_settings("other")};
  std::promise<troupe::errc> refused;
  std::function<void()> stop = [&] {
    try {
      other.stop();
      refused.set_value(troupe::errc::none);
    } catch (const troupe::error& reason) {
      refused.set_value(reason.code());
    }
  };
  network.in_broker(stop);
  BOOST_TEST((a_network::result_of(refused) == troupe::errc::misuse));
}

// fork() gives the child a copy of the parent's network, but none of the parent's threads.
BOOST_AUTO_TEST_CASE(a_process_that_forked_from_one_with_nodes_has_threads_of_its_own) {
  a_network parent;
  thread_of(parent);
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(20);
    {
      a_network own;
      thread_of(own);
    }
    ::_exit(0);
  }
  int status = -1;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  thread_of(parent);
}

// NT-6
BOOST_AUTO_TEST_CASE(who_makes_them_gets_the_error_if_there_is_no_thread) {
  {
    const troupe::test::no_more_threads none;
    BOOST_CHECK_THROW(network_threads(), std::system_error);
  }
  a_network later;
  thread_of(later);
}

// The test fails if a thread of an earlier system remains.
BOOST_AUTO_TEST_CASE(they_end_with_the_last_system_and_begin_again) {
  for (int i = 0; i < 3; ++i) {
    std::weak_ptr<network_threads> those;
    {
      a_network alone;
      those = network_threads::of_process();
      thread_of(alone);
    }
    BOOST_TEST(those.expired());
  }
}

BOOST_AUTO_TEST_SUITE_END()
