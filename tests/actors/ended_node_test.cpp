// SPDX-License-Identifier: BSD-3-Clause
// What peers, contexts, modules and optimizers say when their node has stopped, and when it is destroyed.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <actors/deterministic_system.hpp>
#include <actors/linear_cluster.hpp>
#include <actors/loopback_nodes.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/troupe.hpp>

namespace ended_nodes {

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;
namespace data = boost::unit_test::data;

namespace {

constexpr auto hang = 10s;

/// A node with one of each thing that it hands out, and a node on which the modules live.
struct ending_node {
  ending_node() {
    add_module_type(other, "linear", [](const attributes& values) { return std::make_shared<linear>(values); });
    add_module_type(*here, "linear", [](const attributes& values) { return std::make_shared<linear>(values); });
    other.functions().add("twice", [](call_arguments& arguments) { return call_reply{{arguments.tensor(0) * 2}}; });
    other.functions().add("wait", [this](call_arguments&) {
      ended.wait_for(hang);
      return call_reply{};
    });
    here->join("127.0.0.1", other.port());
    there.emplace(here->peer("other"));
    mine.emplace(here->self());
    remote.emplace(there->create("linear", layer(2, 2, 1)));
    local.emplace(mine->create("linear", layer(2, 2, 2)));
    steps.emplace(*here, optimizer_settings{}, std::vector{*remote, *local}, named_tensors{{"scale", scale}});
    alone.emplace(*here, optimizer_settings{}, std::vector<remote_module>{}, named_tensors{{"scale", scale}});
    pass = std::make_unique<context>(*here);
    loss = local->call("forward", {remote->call("forward", {at::ones({1, 2})}).get().tensor(0)}).get().tensor(0).sum() * scale;
    pass->backward({loss}, {.keep_graph = true}).get(hang);
  }

  void end(bool destroyed) {
    if (destroyed)
      here.reset();
    else
      here->stop();
    over.set_value();
  }

