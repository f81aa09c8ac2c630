// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/remote_module.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <actors/linear_cluster.hpp>
#include <actors/loopback_nodes.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/steady_clock.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A module that sets `gone` when it is destroyed.
struct noted_module : module {
  std::promise<void>& gone;
  explicit noted_module(std::promise<void>& at_end) : gone(at_end) {}
  ~noted_module() override { gone.set_value(); }
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return {}; }
};

/// A module that notes which of its methods were called.
struct noting_module : module {
  std::mutex mutex;
  std::string called;
  call_reply call(const std::string& method, call_arguments&) override {
    const std::lock_guard lock(mutex);
    called += method + " ";
    return {};
  }
  named_tensors parameters() override { return {}; }
};

struct module_with_a_buffer : module {
  at::Tensor mean = at::zeros({3});
  at::Tensor spread = at::ones({1}).expand({4});
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return {}; }
  named_tensors buffers() override { return {{"mean", mean}, {"spread", spread}}; }
};

errc code_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const error& caught) {
    return caught.code();
  }
  return errc::none;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(remote_modules)

BOOST_AUTO_TEST_CASE(a_method_runs_where_the_module_lives_with_the_users_values) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  BOOST_TEST(block.where().name() == "stage1");
  BOOST_TEST((block.id().node == cluster.stage1.id()));
  const auto input = at::randn({2, 4});
  const auto reply = block.call("forward", {input}, {{"mine", 7}}).get();
  BOOST_TEST(at::equal(reply.tensors.at(0), linear(layer(4, 3, 5)).forward(input)));
  BOOST_TEST((reply.values == attributes{{"mine", 7}}));
}

// RM-5, OS-5
BOOST_AUTO_TEST_CASE(a_change_that_comes_late_does_not_take_the_place_of_a_later_one) {
  linear_cluster cluster([](settings& with) {
    if (with.name == "driver") with.deadline = std::chrono::milliseconds(500);
    with.workers = 2;  // with one worker the late change would come first
  });
  struct slow_module : linear {
    using linear::linear;
    named_tensors parameters() override {
      if (++asked == 1) {
        held.set_value();
        released.wait();
      }
      return linear::parameters();
    }
    void train(bool on) override { modes += on ? "on " : "off "; }
    std::atomic<int> asked{0};
    std::promise<void> held;
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    std::string modes;
  };
  std::shared_ptr<slow_module> there;
  add_module_type(cluster.stage1, "slow",
                  [&](const attributes& values) { return there = std::make_shared<slow_module>(values); });
  const auto block = cluster.driver.peer("stage1").create("slow", layer(2, 2, 1));
  const auto old = at::ones({2, 2});
  BOOST_CHECK_EXCEPTION(block.set_parameters({{"weight", old}}), error,
                        [](const error& late) { return late.code() == errc::deadline_passed; });
  there->held.get_future().wait();
  const remote_module copy = block;
  copy.set_parameters({{"weight", old * 2}});
  there->release.set_value();
  BOOST_TEST(becomes_idle(cluster.stage1));
  BOOST_TEST(at::equal(there->weight.detach(), old * 2));
  block.train(false);
  block.set_parameters({{"bias", at::zeros({2})}});
  block.train();
  BOOST_TEST(there->modes == "off on ");
  BOOST_TEST(at::equal(there->bias.detach(), at::zeros({2})));
}

// OG-3: the elements of a large tensor leave ahead of its call. The message of a call with many small tensors leaves in fragments.
BOOST_AUTO_TEST_CASE(calls_of_a_module_arrive_in_their_order_however_large_they_are) {
  for (const bool by_tcp : {false, true}) {
    settings options;
    options.shared_memory = !by_tcp;
    options.direct_memory = !by_tcp;
    options.name = "driver";
    node driver(options);
    options.name = "stage";
    node stage(options);
    const auto kept = std::make_shared<noting_module>();
    add_module_type(stage, "noting", [kept](const attributes&) { return kept; });
    driver.join("127.0.0.1", stage.port());
    const std::vector<at::Tensor> one(1, at::ones({16 << 20}, at::kByte));
    std::vector<at::Tensor> many;
    for (int i = 0; i < 600; ++i) many.push_back(at::ones({32 << 10}, at::kByte));
    std::vector<future<call_reply>> replies;
    std::string expected;
    {
      const auto block = driver.peer("stage").create("noting");
      for (int i = 0; i < 3; ++i) {
        replies.push_back(block.call("large", one));
        replies.push_back(block.call("small"));
        replies.push_back(block.call("many", many));
        replies.push_back(block.call("small"));
        expected += "large small many small ";
      }
    }  // the drop of the module is a small call too
    for (const auto& each : replies) each.get();
    BOOST_TEST(kept->called == expected, "by TCP: " << by_tcp);
  }
}

