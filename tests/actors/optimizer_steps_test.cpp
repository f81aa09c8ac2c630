// SPDX-License-Identifier: BSD-3-Clause
// Steps of which some node does not say that it has made them. tests/actors/returning_peers_test.cpp has nodes that freeze.
#include <troupe/actors/optimizer_steps.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/record_function.h>
#include <boost/test/unit_test.hpp>

#include <actors/linear_cluster.hpp>
#include <actors/loopback_nodes.hpp>
#include <actors/same_tensors.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/optimizer_shards.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A linear layer that runs a function whenever its buffers are asked for: its node's local_optimizer does so with its lock held.
struct watched : linear {
  using linear::linear;
  named_tensors buffers() override {
    if (asked) asked();
    return {};
  }
  static inline std::function<void()> asked;
};

const optimizer_settings fast_adamw{"adamw", {{"lr", 0.1}}};

/// One layer on each of the two stages, and a scale of the driver.
struct spread_model {
  linear_cluster cluster{[](settings& with) {
    if (with.name == "driver") with.deadline = std::chrono::milliseconds(1500);
  }};
  std::vector<remote_module> modules;
  at::Tensor scale = at::ones({2}).requires_grad_();
  std::optional<optimizer> steps;

  explicit spread_model(bool with_stage1 = true) {
    watched::asked = nullptr;
    add_module_type(cluster.stage2, "watched", [](const attributes& values) { return std::make_shared<watched>(values); });
    if (with_stage1) modules.push_back(cluster.driver.peer("stage1").create("linear", layer(3, 3, 1)));
    modules.push_back(cluster.driver.peer("stage2").create("watched", layer(3, 2, 2)));
    steps.emplace(cluster.driver, fast_adamw, modules, with_stage1 ? named_tensors{{"scale", scale}} : named_tensors{});
  }
  ~spread_model() { watched::asked = nullptr; }

  /// Runs a pass in the context.
  void backward(context& pass, int number) {
    auto hidden = at::randn({4, 3}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(number)));
    for (const auto& one : modules) hidden = one.call("forward", {hidden}).get().tensor(0);
    pass.backward({(hidden * scale).square().sum()}).get();
  }
  void step(int number) {
    context pass(cluster.driver);
    backward(pass, number);
    steps->step(pass);
  }
  void gather(int number) {
    context pass(cluster.driver);
    backward(pass, number);
    steps->gather(pass);
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all{scale.detach().clone()};
    for (const auto& one : modules)
      for (const auto& [name, parameter] : one.parameters()) all.push_back(parameter);
    return all;
  }

  /// The optimizer's shard on stage2: the object that was made after the module.
  std::shared_ptr<objects::local_optimizer> shard() {
    return cluster.stage2.objects().find_optimizer({cluster.stage2.id(), modules.back().id().number + 1});
  }
  /// Keeps a step from being made on stage2 while `meanwhile` runs, and waits then until the step `number` is made.
  void late_on_stage2(std::uint64_t number, const std::function<void()>& meanwhile) {
    std::promise<void> held;
    std::promise<void> released;
    const auto there = shard();
    watched::asked = [&, first = true]() mutable {
      if (!std::exchange(first, false)) return;
      held.set_value();
      released.get_future().wait();
    };
    std::jthread holding([&] { there->estimated_bytes(); });
    held.get_future().wait();
    meanwhile();
    released.set_value();
    holding.join();
    BOOST_TEST_REQUIRE(becomes_true([&] { return there->has_made(number); }));
    watched::asked = nullptr;
  }
};

/// Holds the first step of a parameter of the shape until the object ends.
class held_step {
 public:
  explicit held_step(std::vector<std::int64_t> of) {
    shape = std::move(of);
    release = {};
    released = release.get_future().share();
    is_first = true;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(begin).needsInputs(true));
  }
  ~held_step() {
    release.set_value();
    at::removeCallback(handle_);
  }
  held_step(const held_step&) = delete;
  held_step& operator=(const held_step&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& what) {
    const auto inputs = what.inputs();
    if (std::string(what.name()) == "aten::addcdiv_" && inputs[0].toTensor().sizes() == at::IntArrayRef(shape) &&
        is_first.exchange(false))
      released.wait();
    return nullptr;
  }

  static inline std::vector<std::int64_t> shape;
  static inline std::promise<void> release;
  static inline std::shared_future<void> released;
  static inline std::atomic<bool> is_first;
  at::CallbackHandle handle_;
};

