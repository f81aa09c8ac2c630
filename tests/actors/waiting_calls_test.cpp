// SPDX-License-Identifier: BSD-3-Clause
// Calls that wait: for a worker of the node that they were sent to, and within a call that has a deadline.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <malloc.h>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(waiting_calls)

namespace {

using troupe::test::becomes_true;
using troupe::test::contains;
using troupe::test::loopback_settings;
using troupe::test::read_text;
using troupe::test::says;

constexpr std::size_t large = std::size_t{64} << 20;

/// The only worker of node `busy` is held up, so calls of `caller` wait.
struct busy_node {
  busy_node() {
    busy.functions().add("hold", [this](troupe::call_arguments&) {
      holds.set_value();
      let_go.get_future().wait();
      return troupe::call_reply{};
    });
    busy.functions().add("size", [](troupe::call_arguments& arguments) {
      return troupe::call_reply{{}, {{"bytes", static_cast<std::int64_t>(arguments.tensor(0).nbytes())}}};
    });
    busy.join("127.0.0.1", other.port());
    held = other.peer("busy").call("hold");
    holds.get_future().wait();
    caller.emplace(loopback_settings("caller"));
    caller->join("127.0.0.1", busy.port());
    before = memory();
  }
  ~busy_node() {
    let_go.set_value();
    held.get();
  }

  /// Sends a call with 64 MiB and waits until the elements have come to `busy`.
  troupe::future<troupe::call_reply> send(std::chrono::milliseconds deadline = 20s) {
    auto result =
      caller->peer("busy").call("size", {at::ones({static_cast<std::int64_t>(large)}, at::kByte)}, {}, {}, deadline);
    BOOST_TEST(becomes_true([&] { return memory() > before + large / 2; }));
    return result;
  }
  bool nothing_stays() {
    return becomes_true([&] { return memory() < before + large / 4; });
  }

  static std::size_t memory() {
    const auto all = ::mallinfo2();
    return all.uordblks + all.hblkhd;
  }

  std::promise<void> holds;
  std::promise<void> let_go;
  troupe::node busy{loopback_settings("busy")};
  troupe::node other{loopback_settings("other")};
  std::optional<troupe::node> caller;
  troupe::future<troupe::call_reply> held;
  std::size_t before = 0;
};

}  // namespace

// GW-13
BOOST_FIXTURE_TEST_CASE(a_call_whose_deadline_passes_leaves_the_queue, busy_node) {
  const auto reply = send(2s);
  BOOST_CHECK_EXCEPTION(reply.get(), troupe::error, says("no answer within 2 s"));
  BOOST_TEST(nothing_stays());
}

// GW-13
BOOST_FIXTURE_TEST_CASE(a_call_whose_context_is_released_leaves_the_queue, busy_node) {
  std::optional<troupe::context> pass(std::in_place, *caller);
  const auto reply = send();
  pass.reset();
  BOOST_CHECK_THROW(reply.get(), troupe::error);  // either node may notice first, and each has a text of its own
  BOOST_TEST(nothing_stays());
}

// GW-13
BOOST_FIXTURE_TEST_CASE(a_call_whose_caller_goes_down_leaves_the_queue, busy_node) {
  const auto reply = send();
  caller.reset();
  BOOST_CHECK_THROW(reply.get(), troupe::error);
  BOOST_TEST(nothing_stays());
}

namespace {

/// Two short calls that wait for the only worker of node `busy`. The first one begins a series, which the second one joins (HW-5).
/// Then the first one takes long, so that the second one leaves the series.
struct stuck_series {
  stuck_series() {
    busy.functions().add("hold", [this](troupe::call_arguments&) {
      let_go.get_future().wait();
      return troupe::call_reply{};
    });
    busy.functions().add("quick", [this](troupe::call_arguments&) {
      ++runs;
      if (const auto what = std::exchange(in_next, nullptr)) what();
      return troupe::call_reply{};
    });
    busy.join("127.0.0.1", other.port());
    caller->join("127.0.0.1", busy.port());
    for (int i = 0; i < 20; ++i) other.peer("busy").call("quick").get();
    runs = 0;
  }

