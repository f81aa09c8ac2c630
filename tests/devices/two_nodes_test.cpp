// SPDX-License-Identifier: BSD-3-Clause
// Calls and passes with tensors of an accelerator, between nodes of one process that talk over loopback.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "engine/notifying_hook.hpp"
#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"
#include "support/thread_count.hpp"
#include "support/thread_name.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

settings named(std::string name) {
  settings result;
  result.name = std::move(name);
  result.deadline = 10s;
  return result;
}

struct two_nodes : simulated::fixture {
  two_nodes() {
    b.functions().add("times_weight", [this](call_arguments& arguments) {
      const auto& x = arguments.tensors.at(0);
      return call_reply{{x * (x.device() == first ? on_first : on_second)}};
    });
    for (node* here : {&a, &b}) {
      here->functions().add("where", [](call_arguments& arguments) {
        std::string devices;
        for (const auto& each : arguments.tensors) devices += each.device().str() + ' ';
        return call_reply{{}, {{"devices", devices}}};
      });
    }
    b.functions().add("gradient",
                      [this](call_arguments& arguments) { return call_reply{{arguments.gradients->find(on_first)}}; });
    a.join("127.0.0.1", b.port());
  }

  at::Tensor on_first = at::tensor({2.0, 3.0}).to(first).requires_grad_();
  at::Tensor on_second = at::tensor({4.0, 5.0}).to(second).requires_grad_();
  node a{named("a")};
  node b{named("b")};
};

