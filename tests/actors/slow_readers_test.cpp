// SPDX-License-Identifier: BSD-3-Clause
// A process that takes nothing from its connections slows those that send to it: the memory of both stays within bounds (GW-14).
#include <boost/test/unit_test.hpp>

#include <malloc.h>
#include <signal.h>

#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include <caf/actor_cast.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_behavior.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/process_cluster.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::test::becomes_idle;
using troupe::test::becomes_true;
using troupe::test::loopback_settings;

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t limit = 8 * mebibyte;
constexpr std::int64_t messages = 64;

/// The bytes that the C library has given to this process and that were not freed.
std::size_t memory_in_use() {
  const auto all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}

/// A node that is frozen for some seconds stays up.
troupe::settings settings_of(const std::string& name) {
  auto result = loopback_settings(name);
  result.shared_memory = result.direct_memory = name != "by_tcp";
  result.send_limit = limit;
  result.heartbeat = 5s;
  return result;
}

at::Tensor one_mebibyte() { return torch::ones({static_cast<std::int64_t>(mebibyte / sizeof(float))}); }

/// The answers that the other process has got, in that process.
struct answers {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t came = 0;
  std::size_t before = 0;
  std::size_t most_memory = 0;

  void take() {
    std::lock_guard lock(mutex);
    ++came;
    most_memory = std::max(most_memory, memory_in_use());
    changed.notify_all();
  }
};

void add_functions(troupe::node& here) {
  const auto got = std::make_shared<answers>();
  here.functions().add("ask", [got](troupe::call_arguments& arguments) {
    got->before = memory_in_use();
    for (std::int64_t i = 0; i < messages; ++i)
      arguments.here.peer("driver").call("produce").then([got](const troupe::future<troupe::call_reply>&) { got->take(); });
    return troupe::call_reply{};
  });
  here.functions().add("finish", [got](troupe::call_arguments&) {
    std::unique_lock lock(got->mutex);
    got->changed.wait(lock, [&] { return got->came == messages; });
    return troupe::call_reply{{},
                              {{"grown", static_cast<std::int64_t>(std::max(got->most_memory, got->before) - got->before)}}};
  });
  here.functions().add("grow", [all = one_mebibyte()](troupe::call_arguments& arguments) {
    return troupe::call_reply{{arguments.tensor(0) * all}};
  });
}

using store_actor = caf::typed_actor<caf::reacts_to<std::string>, caf::replies_to<caf::get_atom>::with<std::int64_t>>;

void add_actor(troupe::node& here) {
  add_functions(here);
  const store_actor made = here.system().spawn([] {
    const auto count = std::make_shared<std::int64_t>(0);
    return store_actor::behavior_type{[count](const std::string& what) { *count += what.size() == mebibyte ? 1 : 0; },
                                      [count](caf::get_atom) { return *count; }};
  });
  here.publish("store", caf::actor_cast<caf::strong_actor_ptr>(made));
}