  /// `in_first`: runs in the first call, before this call takes long. `send_second`: sends the second call.
  void begin(const std::function<void()>& in_first, const std::function<void()>& send_second) {
    const auto held = other.peer("busy").call("hold");
    in_next = [this, in_first] {
      in_first();
      finish.get_future().wait();
    };
    first = other.peer("busy").call("quick");
    BOOST_TEST(becomes_true([&] { return busy.status().calls_queued == 1; }));
    send_second();
    BOOST_TEST(becomes_true([&] { return busy.status().calls_queued == 2; }));
    let_go.set_value();
    held.get();
  }
  troupe::future<troupe::call_reply> call_second(std::chrono::milliseconds deadline = 20s) {
    return caller->peer("busy").call("quick", {}, {}, {}, deadline);
  }
  /// Checks that node `busy` refuses the second call, and does not run it.
  void end(const std::string& reason) {
    BOOST_TEST(becomes_true([&] { return contains(read_text(log), "refused: " + reason); }));
    BOOST_TEST(busy.status().calls_queued == 0u);
    finish.set_value();
    first.get();
    other.peer("busy").call("quick").get();
    BOOST_TEST(runs == 2);
  }

  static troupe::settings logged(const std::string& file) {
    auto result = loopback_settings("busy");
    result.log_level = troupe::severity::info;
    result.log_file = file;
    return result;
  }

  std::promise<void> let_go;
  std::promise<void> finish;
  std::atomic<int> runs{0};
  std::function<void()> in_next;
  const troupe::test::temporary_folder folder;
  const std::string log = folder / "log";
  troupe::node busy{logged(log)};
  troupe::node other{loopback_settings("other")};
  std::optional<troupe::node> caller{loopback_settings("caller")};
  troupe::future<troupe::call_reply> first;
};

}  // namespace

// GW-13, HW-5
BOOST_FIXTURE_TEST_CASE(a_call_that_left_a_series_leaves_the_queue_at_its_deadline, stuck_series) {
  troupe::future<troupe::call_reply> second;
  begin([] {}, [&] { second = call_second(500ms); });
  BOOST_CHECK_EXCEPTION(second.get(), troupe::error, says("no answer within 0.5"));
  end("no answer within 0.5");
}

// GW-13, HW-5
BOOST_FIXTURE_TEST_CASE(a_call_that_left_a_series_leaves_the_queue_if_its_context_was_released_before, stuck_series) {
  std::promise<void> release;
  std::future<void> ended;
  const auto in_first = [&] {
    release.set_value();
    BOOST_TEST(becomes_true([&] { return troupe::services_of(busy).counts.contexts == 0; }));
  };
  begin(in_first, [&] {
    std::promise<void> sent;
    ended = std::async(std::launch::async, [&] {
      std::optional<troupe::context> pass(std::in_place, *caller);
      const auto second = call_second();
      sent.set_value();
      release.get_future().wait();
      pass.reset();
      BOOST_CHECK_THROW(second.get(), troupe::error);
    });
    sent.get_future().wait();
  });
  end("its context was released");
}

// GW-13, HW-5
BOOST_FIXTURE_TEST_CASE(a_call_that_left_a_series_leaves_the_queue_if_its_caller_went_down_before, stuck_series) {
  const auto who = caller->id();
  std::future<void> ended;
  troupe::future<troupe::call_reply> second;
  const auto in_first = [&] {
    ended = std::async(std::launch::async, [&] { caller.reset(); });
    BOOST_TEST(becomes_true([&] { return troupe::services_of(busy).directory.is_down(who); }));
  };
  begin(in_first, [&] { second = call_second(); });
  BOOST_CHECK_THROW(second.get(), troupe::error);
  end("its caller went down");
}