bool same(const at::Tensor& x, const at::Tensor& expected) { return x.defined() && at::equal(x.cpu(), expected); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(two_nodes_with_accelerators, two_nodes)

BOOST_AUTO_TEST_CASE(a_call_takes_and_gives_tensors_of_an_accelerator) {
  for (const auto& device : {first, second}) {
    const auto y = a.peer("b").call("times_weight", {at::tensor({1.0, 10.0}).to(device)}).get().tensors.at(0);
    BOOST_CHECK(y.device() == device);
    BOOST_TEST(same(y, device == first ? at::tensor({2.0, 30.0}) : at::tensor({4.0, 50.0})));
  }
  BOOST_TEST(troupe::services_of(a).departures->stage.used().refused == 0U);
  BOOST_TEST(troupe::services_of(a).departures->stage.used().in_use + troupe::services_of(a).departures->stage.used().idle >
             0U);
}

BOOST_AUTO_TEST_CASE(each_tensor_of_a_message_arrives_where_it_was) {
  const auto mixed =
    std::vector<at::Tensor>{at::ones({1}), at::ones({1}, at::device(second)), at::ones({1}, at::device(first))};
  const auto reply = a.peer("b").call("where", mixed).get();
  BOOST_TEST(get<std::string>(reply.values, "devices") == "cpu simulated:1 simulated:0 ");
  BOOST_TEST(get<std::string>(a.self().call("where", mixed).get().values, "devices") == "cpu simulated:1 simulated:0 ");
}

BOOST_AUTO_TEST_CASE(neither_the_caller_nor_calls_without_such_tensors_wait_for_a_late_device) {
  simulated::gate late(default_stream);
  const auto x = at::full({2}, 10.0, at::device(first).dtype(at::kDouble));
  auto reply = a.peer("b").call("where", {x});
  auto of_the_cpu = a.peer("b").call("where", {at::ones({1})});
  auto of_another_device = a.peer("b").call("where", {at::ones({1}, at::device(second))});
  BOOST_TEST(get<std::string>(of_the_cpu.get().values, "devices") == "cpu ");
  BOOST_TEST(get<std::string>(of_another_device.get().values, "devices") == "simulated:1 ");
  simulated::settle();
  BOOST_TEST(!reply.ready());
  late.open();
  BOOST_TEST(get<std::string>(reply.get().values, "devices") == "simulated:0 ");
}

BOOST_AUTO_TEST_CASE(a_call_ends_at_its_deadline_though_its_device_is_late) {
  simulated::gate late(default_stream);
  auto reply = a.peer("b").call("where", {at::ones({2}, at::device(first))}, {}, {}, 50ms);
  BOOST_CHECK_EXCEPTION(reply.get(10s), error, [](const error& failed) {
    return failed.code() == errc::deadline_passed && std::string(failed.what()).find("within 0.05 s") != std::string::npos;
  });
  BOOST_TEST(a.status().calls_waiting == 0U);
  const auto run_before = b.status().calls_run;
  late.open();
  simulated::synchronize();
  a.peer("b").call("where", {at::ones({2}, at::device(first))}).get();
  BOOST_TEST(b.status().calls_run == run_before + 1);  // the late call did not leave
}

BOOST_AUTO_TEST_CASE(a_call_whose_device_is_late_fails_when_its_node_goes_down_or_its_context_is_released) {
  simulated::gate late(default_stream);
  const auto x = at::ones({2}, at::device(first)).requires_grad_();
  future<call_reply> released;
  {
    context pass(a);
    released = a.peer("b").call("where", {x});
  }
  BOOST_CHECK_EXCEPTION(released.get(10s), error, [](const error& failed) { return failed.code() == errc::unknown_context; });
  auto lost = a.peer("b").call("where", {x.detach()});
  b.stop();
  BOOST_CHECK_EXCEPTION(lost.get(10s), error, [](const error& failed) { return failed.code() == errc::peer_down; });
}

BOOST_AUTO_TEST_CASE(a_late_result_keeps_no_worker_from_other_calls) {  // CW-1
  settings one_worker = named("c");
  one_worker.workers = 1;
  node c(one_worker);
  c.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
  a.join("127.0.0.1", c.port());
  std::promise<void> runs;
  c.functions().add("late", [&, x = at::ones({2}, at::device(first))](call_arguments&) {
    runs.set_value();
    return call_reply{{x * 2}};
  });
  simulated::gate late(default_stream);
  auto reply = a.peer("c").call("late");
  runs.get_future().wait();
  BOOST_TEST(a.peer("c").call("echo", {at::ones({1})}).get().tensors.size() == 1U);
  BOOST_TEST(!reply.ready());
  late.open();
  BOOST_TEST(same(reply.get().tensors.at(0), at::full({2}, 2.0F)));
}

BOOST_AUTO_TEST_CASE(calls_on_one_object_keep_their_order_and_its_last_handle_may_go_while_they_wait) {
  std::promise<void> freed;
  struct noted : module {
    explicit noted(std::promise<void>& end) : freed(end) {}
    ~noted() override { freed.set_value(); }
    std::promise<void>& freed;
    std::mutex mutex;
    std::string order;
    call_reply call(const std::string& method, call_arguments&) override {
      const std::lock_guard lock(mutex);
      return call_reply{{}, {{"order", order += method}}};
    }
    named_tensors parameters() override { return {}; }
  };
  add_module_type(b, "noted", [&](const attributes&) { return std::make_shared<noted>(freed); });
  auto made = std::make_optional(a.peer("b").create("noted"));
  simulated::gate late(default_stream);
  auto one = made->call("1", {at::ones({2}, at::device(first))});
  auto two = made->call("2");
  made.reset();
  a.peer("b").call("where").get();
  BOOST_TEST(!two.ready());
  late.open();
  BOOST_TEST(get<std::string>(one.get().values, "order") == "1");
  BOOST_TEST(get<std::string>(two.get().values, "order") == "12");
  const bool is_freed = freed.get_future().wait_for(10s) == std::future_status::ready;
  BOOST_TEST(is_freed);
}

BOOST_AUTO_TEST_CASE(a_node_stops_in_time_though_a_device_does_not_answer) {
  simulated::gate late(default_stream);
  auto reply = a.peer("b").call("where", {at::ones({2}, at::device(first))});
  auto stopped = std::async(std::launch::async, [this] { a.stop(); });
  const bool in_time = stopped.wait_for(nodes::node_runtime::device_patience + 4s) == std::future_status::ready;
  BOOST_TEST(in_time);
  if (!in_time) late.open();
  BOOST_CHECK_EXCEPTION(reply.get(10s), error, [](const error& failed) { return failed.code() == errc::stopping; });
}

BOOST_AUTO_TEST_CASE(a_node_stops_in_time_though_the_device_of_its_result_does_not_answer) {
  std::promise<void> runs;
  b.functions().add("late", [&, x = at::ones({2}, at::device(first))](call_arguments&) {
    runs.set_value();
    return call_reply{{x * 2}};
  });
  simulated::gate late(default_stream);
  auto reply = a.peer("b").call("late");
  runs.get_future().wait();
  auto stopped = std::async(std::launch::async, [this] { b.stop(); });
  const bool in_time = stopped.wait_for(nodes::node_runtime::device_patience + 4s) == std::future_status::ready;
  BOOST_TEST(in_time);
  if (!in_time) late.open();
  BOOST_CHECK_THROW(reply.get(10s), error);
}

BOOST_AUTO_TEST_CASE(a_result_is_sent_when_its_device_has_made_it) {  // CW-1
  std::promise<simulated::gate*> held;
  b.functions().add("late", [&](call_arguments& arguments) {
    held.set_value(new simulated::gate(default_stream));
    return call_reply{{arguments.tensors.at(0) * 2}};
  });
  auto reply = a.peer("b").call("late", {at::ones({2}, at::device(first))});
  const std::unique_ptr<simulated::gate> late(held.get_future().get());
  simulated::settle();
  late->open();
  BOOST_TEST(same(reply.get().tensors.at(0), at::full({2}, 2.0F)));
}

BOOST_AUTO_TEST_CASE(gradients_come_back_to_the_devices_of_their_tensors) {
  const auto x = at::tensor({1.0, 10.0}).to(first).requires_grad_();
  for (int i = 0; i < 20; ++i) {
    context pass(a);
    auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
    y = a.peer("b").call("times_weight", {y * 2}).get().tensors.at(0);
    BOOST_TEST(y.requires_grad());
    pass.backward({y.sum()}).get();
    const auto gradient = pass.gradient(x);
    BOOST_CHECK(gradient.device() == first);
    BOOST_TEST(same(gradient, at::tensor({8.0, 18.0})));
    const auto at_weight = a.peer("b").call("gradient").get().tensors.at(0);
    BOOST_CHECK(at_weight.device() == first);
    BOOST_TEST(same(at_weight, at::tensor({8.0, 120.0})));
  }
}

BOOST_AUTO_TEST_CASE(a_pass_sends_gradients_only_when_the_device_has_made_them) {
  const auto x = at::tensor({1.0, 10.0}).to(first).requires_grad_();
  context pass(a);
  const auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  const auto root = y.sum();
  std::promise<void> reached;
  y.register_hook([&](const at::Tensor&) { reached.set_value(); });
  simulated::gate late(default_stream);
  auto done = pass.backward({root});
  reached.get_future().wait();
  simulated::settle();
  BOOST_TEST(!done.ready());
  late.open();
  done.get();
  BOOST_TEST(same(pass.gradient(x), at::tensor({2.0, 3.0})));
}

// TB-4
BOOST_AUTO_TEST_CASE(a_gradient_may_be_read_on_any_stream_before_its_device_has_made_it) {
  const auto x = at::tensor({1.0, 10.0}).to(first).requires_grad_();
  context pass(a);
  at::Tensor root;
  {
    const c10::StreamGuard forward(stream);
    root = (x * 3).sum();
    simulated::synchronize();
  }
  simulated::gate late(stream);
  {
    const c10::StreamGuard callers(other);
    pass.backward({root}).get();
  }
  const auto read = pass.gradient(x) * 1;
  simulated::settle();
  late.open();
  simulated::synchronize();
  BOOST_TEST(same(read, at::tensor({3.0, 3.0})));
}

// The later bursts of a pass run on another thread than the one that called backward().
BOOST_AUTO_TEST_CASE(each_burst_of_a_pass_has_the_streams_of_its_caller) {
  const c10::impl::VirtualGuardImpl accelerator(at::kPrivateUse1);
  b.functions().add("twice", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) * 2}}; });
  const auto x = at::ones({2}).requires_grad_();
  std::atomic<int> wrong{0};
  std::atomic<int> bursts{0};
  const auto noted = [&](const at::Tensor& value) {
    value.register_hook([&](const at::Tensor&) {
      ++bursts;
      wrong += accelerator.getStream(first) == other && accelerator.getDevice() == first ? 0 : 1;
    });
    return value;
  };
  {
    context pass(a);
    const auto before = noted(x * 3);
    const auto after = noted(a.peer("b").call("twice", {before}).get().tensors.at(0) * 5);
    const c10::StreamGuard callers(other);
    auto done = pass.backward({after.sum()});
    const c10::StreamGuard changed(default_stream);  // after the call: has no effect on the pass
    done.get();
    BOOST_TEST((accelerator.getStream(first) == default_stream));
    BOOST_TEST(same(pass.gradient(x), at::full({2}, 30.0F)));
  }
  BOOST_TEST(bursts == 2);
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_device_that_fails_fails_the_call_and_the_pass) {
  const auto says = [](const char* part) {
    return [part](const error& failed) {
      const std::string text = failed.what();
      return text.find(part) != std::string::npos &&
             text.find("simulated:0, could not be made ready to leave: the simulated device is broken") != std::string::npos;
    };
  };
  const auto x = at::tensor({1.0, 10.0}).to(first).requires_grad_();
  context pass(a);
  const auto root = a.peer("b").call("times_weight", {x}).get().tensors.at(0).sum();
  const simulated::broken_device broken;
  BOOST_CHECK_EXCEPTION(a.peer("b").call("where", {x}).get(), error, says("call of 'where' on node 'b' failed"));
  BOOST_CHECK_EXCEPTION(pass.backward({root}).get(), error,
                        says("backward on node 'a' failed: gradients for node 'b', which come from"));
}