/// The code and the text of the unsure_step that `run` throws.
std::pair<errc, std::string> unsure(const std::function<void()>& run) {
  try {
    run();
  } catch (const unsure_step& thrown) {
    return {thrown.code(), thrown.what()};
  }
  BOOST_FAIL("no unsure_step");
  return {};
}

/// The parameters after undisturbed steps.
std::vector<at::Tensor> after_steps(int count) {
  spread_model model;
  for (int number = 0; number < count; ++number) model.step(number);
  return model.parameters();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(unsure_steps)

BOOST_AUTO_TEST_CASE(the_same_step_again_is_made_once_on_each_node) {  // OM-7, LO-7
  spread_model model;
  std::optional<context> pass(std::in_place, model.cluster.driver);
  model.backward(*pass, 0);
  model.late_on_stage2(1, [&] {
    const auto [code, text] = unsure([&] { model.steps->step(*pass); });
    BOOST_TEST((code == errc::deadline_passed));
    BOOST_TEST(contains(text, "on node 'stage2' failed"), text);
    BOOST_TEST(contains(text, "step again with the same context, or load a checkpoint"), text);
  });
  model.steps->step(*pass);
  pass.reset();
  require_same(model.parameters(), after_steps(1));
}

BOOST_AUTO_TEST_CASE(the_same_clipped_step_again_returns_the_first_norm) {  // OM-7
  spread_model model;
  std::optional<context> pass(std::in_place, model.cluster.driver);
  model.backward(*pass, 0);
  {
    const held_step held({2, 3});  // the weight on stage2
    unsure([&] { model.steps->step(*pass, 0.1); });
  }
  BOOST_TEST_REQUIRE(becomes_true([&] { return model.shard()->has_made(1); }));
  const auto norm = model.steps->step(*pass, 0.1);
  pass.reset();
  spread_model other;
  std::optional<context> undisturbed(std::in_place, other.cluster.driver);
  other.backward(*undisturbed, 0);
  BOOST_TEST((norm.has_value() && norm == other.steps->step(*undisturbed, 0.1)));
  undisturbed.reset();
  require_same(model.parameters(), other.parameters());
}

BOOST_AUTO_TEST_CASE(the_next_step_goes_on_where_every_node_has_made_the_one_before) {  // OM-7, OX-1
  spread_model model;
  model.late_on_stage2(1, [&] { unsure([&] { model.step(0); }); });
  model.step(1);
  require_same(model.parameters(), after_steps(2));
}

BOOST_AUTO_TEST_CASE(a_rate_that_is_set_after_an_unsure_step_counts_for_the_next_step) {  // OM-7
  spread_model model;
  std::optional<context> pass(std::in_place, model.cluster.driver);
  model.backward(*pass, 0);
  model.late_on_stage2(1, [&] { unsure([&] { model.steps->step(*pass); }); });
  model.steps->set_learning_rate(0.01);
  model.steps->step(*pass);
  pass.reset();
  model.step(1);
  spread_model other;
  other.step(0);
  other.steps->set_learning_rate(0.01);
  other.step(1);
  require_same(model.parameters(), other.parameters());
}

BOOST_AUTO_TEST_CASE(a_gathered_step_is_made_where_it_is_missing_before_more_is_gathered) {  // OM-5, OM-7
  spread_model model;
  model.gather(0);
  model.late_on_stage2(2, [&] {  // change 1 is the round
    const auto [code, text] = unsure([&] { model.steps->step(); });
    BOOST_TEST(contains(text, "step again, or load a checkpoint"), text);
  });
  model.gather(1);
  model.steps->step();
  require_same(model.parameters(), after_steps(2));
  BOOST_TEST(contains(text_of<error>([&] { model.steps->step(); }), "no context was gathered since the last step"));
}

BOOST_AUTO_TEST_CASE(a_half_made_step_is_told_until_a_checkpoint_is_loaded) {  // OM-7, OX-1
  const temporary_folder folder;
  spread_model model;
  model.step(0);
  model.steps->save(folder.path(), {});
  const auto files = folder.files();
  model.shard()->has_made(2, true);  // stage2 refuses the next step
  const auto [code, text] = unsure([&] { model.step(1); });
  BOOST_TEST(contains(text, "given up"), text);
  const auto refused = [&](const std::string& who, const std::function<void()>& run) {
    const auto [why, words] = unsure(run);
    BOOST_TEST((why == errc::misuse));
    for (const auto& expected :
         {who + ": the last step was made on 'driver', 'stage1', but not on 'stage2'", std::string("load a checkpoint")})
      BOOST_TEST(contains(words, expected), words);
  };
  refused("optimizer::step", [&] { model.step(1); });
  refused("optimizer::gather", [&] { model.gather(1); });
  refused("optimizer::save", [&] { model.steps->save(folder.path(), {}); });
  BOOST_TEST((folder.files() == files));
  model.steps->load(folder.path());
  require_same(model.parameters(), after_steps(1));
  model.step(1);
  require_same(model.parameters(), after_steps(2));
}

BOOST_AUTO_TEST_CASE(a_step_that_no_node_has_made_leaves_nothing) {  // OX-2
  spread_model model(false);
  spread_model other(false);
  model.shard()->has_made(1, true);
  model.steps->set_learning_rate(0.5);
  unsure([&] { model.step(0); });
  require_same(model.parameters(), other.parameters());
  model.step(1);
  other.steps->set_learning_rate(0.5);
  other.step(1);
  require_same(model.parameters(), other.parameters());
}

BOOST_AUTO_TEST_CASE(a_pass_after_an_unsure_step_makes_another_step_of_the_same_context) {  // OM-7
  spread_model model;
  model.shard()->has_made(1, true);
  context pass(model.cluster.driver);
  model.backward(pass, 0);
  unsure([&] { model.steps->step(pass); });
  model.backward(pass, 1);  // stage2 has the sum of both passes now
  const auto text = unsure([&] { model.steps->step(pass); }).second;
  BOOST_TEST(contains(text, "but not on 'stage2' ("), text);
  BOOST_TEST(contains(text, "no later pass has completed in it"), text);
  BOOST_TEST(!contains(text, "not known"), text);
}

BOOST_AUTO_TEST_CASE(a_half_made_load_is_told_until_a_load_succeeds) {  // OM-7
  const temporary_folder folder;
  spread_model model;
  model.step(0);
  model.steps->save(folder.path(), {});
  model.step(1);
  int asked = 0;
  watched::asked = [&] {
    if (++asked == 3) throw std::runtime_error("not now");  // 1: the part comes, 2: it is checked, 3: it is taken over
  };
  const auto [code, text] = unsure([&] { model.steps->load(folder.path()); });
  BOOST_TEST(contains(text, "not now"), text);
  watched::asked = nullptr;
  BOOST_TEST(contains(unsure([&] { model.step(1); }).second,
                      "optimizer::step: some nodes have loaded a checkpoint and others have not"));
  BOOST_TEST(contains(unsure([&] { model.steps->save(folder.path(), {}); }).second, "load again"));
  model.steps->load(folder.path());
  model.step(1);
  require_same(model.parameters(), after_steps(2));
}

BOOST_AUTO_TEST_CASE(a_load_drops_what_was_gathered) {  // OM-5
  const temporary_folder folder;
  spread_model model;
  model.step(0);
  model.steps->save(folder.path(), {});
  model.gather(5);
  model.steps->load(folder.path());
  BOOST_TEST(contains(text_of<error>([&] { model.steps->step(); }), "no context was gathered since the last step"));
  model.gather(1);
  model.steps->step();
  require_same(model.parameters(), after_steps(2));
}

BOOST_AUTO_TEST_CASE(a_continuation_which_can_not_wait_changes_nothing) {
  spread_model model;
  model.gather(0);
  std::promise<std::string> told;
  after_others(model.cluster.driver.peer("stage1")).then([&](const future<call_reply>&) {
    told.set_value(text_of<error>([&] { model.steps->step(1.0); }) + text_of<error>([&] { model.steps->step(); }));
  });
  const auto both = told.get_future().get();
  const std::string refusal = "a continuation waits for a result";
  BOOST_TEST(both.find(refusal) != both.rfind(refusal), both);
  model.gather(0);
  BOOST_TEST(!model.shard()->has_made(2));  // the gather has made no step that was refused
  model.steps->step(1.0);
}

BOOST_AUTO_TEST_SUITE_END()