// GW-13: the sum of the gradients of two passes waits for the thread of the node that computes.
BOOST_AUTO_TEST_CASE(a_call_that_waits_for_gradients_does_not_run_when_its_caller_went_down) {
  troupe::node a(loopback_settings("a"));
  troupe::node b(loopback_settings("b"));
  const auto weight = torch::ones({2}, torch::requires_grad());
  std::atomic<int> runs{0};
  b.functions().add("scale", [&](troupe::call_arguments& arguments) {
    ++runs;
    return troupe::call_reply{{weight * arguments.tensor(0)}};
  });
  a.join("127.0.0.1", b.port());
  const auto x = torch::ones({2});
  troupe::context pass(a);
  const auto y = a.peer("b").call("scale", {x}).get().tensor(0).sum();
  for (int i = 0; i < 2; ++i) pass.backward({y}, {.keep_graph = true}).get();
  std::promise<void> let_go;
  troupe::contracts::discarded slow;  // only the thread that frees it may own it: the last owner waits
  slow.all.emplace_back(nullptr, [held = let_go.get_future().share()](void*) { held.wait(); });
  caf::anon_send(troupe::services_of(b).actors.continuation, std::move(slow));
  const auto reply = a.peer("b").call("scale", {x});
  BOOST_TEST(becomes_true([&] { return b.status().calls_queued == 1; }));
  caf::anon_send(troupe::services_of(b).actors.gateway,
                 troupe::contracts::peer_down{{"a", a.id(), "127.0.0.1", a.port()}, "the test says so", false});
  BOOST_CHECK_EXCEPTION(reply.get(), troupe::error, says("its caller went down (the test says so)"));
  BOOST_TEST(b.status().calls_queued == 0u);
  const auto context = troupe::services_of(b).contexts.find(pass.id()).actor;
  let_go.set_value();
  caf::scoped_actor self{b.system()};
  self->request(context, 20s, troupe::support::gradients_atom::value)
    .receive([](const troupe::contracts::gradients_ptr&) {}, [](const caf::error&) { BOOST_ERROR("expected gradients"); });
  BOOST_TEST(b.status().calls_run == 1u);
  troupe::node c(loopback_settings("c"));
  c.join("127.0.0.1", b.port());
  // On a thread outside of the context. The only worker would have run the other call before.
  std::async(std::launch::async, [&] { c.peer("b").call("scale", {x}).get(); }).get();
  BOOST_TEST(runs == 2);
}

BOOST_AUTO_TEST_CASE(a_call_within_a_call_has_no_more_time_than_that_call) {
  std::promise<void> let_go;
  std::promise<std::string> failed;
  std::promise<void> caller_gave_up;  // else the answer of "ask" could come just before the deadline of its caller
  troupe::node a(loopback_settings("a"));
  troupe::node b(loopback_settings("b"));
  a.functions().add("hold", [&](troupe::call_arguments&) {
    let_go.get_future().wait();
    return troupe::call_reply{};
  });
  b.functions().add("ask", [&](troupe::call_arguments& arguments) {
    try {
      arguments.here.peer("a").call("hold").get();
      failed.set_value("answered");
    } catch (const troupe::error& why) {
      failed.set_value(why.what());
    }
    caller_gave_up.get_future().wait();
    return troupe::call_reply{};
  });
  a.join("127.0.0.1", b.port());
  BOOST_CHECK_THROW(a.peer("b").call("ask", {}, {}, {}, 100ms).get(), troupe::error);
  caller_gave_up.set_value();
  auto told = failed.get_future();
  BOOST_REQUIRE((told.wait_for(10s) == std::future_status::ready));  // the nodes' own deadline is longer
  const auto text = told.get();
  BOOST_TEST(troupe::test::contains(text, "no answer within 0."), text);
  let_go.set_value();
}

// Each call that leads to another one keeps a thread meanwhile. What a request says of its depth may be untrue.
BOOST_AUTO_TEST_CASE(calls_are_nested_to_a_depth_of_4096) {
  troupe::node here(loopback_settings("here"));
  here.functions().add("nothing", [](troupe::call_arguments&) { return troupe::call_reply{}; });
  caf::scoped_actor self{here.system()};
  const auto call_at = [&](std::uint32_t depth) {
    troupe::call_request request;
    request.what = troupe::requests::function{"nothing"};
    request.depth = depth;
    std::string outcome = "no answer";
    self->request(troupe::services_of(here).actors.gateway, 20s, std::move(request))
      .receive([&](const troupe::call_result&) { outcome = "done"; },
               [&](const caf::error& why) { outcome = troupe::to_exception(why).what(); });
    return outcome;
  };
  BOOST_TEST(call_at(4095) == "done");
  for (const std::uint32_t depth : {4096U, 100'000U, ~0U})
    BOOST_TEST(troupe::test::contains(call_at(depth), "calls deep, and fewer than 4096 are taken"));
}

BOOST_AUTO_TEST_SUITE_END()