BOOST_AUTO_TEST_CASE(a_device_that_breaks_in_the_middle_of_a_pass_fails_it_and_the_context_goes_on) {
  const auto x = at::tensor({1.0, 10.0}).to(first).requires_grad_();
  context pass(a);
  const auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
  std::optional<simulated::broken_device> broken;
  const auto hook = y.register_hook([&](const at::Tensor&) { broken.emplace(); });
  backward_options kept;
  kept.keep_graph = true;
  BOOST_CHECK_EXCEPTION(pass.backward({y.sum()}, kept).get(), error, [](const error& failed) {
    const std::string text = failed.what();
    return text.find(
             "backward on node 'a' failed: gradients for node 'b', which come from simulated:0, could not be made ready to "
             "leave: the "
             "simulated device is broken") != std::string::npos;
  });
  y.remove_hook(hook);
  broken.reset();
  pass.backward({y.sum()}).get();
  BOOST_TEST(same(pass.gradient(x), at::tensor({2.0, 3.0})));
  BOOST_TEST(troupe::services_of(a).departures->stage.used().in_use == 0U);
}

BOOST_AUTO_TEST_CASE(memory_that_runs_out_for_the_copies_of_a_call_names_the_call) {
  const auto with_gaps = at::ones({4, 4}, at::device(first)).slice(1, 0, 2);  // is copied on the device first
  std::string text;
  try {
    const simulated::scarce_memory none(0);
    a.peer("b").call("where", {with_gaps}).get();
  } catch (const error& failed) {
    text = failed.what();
  }
  BOOST_TEST((contains(text, "'where'") && contains(text, "could not be copied to the host: simulated:0 has no memory of")),
             text);
  a.peer("b").call("where", {with_gaps}).get();
}