BOOST_AUTO_TEST_CASE(parameters_are_copies_and_are_set_by_name) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  auto first = block.parameters();
  BOOST_REQUIRE(first.size() == 2u);
  BOOST_TEST(first[0].first == "weight");
  BOOST_TEST(first[1].first == "bias");
  BOOST_TEST(at::equal(first[0].second, linear(layer(4, 3, 5)).weight));
  first[0].second.zero_();
  BOOST_TEST(at::equal(block.parameters()[0].second, linear(layer(4, 3, 5)).weight));
  block.set_parameters({{"bias", at::ones({3})}});
  BOOST_TEST(at::equal(block.parameters()[1].second, at::ones({3})));
  BOOST_TEST(at::equal(block.parameters()[0].second, linear(layer(4, 3, 5)).weight));
}

BOOST_AUTO_TEST_CASE(buffers_are_copies_and_are_set_by_name) {
  linear_cluster cluster;
  const auto kept = std::make_shared<module_with_a_buffer>();
  add_module_type(cluster.stage1, "buffered", [kept](const attributes&) { return kept; });
  const auto block = cluster.driver.peer("stage1").create("buffered");
  auto first = block.buffers();
  BOOST_REQUIRE(first.size() == 2u);
  BOOST_TEST(first[0].first == "mean");
  first[0].second.fill_(9);
  BOOST_TEST(at::equal(kept->mean, at::zeros({3})));
  block.set_buffers({{"mean", at::ones({3})}});
  BOOST_TEST(at::equal(kept->mean, at::ones({3})));
  BOOST_TEST(at::equal(block.select({}).buffers().at(0).second, at::ones({3})));
  BOOST_TEST(contains(text_of<error>([&] {
                        block.set_buffers({{"mean", at::ones({4})}});
                      }),
                      "buffer 'mean' is [3] Float, the value given [4] Float; nothing was written"));
  BOOST_TEST(
    contains(text_of<error>([&] {
               block.set_buffers({{"mean", at::zeros({3})}, {"spread", at::zeros({4})}});
             }),
             "buffer 'spread' is an expanded tensor, which can't be overwritten; clone it there; nothing was written"));
  BOOST_TEST(at::equal(kept->mean, at::ones({3})));
  BOOST_TEST(cluster.driver.peer("stage1").create("linear", layer(4, 3, 5)).buffers().empty());
}

BOOST_AUTO_TEST_CASE(parameters_that_do_not_fit_are_refused_and_none_is_written) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  const auto refusal = [&](const named_tensors& values) {
    const auto text = text_of<error>([&] { block.set_parameters(values); });
    BOOST_TEST(contains(text, "stage1"));
    BOOST_TEST(contains(text, "nothing was written"));
    BOOST_TEST(at::equal(block.parameters()[1].second, linear(layer(4, 3, 5)).bias));
    return text;
  };
  const std::pair<std::string, at::Tensor> good{"bias", at::ones({3})};
  BOOST_TEST(contains(refusal({good, {"weight", at::ones({3, 5})}}),
                      "parameter 'weight' is [3, 4] Float, the value given [3, 5] Float"));
  BOOST_TEST(contains(refusal({good, {"weight", at::ones({3, 4}, at::kDouble)}}), "the value given [3, 4] Double"));
  BOOST_TEST(contains(refusal({good, {"weight", {}}}), "the value given undefined"));
  BOOST_TEST(contains(refusal({good, {"wieght", at::ones({3, 4})}}), "no parameter 'wieght'"));
}