  std::promise<void> over;
  const std::shared_future<void> ended = over.get_future().share();
  node other{loopback_settings("other")};
  std::unique_ptr<node> here = std::make_unique<node>(loopback_settings("here"));
  const at::Tensor scale = at::ones({}).requires_grad_();
  const temporary_folder folder;
  std::optional<peer> there;
  std::optional<peer> mine;
  std::optional<remote_module> remote;
  std::optional<remote_module> local;
  std::optional<optimizer> steps;
  std::optional<optimizer> alone;  // without another node
  std::unique_ptr<context> pass;
  at::Tensor loss;
};

void stops(const std::string& which, const std::function<void()>& what) {
  BOOST_TEST_CONTEXT(which) {
    BOOST_CHECK_EXCEPTION(what(), error, [](const error& said) {
      BOOST_TEST_MESSAGE(said.what());
      return said.code() == errc::stopping;
    });
  }
}

}  // namespace

BOOST_TEST_DECORATOR(*boost::unit_test::timeout(120))
BOOST_DATA_TEST_CASE(what_a_node_handed_out_says_stopping, data::make({false, true}), destroyed) {
  ending_node all;
  auto& steps = *all.steps;
  const auto path = all.folder.path();
  steps.save(path, {});
  const auto graph = join_graphs(*all.there, {at::ones({2})});
  const auto answered = all.there->call("twice", {at::ones({2})});
  const auto waiting = all.there->call("wait");
  int continued = 0;
  waiting.then([&](const future<call_reply>& failed) {
    ++continued;
    stops("a call in a continuation", [&] { failed.get(); });
    stops("a call of a continuation", [&] {
      const auto later = all.there->call("wait");
      if (later.ready()) later.get();
    });
  });
  BOOST_TEST(becomes_true([&] { return answered.ready(); }));
  const auto scale = all.scale.detach().clone();
  all.end(destroyed);

  for (auto* each : {&*all.there, &*all.mine}) {
    stops("call", [&] { each->call("twice", {at::ones({2})}).get(hang); });
    stops("actor", [&] { each->actor("any"); });
    stops("send_capacity", [&] { each->send_capacity().get(hang); });
    stops("status", [&] { each->status(); });
    stops("create", [&] { each->create("linear", layer(2, 2, 1)); });
    stops("join_graphs", [&] { join_graphs(*each, {at::ones({2})}); });
    stops("create_script", [&] { create_script(*each, torch::jit::Module("nothing")); });
    stops("with_devices", [&] { each->with_devices({}).call("twice").get(hang); });
    stops("a new handle", [&] { remote_module(*each, all.remote->id()); });
    if (destroyed)
      stops("here", [&] { each->here(); });
    else
      BOOST_TEST(&each->here() == all.here.get());
    BOOST_TEST(!each->name().empty());
    BOOST_TEST(each->id().value != 0u);
  }
  for (auto* each : {&*all.remote, &*all.local}) {
    stops("module: call", [&] { each->call("forward", {at::ones({1, 2})}).get(hang); });
    stops("module: lend", [&] { each->lend(*all.there); });
    stops("module: select", [&] { each->select({"weight"}); });
    stops("module: parameters", [&] { each->parameters(); });
    stops("module: parameter", [&] { each->parameter("weight"); });
    stops("module: set_parameters", [&] { each->set_parameters({{"weight", at::ones({2, 2})}}); });
    stops("module: buffers", [&] { each->buffers(); });
    stops("module: set_buffers", [&] { each->set_buffers({{"weight", at::ones({2, 2})}}); });
    stops("module: gradients", [&] { each->gradients(*all.pass); });
    stops("module: with_devices", [&] { each->with_devices({}).parameters(); });
    BOOST_TEST(each->where().id().value == each->id().node.value);
  }
  stops("context: backward", [&] { all.pass->backward({all.loss}).get(hang); });
  stops("context: gradients", [&] { all.pass->gradients(); });
  stops("context: gradient", [&] { all.pass->gradient(all.scale); });
  stops("context: running", [&] { all.pass->running(); });
  stops("context: has_completed_pass", [&] { all.pass->has_completed_pass(); });
  BOOST_TEST(!!all.pass->id());
  BOOST_TEST((context::current() == all.pass->id()));
  for (auto* each : {&steps, &*all.alone}) {
    stops("optimizer: step", [&] { each->step(*all.pass); });
    stops("optimizer: clipped step", [&] { each->step(*all.pass, 1); });
    stops("optimizer: gather", [&] { each->gather(*all.pass); });
    const auto own = each == &steps ? path : path + "/alone";
    stops("optimizer: expect_disk_space", [&] { each->expect_disk_space(own); });
    stops("optimizer: save", [&] { each->save(own, {}); });
    each->set_learning_rate(0.5);  // takes effect with the next step
  }
  stops("optimizer: load", [&] { steps.load(path); });
  BOOST_TEST(at::equal(all.scale.detach(), scale));
  if (!destroyed) {
    all.pass.reset();
    stops("a new context", [&] { context{*all.here}; });
    stops("a new optimizer", [&] { optimizer(*all.here, {}, {*all.remote}); });
    stops("accept", [&] { remote_module::accept(*all.here, "other/1/1"); });
    stops("peer", [&] { all.here->peer("other"); });
    stops("status of the node", [&] { all.here->status(); });
    BOOST_TEST(all.here->self().name() == "here");
    BOOST_TEST(all.here->name() == "here");
    BOOST_TEST(all.here->name_of(all.other.id()).size() > 0u);
    BOOST_TEST(all.here->peers().empty());
    all.here->trace("late", "test", 0, 1);
    all.here->set_tracing(true);
    all.here->set_profiling(true);
    all.here->set_profiling(false);
    all.here->on_peer_up([](const auto&) {});
  }

  stops("a call that was under way", [&] { waiting.get(hang); });
  BOOST_TEST(continued == 1);
  waiting.then([&](const auto& failed) { stops("then", [&] { failed.get(); }); });
  BOOST_CHECK_NO_THROW(answered.get(hang));
  static_cast<void>(graph);
  // What was handed out ends after the node, in any order: the fixture's members do.
}

BOOST_AUTO_TEST_CASE(gathered_gradients_are_not_stepped_after_the_end) {
  ending_node all;
  all.alone->gather(*all.pass);
  all.end(true);
  const auto scale = all.scale.detach().clone();
  stops("gathered step", [&] { all.alone->step(); });
  BOOST_TEST(at::equal(all.scale.detach(), scale));
}

BOOST_AUTO_TEST_CASE(a_node_may_end_while_threads_use_what_it_handed_out) {  // LK-2
  ending_node all;
  std::vector<std::future<errc>> users;
  const auto until_it_stops = [](const std::function<void()>& what) {
    return std::async(std::launch::async, [what] {
      for (;;) try {
          what();
        } catch (const error& said) {
          return said.code();
        }
    });
  };
  auto& there = *all.there;
  std::promise<void> started;
  users.push_back(until_it_stops([&, first = true]() mutable {
    there.call("twice", {at::ones({2})}).get();
    if (std::exchange(first, false)) started.set_value();
  }));
  users.push_back(until_it_stops([&] { there.status(); }));
  users.push_back(until_it_stops([&] { there.send_capacity().get(); }));
  users.push_back(until_it_stops([&] { all.mine->status(); }));
  users.push_back(until_it_stops([copy = *all.remote] { copy.parameters(); }));
  started.get_future().wait();
  all.here.reset();
  all.over.set_value();
  for (auto& each : users) {
    const auto code = each.get();
    BOOST_TEST((code == errc::stopping), static_cast<int>(code));
  }
}

BOOST_AUTO_TEST_CASE(what_a_node_handed_out_that_was_never_made_says_stopping) {  // LK-3
  auto options = loopback_settings("here");
  std::optional<peer> kept;
  const auto make = [&] {
    options.prepare = [&](node& here) { kept.emplace(here.self()); };
    BOOST_CHECK_THROW(node{options}, error);
    BOOST_TEST_REQUIRE(kept.has_value());
    stops("here", [&] { kept->here(); });
    stops("call", [&] { kept->call("any").get(hang); });
  };
  options.join = {"127.0.0.1:1"};
  options.join_wait = 1ms;
  make();
  kept.reset();
  options.join = {};
  options.metrics = "0";
  const auto prepare = [&](node& here) {
    kept.emplace(here.self());
    throw std::runtime_error("not now");
  };
  options.prepare = prepare;
  BOOST_CHECK_THROW(node{options}, std::runtime_error);
  BOOST_TEST_REQUIRE(kept.has_value());
  stops("here", [&] { kept->here(); });
}

BOOST_AUTO_TEST_CASE(a_node_on_the_callers_system_ends_in_the_same_way) {
  deterministic_system all;
  settings options;
  options.name = "here";
  auto here = std::make_unique<node>(options, all.system);
  const auto self = here->self();
  auto pass = std::make_unique<context>(*here);
  here->stop();
  all.run();
  here.reset();
  stops("call", [&] { self.call("any").get(hang); });
  stops("status", [&] { self.status(); });
  stops("context", [&] { pass->gradients(); });
}

}  // namespace ended_nodes