// The memory of the devices runs out at the first tensor of a call and its pass, then at the second, and so on.
BOOST_AUTO_TEST_CASE(memory_that_runs_out_anywhere_is_one_error_and_the_context_goes_on) {
  const auto x = at::tensor({1.0, 10.0}).to(first).requires_grad_();
  const auto round = [&](context& pass) {
    const auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
    pass.backward({(y * y).sum()}).get();
  };
  simulated::synchronize();
  const auto bytes = simulated::used_bytes();
  {
    context pass(a);
    round(pass);  // starts the couriers
  }
  const new_threads more;
  std::set<std::string> owners;
  for (int tensors = 0;; ++tensors) {
    {
      context pass(a);
      bool ends = false;
      try {
        const simulated::scarce_memory few(tensors);
        round(pass);
        ends = !few.refused();
        BOOST_TEST(ends, "nobody was told that the memory for tensor " << tensors << " was refused");
      } catch (const error& failed) {
        const std::string text = failed.what();
        BOOST_TEST((failed.code() == errc::function_failed && contains(text, "simulated:0 has no memory of")), text);
        owners.insert(text.substr(0, text.find(": simulated:0")));
      } catch (const c10::OutOfMemoryError&) {  // of an operator of this thread
      }
      if (ends) break;
      round(pass);
      BOOST_TEST(same(pass.gradient(x), at::tensor({8.0, 180.0})), "after " << tensors << " tensors");
    }
    simulated::synchronize();
    BOOST_TEST(becomes_true([&] { return simulated::used_bytes() == bytes; }), simulated::used_bytes()
                                                                                 << " bytes, not " << bytes);
  }
  const std::set<std::string> expected{
    "backward on node 'a' failed in MulBackward0",
    "backward on node 'a' failed: received gradient[0] could not be copied to simulated:0",
    "backward on node 'b' failed in MulBackward0",
    "backward on node 'b' failed: received gradient[0] could not be copied to simulated:0",
    "call of 'times_weight' on node 'b' failed",
    "call of 'times_weight' on node 'b' failed: argument[0] could not be copied to simulated:0",
    "the result of 'times_weight' from node 'b'[0] could not be copied to simulated:0",
  };
  BOOST_TEST(owners == expected, boost::test_tools::per_element());
  BOOST_TEST(more.count() == 0U);
  BOOST_TEST(troupe::services_of(a).departures->stage.used().in_use == 0U);
}