BOOST_AUTO_TEST_CASE(gradients_of_a_context_come_by_name_and_undefined_where_there_is_none) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  const auto other = cluster.driver.peer("stage1").create("linear", layer(4, 3, 6));
  const auto input = at::randn({2, 4});
  linear same(layer(4, 3, 5));
  same.forward(input).sum().backward();

  context pass(cluster.driver);
  const auto out = block.call("forward", {input}).get().tensors.at(0);
  pass.backward({out.sum()}).get();
  const auto gradients = block.gradients(pass);
  BOOST_TEST(gradients.at(0).first == "weight");
  BOOST_TEST(at::equal(gradients.at(0).second, same.weight.grad()));
  BOOST_TEST(at::equal(gradients.at(1).second, same.bias.grad()));
  for (const auto& [name, gradient] : other.gradients(pass)) BOOST_TEST(!gradient.defined());
}

BOOST_AUTO_TEST_CASE(gradients_are_asked_for_on_the_thread_of_the_context) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  context pass(cluster.driver);
  const auto elsewhere = std::async(std::launch::async, [&] { return code_of([&] { block.gradients(pass); }); });
  BOOST_TEST((const_cast<std::future<errc>&>(elsewhere).get() == errc::misuse));
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_named_with_what_is) {
  linear_cluster cluster;
  const auto stage1 = cluster.driver.peer("stage1");
  const auto make = [&] { stage1.create("convolution"); };
  BOOST_TEST((code_of(make) == errc::unknown_function));
  BOOST_TEST(contains(text_of<error>(make), "node 'stage1' has no module type 'convolution'; it has 'linear'"));
  BOOST_TEST(contains(text_of<error>([&] { stage1.create("linear", {{"in", 1}}); }), "seed"));
  const auto block = stage1.create("linear", layer(4, 3, 5));
  const auto call = [&] { block.call("backward").get(); };
  BOOST_TEST((code_of(call) == errc::unknown_function));
  BOOST_TEST(contains(text_of<error>(call), "no method 'backward'; it has forward"));
}

