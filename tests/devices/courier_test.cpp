// SPDX-License-Identifier: BSD-3-Clause
// Couriers and what gives them their parcels.
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/parcel_line.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/messages/errors.hpp>

#include "support/no_more_threads.hpp"
#include "support/simulated_fixture.hpp"
#include "support/thread_name.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
std::chrono::steady_clock::time_point in_an_hour() { return now() + std::chrono::hours(1); }

struct node_with_device : simulated::fixture {
  nodes::system_config config{nodes::system_config::for_tests{}};  // the scheduler has no threads, but couriers have
  std::optional<caf::actor_system> system{config};
  std::vector<caf::actor_id> guarded;
  std::optional<services::departures> all{std::in_place, *system, [this](caf::actor_id courier) {
                                            guarded.push_back(courier);
                                            return gate::own_actors::hold();
                                          }};

  void post(const c10::Device& from, std::function<void(std::exception_ptr)> send) {
    all->post(
      all->stage.to_host({at::ones({2}, at::device(from))}), [] {}, std::move(send));
  }
};

bool is_too_late(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const error& reason) {
    return reason.code() == errc::stopping;
  }
  return false;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(couriers, node_with_device)

BOOST_AUTO_TEST_CASE(send_in_order_what_has_arrived) {  // CE-1, DP-4
  simulated::gate late(default_stream);
  auto staged = all->stage.to_host({at::ones({2}, at::device(first))});
  const auto tensor = staged.tensors[0];
  std::vector<int> order;
  std::promise<bool> right;
  const auto finish = [&] { order.push_back((tensor == 1).all().item<bool>() ? 0 : -1); };
  all->post(std::move(staged), finish, [&](std::exception_ptr failure) {
    order.push_back(1);
    right.set_value(!failure);
  });
  post(first, [&](std::exception_ptr) { order.push_back(2); });
  auto answer = right.get_future();
  simulated::settle();
  BOOST_TEST(order.empty());
  late.open();
  BOOST_TEST(answer.get());
  all->finish(in_an_hour());
  BOOST_TEST(order == (std::vector<int>{0, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(send_one_parcel_at_a_time_at_the_end_too) {  // CE-1
  std::promise<void> inside;
  std::promise<void> may_end;
  std::atomic<bool> first_is_sent{false};
  bool in_order = false;
  post(first, [&](std::exception_ptr) {
    inside.set_value();
    may_end.get_future().wait_for(std::chrono::milliseconds(200));  // ends early only if the second parcel is sent too early
    first_is_sent = true;
  });
  inside.get_future().wait();
  post(first, [&](std::exception_ptr) {
    in_order = first_is_sent;
    may_end.set_value();
  });
  all->finish(now());
  BOOST_TEST(in_order);
}

BOOST_AUTO_TEST_CASE(tell_who_sends_why_the_device_failed) {  // CE-2
  const simulated::broken_device broken;
  std::string why;
  post(first, [&](std::exception_ptr failure) {
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), c10::Error, [&](const c10::Error& reason) {
      why = reason.what_without_backtrace();
      return true;
    });
  });
  all->finish(in_an_hour());
  BOOST_TEST(why == "the simulated device is broken");
}

BOOST_AUTO_TEST_CASE(tell_who_sends_why_the_contents_could_not_be_finished) {  // DP-4
  std::string why;
  all->post(
    all->stage.to_host({at::ones({2}, at::device(first))}), [] { throw std::runtime_error("of the test"); },
    [&](std::exception_ptr failure) {
      BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), std::runtime_error, [&](const std::exception& reason) {
        why = reason.what();
        return true;
      });
    });
  all->finish(in_an_hour());
  BOOST_TEST(why == "of the test");
}

BOOST_AUTO_TEST_CASE(finish_no_contents_of_a_device_that_failed) {  // DP-4
  bool finished = false;
  std::promise<bool> failed;
  auto staged = all->stage.to_host({at::ones({2}, at::device(first))});
  const simulated::broken_device broken;
  all->post(
    std::move(staged), [&] { finished = true; }, [&](std::exception_ptr failure) { failed.set_value(failure != nullptr); });
  BOOST_TEST(failed.get_future().get());
  all->finish(in_an_hour());
  BOOST_TEST(!finished);
}