BOOST_AUTO_TEST_CASE(a_device_that_the_receiver_lacks_is_an_error_that_names_what_it_has) {
  call_request request;
  request.what = requests::function{"where"};
  request.deadline_ns = std::chrono::nanoseconds(10s).count();
  request.payload.tensors = {at::ones({1})};
  request.payload.devices = {simulated::device(9)};
  caf::scoped_actor self{a.system()};
  std::string text;
  self->request(troupe::services_of(a).directory.gateway(a.peer("b").id()), 10s, request)
    .receive([](const call_result&) {}, [&](const caf::error& reason) { text = to_exception(reason).what(); });
  for (const auto* part : {"argument[0]", "simulated:9", "cpu, simulated:0, simulated:1"})
    BOOST_TEST(text.find(part) != std::string::npos, "'" << text << "' lacks '" << part << "'");
}

BOOST_AUTO_TEST_CASE(what_has_no_elements_is_refused_before_anything_is_sent) {
  BOOST_CHECK_EXCEPTION(a.peer("b").call("where", {at::empty({2}, at::device(at::kMeta))}), error, [](const error& refused) {
    return refused.code() == errc::unsupported_tensor && std::string(refused.what()).find("meta") != std::string::npos;
  });
}

// With settings::pass_workers, the pass of another node uses the device workers of this node.
BOOST_AUTO_TEST_CASE(a_function_that_keeps_its_thread_busy_runs_on_the_worker_of_its_device) {
  auto options = named("with_workers");
  options.pass_workers = 1;
  node there(options);
  a.join("127.0.0.1", there.port());
  std::atomic<int> on_its_worker{0};
  const auto weight = at::tensor({2.0, 3.0}).to(first).requires_grad_();
  there.functions().add("branches", [&](call_arguments& arguments) {
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 4; ++i) {
      parts.push_back(arguments.tensors.at(0) * weight);
      watch(parts.back(), [&] {
        on_its_worker += thread_name() == "troupe.device" ? 1 : 0;
        at::linspace(0, 1, 300'000).exp();
      });
    }
    return call_reply{{at::stack(parts).sum(0)}};
  });
  const auto until = std::chrono::steady_clock::now() + 10s;
  for (int passes = 0; passes < 3 || (on_its_worker == 0 && std::chrono::steady_clock::now() < until); ++passes) {
    context within(a);
    const auto x = at::tensor({1.0, 10.0}).to(first).requires_grad_();
    within.backward({a.peer("with_workers").call("branches", {x}).get().tensors.at(0).sum()}).get();
    BOOST_TEST(same(within.gradient(x), at::tensor({8.0, 12.0})), "pass " << passes);
  }
  BOOST_TEST(on_its_worker > 0);
}

BOOST_AUTO_TEST_SUITE_END()