BOOST_AUTO_TEST_CASE(the_last_handle_drops_the_module) {  // RM-1
  linear_cluster cluster;
  std::optional<remote_module> first = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  std::optional<remote_module> second = first;
  first.reset();
  cluster.settle();
  BOOST_TEST(cluster.stage1.objects().size() == 1u);
  second->parameters();
  {
    context pass(cluster.driver);
    second.reset();
  }
  cluster.settle();
  BOOST_TEST(cluster.stage1.objects().size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_module_that_is_made_after_its_deadline_does_not_stay) {
  linear_cluster cluster([](settings& with) {
    if (with.name == "driver") with.deadline = std::chrono::milliseconds(500);
  });
  std::promise<void> gone;
  add_module_type(cluster.stage1, "slow", [&](const attributes&) {
    while (support::steady_ns() <= support::call_scope::current_bounds().until_ns) std::this_thread::yield();
    return std::make_shared<noted_module>(gone);
  });
  BOOST_CHECK_EXCEPTION(cluster.driver.peer("stage1").create("slow"), error,
                        [](const error& late) { return late.code() == errc::deadline_passed; });
  BOOST_TEST((gone.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready));
  BOOST_TEST(cluster.stage1.objects().size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_reference_kept_on_another_node_keeps_the_module_alive) {  // RM-1
  linear_cluster cluster;
  cluster.stage2.join("127.0.0.1", cluster.stage1.port());
  std::optional<remote_module> kept;
  cluster.stage2.functions().add("keep", [&](call_arguments& arguments) {
    kept = remote_module::accept(arguments.here, get<std::string>(arguments.values, "module"));
    return call_reply{};
  });
  std::optional<remote_module> block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  const auto reference = block->lend(cluster.driver.peer("stage2"));
  block.reset();
  cluster.settle();
  BOOST_TEST(cluster.stage1.objects().size() == 1u);
  cluster.driver.peer("stage2").call("keep", {}, {{"module", reference}}).get();
  BOOST_TEST(at::equal(kept->parameters().at(0).second, linear(layer(4, 3, 5)).weight));
  BOOST_TEST(contains(text_of<error>([&] { remote_module::accept(cluster.stage2, reference); }), "accepted before"));
  kept.reset();
  after_others(cluster.stage2.peer("stage1")).get();
  BOOST_TEST(cluster.stage1.objects().size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_reference_is_taken_by_the_node_it_is_for) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  const auto reference = block.lend(cluster.driver.peer("stage2"));
  BOOST_TEST(contains(text_of<error>([&] { remote_module::accept(cluster.driver, reference); }), "lent to another node"));
  for (const auto* none : {"", "stage1", "stage1/1", "/1/2", "stage1/x/1", "stage1/1/"})
    BOOST_TEST(contains(text_of<error>([&] { remote_module::accept(cluster.driver, none); }), "not a reference"));
}

BOOST_AUTO_TEST_CASE(a_parameter_by_reference_gets_its_gradient_where_it_lives) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  const auto only_bias = block.select({"bias"});
  const auto input = at::randn({2, 3});
  BOOST_TEST(!block.parameter("bias").requires_grad());  // outside any context
  context pass(cluster.driver);
  const auto bias = block.parameter("bias");
  BOOST_TEST(at::equal(bias.detach(), linear(layer(4, 3, 5)).bias));
  pass.backward({(bias * input).sum()}).get();
  BOOST_TEST(at::equal(block.gradients(pass).at(1).second, input.sum(0)));
  const auto selected = only_bias.gradients(pass);
  BOOST_REQUIRE(selected.size() == 1u);
  BOOST_TEST(selected[0].first == "bias");
  BOOST_TEST(at::equal(selected[0].second, input.sum(0)));
  BOOST_TEST(contains(text_of<error>([&] { block.parameter("b"); }), "no parameter 'b'; it has 'weight', 'bias'"));
  BOOST_TEST(contains(text_of<error>([&] { block.select({"b"}); }), "no parameter 'b'"));
}

BOOST_AUTO_TEST_CASE(a_module_of_the_node_itself_is_used_the_same_way) {
  linear_cluster cluster;
  {
    const auto block = cluster.driver.self().create("linear", layer(4, 3, 5));
    const auto input = at::randn({2, 4});
    BOOST_TEST(at::equal(block.call("forward", {input}).get().tensors.at(0), linear(layer(4, 3, 5)).forward(input)));
    BOOST_TEST(cluster.driver.objects().size() == 1u);
  }
  after_others(cluster.driver.self()).get();
  BOOST_TEST(cluster.driver.objects().size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_handle_may_outlive_peer_and_node) {  // RM-2
  std::optional<remote_module> first;
  std::optional<remote_module> second;
  {
    node stage(named_settings("stage"));
    add_module_type(stage, "linear", [](const attributes& values) { return std::make_shared<linear>(values); });
    node driver(named_settings("driver"));
    driver.join("127.0.0.1", stage.port());
    first = driver.peer("stage").create("linear", layer(4, 3, 5));
    second = driver.peer("stage").create("linear", layer(4, 3, 5));
    stage.stop();
    BOOST_CHECK_NO_THROW(first.reset());
  }
  BOOST_CHECK_NO_THROW(second.reset());
}

BOOST_AUTO_TEST_CASE(what_a_node_owned_goes_when_it_leaves) {
  std::promise<void> gone;
  node stage(named_settings("stage"));
  add_module_type(stage, "noted", [&](const attributes&) { return std::make_shared<noted_module>(gone); });
  std::optional<remote_module> block;
  {
    node driver(named_settings("driver"));
    driver.join("127.0.0.1", stage.port());
    block = driver.peer("stage").create("noted");
  }
  BOOST_TEST((gone.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(a_continuation_which_can_not_wait_changes_nothing) {  // RM-4
  linear_cluster cluster;
  const auto stage = cluster.driver.peer("stage1");
  const auto block = stage.create("linear", layer(3, 2, 1));
  const auto before = block.parameters();
  std::promise<std::vector<std::string>> told;
  after_others(stage).then([&](const future<call_reply>&) {
    const auto refusal = [](auto&& run) { return text_of<error>(run); };
    told.set_value({
      refusal([&] {
        block.set_parameters({{"bias", at::zeros({2})}});
      }),
      refusal([&] { stage.create("linear", layer(3, 2, 2)); }),
      refusal([&] { block.select({"bias"}); }),
      refusal([&] {
        optimizer steps(cluster.driver, {"sgd", {}}, {block});
      }),
    });
  });
  for (const auto& text : told.get_future().get()) BOOST_TEST(contains(text, "a continuation waits for a result"), text);
  cluster.settle();
  BOOST_TEST(at::equal(block.parameters()[1].second, before[1].second));
  BOOST_TEST(cluster.stage1.objects().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