// What finishes the contents takes longer than finish() waits for couriers.
BOOST_AUTO_TEST_CASE(end_after_the_contents_that_are_being_finished) {  // DP-5
  nodes::system_config real_config{settings()};
  caf::actor_system with_clock(real_config);
  services::departures own(with_clock, [](caf::actor_id) { return gate::own_actors::hold(); });
  std::promise<void> begun;
  std::promise<void> never;
  std::promise<bool> late;
  std::atomic<bool> is_sent{false};
  std::atomic<bool> late_contents{false};
  simulated::gate both(default_stream);
  own.post(
    own.stage.to_host({at::ones({2}, at::device(first))}),
    [&] {
      begun.set_value();
      never.get_future().wait_for(std::chrono::milliseconds(1'500));
    },
    [&](std::exception_ptr failure) { is_sent = !failure; });
  own.post(
    own.stage.to_host({at::ones({2}, at::device(first))}), [&] { late_contents = true; },
    [&](std::exception_ptr failure) { late.set_value(is_too_late(failure)); });
  simulated::settle();
  both.open();
  begun.get_future().wait();
  own.finish(now());
  BOOST_TEST(is_sent);
  BOOST_TEST(late.get_future().get());
  BOOST_TEST(!late_contents);
}

BOOST_AUTO_TEST_CASE(wait_at_the_end_for_a_device_that_is_not_too_late) {  // CE-3
  int sent = 0;
  simulated::gate late(default_stream);
  for (int i = 0; i < 20; ++i) post(first, [&](std::exception_ptr failure) { sent += failure ? 0 : 1; });
  std::thread opens([&] {
    simulated::settle();
    late.open();
  });
  all->finish(in_an_hour());
  opens.join();
  BOOST_TEST(sent == 20);
}

BOOST_AUTO_TEST_CASE(end_in_time_although_a_device_does_not_answer) {  // CE-3, DP-3
  // Written by the threads of both devices.
  std::atomic<int> told = 0;
  simulated::gate late(default_stream);
  simulated::gate late_too(c10::Stream(c10::Stream::DEFAULT, second));
  const auto too_late = [&](std::exception_ptr failure) { told += is_too_late(failure) ? 1 : 0; };
  for (int i = 0; i < 3; ++i) post(first, too_late);
  post(second, too_late);
  simulated::settle();
  all->finish(now());
  BOOST_TEST(told == 4);
  post(first, too_late);
  BOOST_TEST(told == 5);
  late.open();
  late_too.open();
  simulated::synchronize();
  BOOST_TEST(told == 5);
}

BOOST_AUTO_TEST_CASE(tell_who_sends_that_the_node_ends_without_a_last_wait) {  // CE-3, DP-3
  bool told = false;
  simulated::gate late(default_stream);
  post(first, [&](const std::exception_ptr& failure) { told = is_too_late(failure); });
  simulated::settle();
  all.reset();
  BOOST_TEST(told);
  late.open();
  system.reset();  // the courier ends before what its parcel refers to
}

BOOST_AUTO_TEST_CASE(refuse_what_comes_when_they_have_closed) {  // CE-3
  const auto courier = services::spawn_courier(*system);
  caf::scoped_actor self{*system};
  self->request(courier, std::chrono::seconds(20), support::close_atom::value, std::int64_t{0})
    .receive([] {}, [](const caf::error&) { BOOST_ERROR("the courier does not close"); });
  std::promise<bool> told;
  simulated::gate late(default_stream);  // otherwise the parcel could be ready
  self->send(courier, std::make_shared<services::parcel>(
                        services::parcel{all->stage.to_host({at::ones({2}, at::device(first))}),
                                         [&](const std::exception_ptr& failure) { told.set_value(is_too_late(failure)); }}));
  auto answer = told.get_future();
  BOOST_TEST((answer.wait_for(std::chrono::seconds(20)) == std::future_status::ready));
  self->send_exit(courier, caf::exit_reason::user_shutdown);
  late.open();
  BOOST_TEST(answer.get());
}

// The function that sends runs on the courier's thread while finish() waits for the courier.
BOOST_AUTO_TEST_CASE(may_be_asked_for_more_while_they_end) {
  bool refused = false;
  simulated::gate late(default_stream);
  post(first, [&](const std::exception_ptr&) {
    post(second, [&](const std::exception_ptr& failure) { refused = is_too_late(failure); });
  });
  simulated::settle();
  std::thread opens([&] {
    simulated::settle();
    late.open();
  });
  all->finish(now() + std::chrono::seconds(30));
  opens.join();
  BOOST_TEST(refused);
}

// No thread is left that waits for the device: the destructor of the actor system waits for all of them.
BOOST_AUTO_TEST_CASE(leave_no_thread_behind) {  // CE-3
  simulated::gate late(default_stream);
  post(first, [](std::exception_ptr) {});
  simulated::settle();
  all->finish(now());
  all.reset();
  std::promise<void> gone;
  bool in_time = false;
  std::thread watch([&] {
    in_time = gone.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    late.open();
  });
  system.reset();
  gone.set_value();
  watch.join();
  BOOST_TEST(in_time);
}

BOOST_AUTO_TEST_CASE(ask_a_device_less_often_the_longer_it_takes) {  // PN-1, PN-2
  using services::parcel_line;
  simulated::gate late(default_stream);
  std::vector<int> sent;
  const auto parcel_of = [&](const c10::Device& device, int number) {
    return std::make_shared<services::parcel>(
      services::parcel{all->stage.to_host({at::ones({2}, at::device(device))}), [&, number](auto) { sent.push_back(number); }});
  };
  constexpr std::int64_t second = 1'000'000'000;
  parcel_line line;
  line.add(parcel_of(first, 1), second);
  line.add(parcel_of(first, 2), 5 * second);  // the first one is waited for
  BOOST_TEST(line.pause_ns(second + parcel_line::patience_ns - 1) == 0);
  BOOST_TEST(line.pause_ns(second + parcel_line::patience_ns) == parcel_line::patience_ns / 8);
  BOOST_TEST(line.pause_ns(second + 8 * parcel_line::longest_ns - 8) == parcel_line::longest_ns - 1);
  BOOST_TEST(line.pause_ns(2 * second) == parcel_line::longest_ns);
  line.send_ready(2 * second);
  BOOST_TEST(sent.empty());
  late.open();
  simulated::synchronize();
  line.send_ready(6 * second);
  BOOST_TEST(sent == (std::vector<int>{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(line.empty());
  line.add(parcel_of(first, 3), 7 * second);
  BOOST_TEST(line.pause_ns(7 * second + 1) == 0);
}

BOOST_AUTO_TEST_CASE(do_not_keep_the_core_busy_while_they_wait_nor_while_they_close) {  // CE-4
  simulated::gate late(default_stream);
  post(first, [&](std::exception_ptr) {});
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  auto before = used();
  std::promise<void> never;
  never.get_future().wait_for(std::chrono::milliseconds(300));
  BOOST_TEST((used() - before < std::chrono::milliseconds(100)));
  before = used();
  all->finish(now() + std::chrono::milliseconds(300));
  BOOST_TEST((used() - before < std::chrono::milliseconds(100)));
}

BOOST_AUTO_TEST_CASE(sleep_no_longer_than_they_mean_to) {  // CE-4
  std::promise<int> slack;
  post(first, [&](std::exception_ptr) { slack.set_value(::prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL)); });
  BOOST_TEST(slack.get_future().get() == 1);  // nanosecond
}

BOOST_AUTO_TEST_CASE(sleep_when_all_is_sent) {  // CE-4
  std::promise<void> sent;
  post(first, [&](std::exception_ptr) { sent.set_value(); });
  sent.get_future().wait();
  const auto pauses = [] { return times_that_threads_paused("troupe.courier"); };
  std::promise<void> never;
  const auto time = never.get_future();
  time.wait_for(std::chrono::milliseconds(50));  // the courier looks once more
  const auto before = pauses();
  time.wait_for(std::chrono::milliseconds(200));
  BOOST_TEST(before > 0);
  BOOST_TEST(pauses() - before < 20);
}

BOOST_AUTO_TEST_CASE(of_one_device_wait_for_no_other_device) {  // DP-1
  std::promise<void> sent;
  auto second_is_there = sent.get_future();
  bool first_is_there = false;
  simulated::gate late(default_stream);
  post(first, [&](std::exception_ptr) { first_is_there = true; });
  post(second, [&](std::exception_ptr) { sent.set_value(); });
  second_is_there.wait();
  late.open();
  all->finish(in_an_hour());
  BOOST_TEST(first_is_there);
  BOOST_TEST(guarded.size() == 2u);
}

BOOST_AUTO_TEST_CASE(that_get_no_thread_say_so) {  // DP-2
  auto staged = all->stage.to_host({at::ones({2}, at::device(first))});
  std::string why;
  {
    const no_more_threads none;
    all->post(
      std::move(staged), [] {},
      [&](std::exception_ptr failure) {
        BOOST_CHECK_THROW(std::rethrow_exception(failure), std::system_error);
        why = "told";
      });
  }
  BOOST_TEST(why == "told");
  post(first, [&](std::exception_ptr failure) { why = failure ? "failed" : "sent"; });
  all->finish(in_an_hour());
  BOOST_TEST(why == "sent");
}

BOOST_AUTO_TEST_SUITE_END()