void be_process(const std::string& name, std::uint16_t port) {
  troupe::test::be_node("slow readers", settings_of(name), port, add_actor);
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct shared_nursery {
  shared_nursery() { processes = &own; }
  troupe::test::nursery own{be_process};
  static inline troupe::test::nursery* processes = nullptr;
};

/// A driver and one other process, which may be frozen.
struct pair : troupe::test::process_cluster {
  explicit pair(const std::string& name, troupe::settings of_driver)
      : process_cluster(*shared_nursery::processes, std::move(of_driver), {name}) {
    const auto missing = meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
  }
  static troupe::settings driver_for(const std::string& name) {
    auto result = settings_of("driver");
    result.shared_memory = result.direct_memory = name != "by_tcp";
    return result;
  }
  explicit pair(const std::string& name) : pair(name, driver_for(name)) {}

  troupe::peer there() { return driver().peer(names().front()); }
  void freeze() { troupe::test::freeze(pid(names().front())); }
  void thaw() { signal(names().front(), SIGCONT); }
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

BOOST_AUTO_TEST_SUITE(slow_readers)

BOOST_AUTO_TEST_CASE(answers_to_a_frozen_caller_are_bounded) {  // GW-14
  for (const std::string name : {"by_memory", "by_tcp"}) {
    pair all(name);
    std::promise<void> may_begin;
    std::atomic<std::int64_t> runs{0};
    all.driver().functions().add("produce", [&, begin = may_begin.get_future().share()](troupe::call_arguments&) {
      begin.wait();
      ++runs;
      return troupe::call_reply{{one_mebibyte()}};
    });
    all.driver().functions().add("nothing", [](troupe::call_arguments&) { return troupe::call_reply{}; });
    all.there().call("ask").get();
    BOOST_TEST(becomes_true([&] { return all.driver().status().calls_queued == messages - 1; }));
    const auto before = memory_in_use();
    all.freeze();
    may_begin.set_value();
    // A call of another node passes the calls of the frozen node only once these may not start.
    all.driver().peer("driver").call("nothing").get();
    BOOST_TEST(runs == static_cast<std::int64_t>(limit / mebibyte), name);
    BOOST_TEST(memory_in_use() < before + 2 * limit, name);
    all.thaw();
    const auto end = all.there().call("finish").get();
    BOOST_TEST(runs == messages);
    BOOST_TEST(troupe::get<std::int64_t>(end.values, "grown") < static_cast<std::int64_t>(2 * limit), name);
    BOOST_TEST(becomes_idle(all.driver()));
  }
}

namespace {

/// A pass whose gradients are 64 MiB for the other process.
struct large_pass {
  explicit large_pass(pair& of) : all(of), pass(of.driver()) {
    auto sum = torch::zeros({});
    for (std::int64_t i = 0; i < messages; ++i) sum = sum + (all.there().call("grow", {x}).get().tensor(0) * weight).sum();
    loss = sum;
    before = memory_in_use();
  }

  pair& all;
  at::Tensor x = torch::ones({1}, torch::requires_grad());
  at::Tensor weight = one_mebibyte();
  troupe::context pass;
  at::Tensor loss;
  std::size_t before = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_for_a_frozen_node_are_bounded) {  // GW-14
  for (const std::string name : {"by_memory", "by_tcp"}) {
    pair all(name);
    large_pass large(all);
    const auto there = all.there().id();
    all.freeze();
    auto ended = std::async(std::launch::async, [&] { large.pass.backward({large.loss}).get(); });
    auto& credits = troupe::services_of(all.driver()).gradient_credits;
    BOOST_TEST(becomes_true([&] { return credits.under_way({there, 0}) == limit; }));
    std::size_t most = 0;
    for (int i = 0; i < 200; ++i) {
      all.driver().status();
      most = std::max(most, memory_in_use());
    }
    BOOST_TEST(most < large.before + 2 * limit, name);
    BOOST_TEST(credits.under_way({there, 0}) == limit);
    all.thaw();
    ended.get();
    BOOST_TEST(at::equal(large.pass.gradient(large.x), large.weight.sum().reshape({1}) * static_cast<double>(messages)));
    BOOST_TEST(becomes_true([&] { return credits.under_way({there, 0}) == 0U; }));
  }
}

BOOST_AUTO_TEST_CASE(a_pass_whose_gradients_wait_ends_at_its_deadline) {  // GW-14
  pair all("by_memory");
  {
    large_pass large(all);
    all.freeze();
    auto ended = std::async(std::launch::async, [&] { large.pass.backward({large.loss}, {.deadline = 200ms}).get(); });
    BOOST_REQUIRE((ended.wait_for(20s) == std::future_status::ready));
    BOOST_CHECK_THROW(ended.get(), troupe::error);
    all.thaw();
  }
  BOOST_TEST(becomes_idle(all.driver()));
  BOOST_TEST(all.left_on(all.names().front()) == "");
}

BOOST_AUTO_TEST_CASE(a_pass_whose_gradients_wait_ends_when_the_node_dies) {  // GW-14
  pair all("by_memory");
  auto& credits = troupe::services_of(all.driver()).gradient_credits;
  const auto there = all.there().id();
  {
    large_pass large(all);
    all.freeze();
    auto ended = std::async(std::launch::async, [&] { large.pass.backward({large.loss}).get(); });
    BOOST_TEST(becomes_true([&] { return credits.under_way({there, 0}) == limit; }));
    all.signal(all.names().front(), SIGKILL);
    BOOST_REQUIRE((ended.wait_for(10s) == std::future_status::ready));
    BOOST_CHECK_THROW(ended.get(), troupe::error);
  }
  BOOST_TEST(becomes_idle(all.driver()));
  BOOST_TEST(becomes_true([&] { return credits.under_way({there, 0}) == 0U; }));
}

BOOST_AUTO_TEST_CASE(who_asks_for_capacity_sends_a_frozen_node_a_bounded_number_of_messages,
                     *boost::unit_test::label("own_network")) {
  for (const std::string name : {"by_memory", "by_tcp"}) {  // GW-15
    pair all(name);
    auto there = all.there();
    const auto store = caf::actor_cast<store_actor>(there.actor("store"));
    const auto before = memory_in_use();
    all.freeze();
    std::int64_t sent = 0;
    const auto send = [&](std::chrono::milliseconds deadline) {
      there.send_capacity(deadline).get();
      caf::anon_send(store, std::string(mebibyte, 'x'));
      ++sent;
    };
    BOOST_CHECK_EXCEPTION(while (sent < messages) send(300ms), troupe::error,
                          troupe::test::says("bytes wait to leave for node '" + name + "'", "settings::send_limit is 8388608"));
    BOOST_TEST(sent >= static_cast<std::int64_t>(limit / mebibyte));
    BOOST_TEST(memory_in_use() < before + 2 * limit);
    all.thaw();
    while (sent < messages) send(20s);
    caf::scoped_actor self{all.driver().system()};
    std::int64_t came = 0;
    BOOST_TEST(becomes_true([&] {  // a small question may overtake a large message
      self->request(store, 20s, caf::get_atom::value).receive([&](std::int64_t now) { came = now; }, [](const caf::error&) {});
      return came == messages;
    }));
  }
}

BOOST_AUTO_TEST_CASE(a_wish_for_capacity_fails_when_the_peer_goes_down) {  // GW-15
  pair all("by_memory");
  auto there = all.there();
  BOOST_CHECK_NO_THROW(all.driver().self().send_capacity().get());
  BOOST_CHECK_NO_THROW(there.send_capacity().get());
  all.signal(all.names().front(), SIGKILL);
  BOOST_TEST(becomes_true([&] { return !all.is_up(all.names().front()); }));
  BOOST_CHECK_EXCEPTION(there.send_capacity().get(), troupe::error, troupe::test::says("is down"));
}

BOOST_AUTO_TEST_SUITE_END()
