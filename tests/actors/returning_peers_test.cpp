// SPDX-License-Identifier: BSD-3-Clause
// Peers that are unreachable for a while and come back: what fails, what stays, and what both nodes drop.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "actors/linear_cluster.hpp"
#include "actors/loopback_nodes.hpp"
#include "actors/process_cluster.hpp"
#include "actors/temporary_folder.hpp"

using namespace std::chrono_literals;

namespace {

troupe::settings settings_of(const std::string& name, std::chrono::milliseconds forget_after = 60s) {
  auto result = troupe::test::loopback_settings(name);
  result.heartbeat = 50ms;
  result.forget_after = forget_after;
  return result;
}

void be_process(const std::string& name, std::uint16_t port) {
  troupe::test::be_node("returning peers", settings_of(name), port, [](troupe::node& here) {
    troupe::add_module_type(here, "linear",
                            [](const troupe::attributes& values) { return std::make_shared<troupe::test::linear>(values); });
    here.functions().add("twice",
                         [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * 2}}; });
  });
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct shared_nursery {
  shared_nursery() { processes = &own; }
  troupe::test::nursery own{be_process};
  static inline troupe::test::nursery* processes = nullptr;
};

/// A driver and the nodes "b" and "c" in other processes. `news` has what the driver's handlers heard.
struct returning : troupe::test::process_cluster {
  explicit returning(const troupe::settings& of_driver = settings_of("driver"))
      : process_cluster(*shared_nursery::processes, of_driver, {"b", "c"}) {
    const auto missing = meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
    driver().on_peer_down([this](const std::string& name, const std::string&) { hear("down " + name); });
    driver().on_peer_up([this](const std::string& name) { hear("up " + name); });
    driver().on_peer_gone([this](const std::string& name, const std::string&) { hear("gone " + name); });
  }
  ~returning() {
    driver().on_peer_down({});
    driver().on_peer_up({});
    driver().on_peer_gone({});
  }

  void hear(std::string text) {
    const std::lock_guard lock(mutex);
    news.push_back(std::move(text));
  }
  std::vector<std::string> heard() {
    const std::lock_guard lock(mutex);
    return news;
  }

  /// Freezes "b" until it is unreachable, runs `meanwhile`, and lets "b" go on until it is up again.
  template <class F>
  void while_away(F meanwhile) {
    troupe::test::freeze(pid("b"));
    BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] { return !is_up("b"); }));
    meanwhile();
    signal("b", SIGCONT);
    BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] { return is_up("b"); }));
  }

  /// Whether the node comes to hold so many objects.
  bool holds(const std::string& name, std::uint64_t objects) {
    return troupe::test::becomes_true([&] { return driver().peer(name).status().objects == objects; });
  }

  at::Tensor twice(const std::string& name, const at::Tensor& x) {
    return driver().peer(name).call("twice", {x}).get().tensors.at(0);
  }

  std::mutex mutex;
  std::vector<std::string> news;
};

/// The driver forgets sooner than the others do.
struct forgetting : returning {
  forgetting() : returning(settings_of("driver", 1s)) {}
};

troupe::attributes layer() { return troupe::test::layer(3, 2, 1); }

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

BOOST_FIXTURE_TEST_SUITE(returning_peers, returning)

BOOST_AUTO_TEST_CASE(a_call_under_way_fails_and_later_calls_work) {
  std::optional<troupe::future<troupe::call_reply>> call;
  troupe::test::freeze(pid("b"));
  call = driver().peer("b").call("twice", {torch::ones({2})});
  BOOST_CHECK_EXCEPTION(call->get(), troupe::error, [](const troupe::error& e) { return e.code() == troupe::errc::peer_down; });
  signal("b", SIGCONT);
  BOOST_TEST(at::equal(driver().peer("b", 10s).call("twice", {torch::ones({2})}).get().tensors.at(0), torch::full({2}, 2.0)));
  BOOST_TEST(troupe::test::becomes_true([&] { return heard() == std::vector<std::string>{"down b", "up b"}; }));
}

BOOST_AUTO_TEST_CASE(a_question_to_a_frozen_node_says_how_long_it_waited) {
  const auto b = driver().peer("b");
  troupe::test::freeze(pid("b"));
  BOOST_CHECK_EXCEPTION(b.status(100ms), troupe::error, [](const troupe::error& e) {
    return e.code() == troupe::errc::deadline_passed &&
           std::string(e.what()) == "the status of node 'b': no answer within 0.1 s";
  });
  signal("b", SIGCONT);
}

BOOST_AUTO_TEST_CASE(handles_and_their_objects_stay) {
  const auto module = driver().peer("b").create("linear", layer());
  while_away([] {});
  BOOST_TEST(module.parameters().size() == 2u);
  BOOST_TEST(driver().peer("b").status().objects == 1u);
}

BOOST_AUTO_TEST_CASE(objects_whose_handles_ended_meanwhile_are_dropped) {
  std::optional kept = driver().peer("b").create("linear", layer());
  std::optional ended = driver().peer("b").create("linear", layer());
  while_away([&] { ended.reset(); });
  BOOST_TEST(holds("b", 1));
  BOOST_TEST(kept->parameters().size() == 2u);
  kept.reset();
  BOOST_TEST(holds("b", 0));
}

BOOST_AUTO_TEST_CASE(a_context_that_was_released_meanwhile_is_released_there_too) {
  std::optional<troupe::context> pass(std::in_place, driver());
  auto y = twice("b", torch::ones({2}, torch::requires_grad()));
  while_away([&] { pass.reset(); });
  BOOST_TEST(left_on("b") == "");
  BOOST_TEST(left_on_driver() == "");
}

BOOST_AUTO_TEST_CASE(a_context_goes_on_where_no_pass_was_under_way) {
  troupe::context pass(driver());
  auto x = torch::ones({2}, torch::requires_grad());
  auto y = twice("c", twice("b", x));
  while_away([] {});
  pass.backward({y.sum()}).get();
  BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 4.0)));
}

BOOST_AUTO_TEST_CASE(a_pass_with_an_unreachable_node_fails_and_the_context_is_released_everywhere) {
  {
    troupe::context pass(driver());
    auto y = twice("c", twice("b", torch::ones({2}, torch::requires_grad())));
    while_away([&] {
      BOOST_CHECK_EXCEPTION(pass.backward({y.sum()}).get(), troupe::error,
                            [](const troupe::error& e) { return e.code() == troupe::errc::peer_down; });
    });
  }
  for (const auto* name : {"b", "c"}) BOOST_TEST(left_on(name) == "");
  BOOST_TEST(left_on_driver() == "");
}

BOOST_AUTO_TEST_CASE(a_node_that_ended_is_gone_and_its_successor_is_met) {
  const auto module = driver().peer("b").create("linear", layer());
  replace("b");
  BOOST_TEST(troupe::test::becomes_true([&] { return heard() == std::vector<std::string>{"down b", "gone b", "up b"}; }));
  BOOST_TEST(at::equal(twice("b", torch::ones({2})), torch::full({2}, 2.0)));
  BOOST_CHECK_THROW(module.parameters(), troupe::error);
}

/// Steps of an optimizer over a layer on "b" and one on "c", with the rate 1: a step subtracts the gradients.
struct stepping : returning {
  using returning::returning;

  std::vector<troupe::remote_module> layers{driver().peer("b").create("linear", layer()),
                                            driver().peer("c").create("linear", troupe::test::layer(2, 2, 2))};
  troupe::optimizer steps{driver(), {"sgd", {{"lr", 1.0}}}, layers};
  troupe::test::temporary_folder folder;

  void backward(troupe::context& pass) {
    pass
      .backward(
        {layers[1].call("forward", {layers[0].call("forward", {torch::ones({1, 3})}).get().tensor(0)}).get().tensor(0).sum()})
      .get();
  }
  /// What the parameters are after a step with the gradients of the context.
  std::vector<at::Tensor> stepped(const troupe::context& pass) {
    auto result = parameters();
    std::size_t i = 0;
    for (const auto& each : layers)
      for (const auto& [name, gradient] : each.gradients(pass)) result[i++] -= gradient;
    return result;
  }
  std::vector<at::Tensor> parameters() {
    std::vector<at::Tensor> all;
    for (const auto& each : layers)
      for (const auto& [name, parameter] : each.parameters()) all.push_back(parameter);
    return all;
  }
  bool are(const std::vector<at::Tensor>& expected) {
    const auto now = parameters();
    return std::equal(now.begin(), now.end(), expected.begin(), [](const auto& a, const auto& b) { return at::equal(a, b); });
  }
  std::string unsure(const std::function<void()>& run) {
    try {
      run();
    } catch (const troupe::unsure_step& thrown) {
      BOOST_TEST((thrown.code() == troupe::errc::peer_down || thrown.code() == troupe::errc::misuse ||
                  thrown.code() == troupe::errc::unknown_function));
      return thrown.what();
    }
    BOOST_ERROR("no unsure_step");
    return {};
  }
};

/// The driver forgets sooner than the others do.
struct forgetting_steps : stepping {
  forgetting_steps() : stepping(settings_of("driver", 1s)) {}
};

BOOST_FIXTURE_TEST_CASE(a_step_whose_message_was_lost_is_made_once_when_it_is_tried_again, stepping) {  // OM-7
  troupe::context pass(driver());
  backward(pass);
  const auto expected = stepped(pass);
  while_away([&] {
    BOOST_TEST(troupe::test::contains(unsure([&] { steps.step(pass); }), "step again with the same context"));
    BOOST_TEST(troupe::test::contains(unsure([&] { steps.step(pass); }), "on node 'b' failed"));
  });
  steps.step(pass);
  BOOST_TEST(are(expected));
}

BOOST_FIXTURE_TEST_CASE(a_step_under_way_to_a_node_that_froze_is_made_once_when_it_is_tried_again, stepping) {  // OM-7
  troupe::context pass(driver());
  backward(pass);
  const auto expected = stepped(pass);
  troupe::test::freeze(pid("b"));
  unsure([&] { steps.step(pass); });
  signal("b", SIGCONT);
  BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] { return is_up("b"); }));
  steps.step(pass);
  BOOST_TEST(are(expected));
}

BOOST_FIXTURE_TEST_CASE(half_a_step_is_told_when_its_context_is_gone_until_a_load, stepping) {  // OM-7
  steps.save(folder.path(), {});
  const auto saved = parameters();
  std::optional<troupe::context> pass(std::in_place, driver());
  backward(*pass);
  while_away([&] {
    unsure([&] { steps.step(*pass); });
    pass.reset();
    BOOST_TEST(troupe::test::contains(unsure([&] { steps.save(folder.path(), {}); }),
                                      "optimizer::save: whether every node has made the last step"));
  });
  pass.emplace(driver());
  backward(*pass);
  BOOST_TEST(troupe::test::contains(unsure([&] { steps.step(*pass); }), "made on 'driver', 'c', but not on 'b'"));
  BOOST_TEST(troupe::test::contains(unsure([&] { steps.save(folder.path(), {}); }), "load a checkpoint"));
  pass.reset();
  steps.load(folder.path());
  BOOST_TEST(are(saved));
  pass.emplace(driver());
  backward(*pass);
  const auto expected = stepped(*pass);
  steps.step(*pass);
  BOOST_TEST(are(expected));
}

BOOST_FIXTURE_TEST_CASE(a_gathered_step_is_made_on_the_node_that_missed_it_before_the_next_gather, stepping) {  // OM-7
  std::optional<troupe::context> pass(std::in_place, driver());
  backward(*pass);
  const auto expected = stepped(*pass);
  steps.gather(*pass);
  pass.reset();
  while_away([&] { unsure([&] { steps.step(); }); });
  pass.emplace(driver());
  backward(*pass);
  steps.gather(*pass);
  BOOST_TEST(are(expected));
}

BOOST_FIXTURE_TEST_CASE(a_node_that_was_started_again_has_lost_its_part_of_the_optimizer, stepping) {  // OM-7
  std::optional<troupe::context> pass(std::in_place, driver());
  backward(*pass);
  steps.save(folder.path(), {});
  const auto saved = parameters();
  replace("b");
  BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] {
    return heard() == std::vector<std::string>{"down b", "gone b", "up b"};
  }));
  const auto is_told = [&](const std::function<void()>& run) {
    BOOST_TEST(troupe::test::contains(unsure(run), "make the modules and the optimizer anew, then load a checkpoint"));
  };
  is_told([&] { steps.step(*pass); });
  pass.reset();
  is_told([&] { steps.save(folder.path(), {}); });
  is_told([&] { steps.load(folder.path()); });
  // Modules and the optimizer are made anew.
  layers[0] = driver().peer("b").create("linear", troupe::test::layer(3, 2, 9));
  troupe::optimizer anew(driver(), {"sgd", {{"lr", 1.0}}}, layers);
  anew.load(folder.path());
  BOOST_TEST(are(saved));
}

BOOST_FIXTURE_TEST_CASE(a_node_that_was_away_for_too_long_has_lost_its_part_of_the_optimizer, forgetting_steps) {  // OM-7
  steps.save(folder.path(), {});
  troupe::test::freeze(pid("b"));
  BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] { return heard() == std::vector<std::string>{"down b", "gone b"}; }));
  signal("b", SIGCONT);
  BOOST_TEST_REQUIRE(holds("b", 0));
  BOOST_TEST(troupe::test::contains(unsure([&] { steps.load(folder.path()); }),
                                    "make the modules and the optimizer anew, then load a checkpoint"));
}

// Both processes live. The driver drops what it held of "b", and "b" starts over when it hears so.
BOOST_FIXTURE_TEST_CASE(objects_and_contexts_of_a_peer_that_was_away_for_too_long_are_dropped_on_both_sides, forgetting) {
  const auto module = driver().peer("b").create("linear", layer());
  std::optional<troupe::context> pass(std::in_place, driver());
  auto y = twice("b", torch::ones({2}, torch::requires_grad()));
  troupe::test::freeze(pid("b"));
  BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] { return heard() == std::vector<std::string>{"down b", "gone b"}; }));
  signal("b", SIGCONT);
  BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] { return heard().size() == 3; }));
  BOOST_TEST(heard().back() == "up b");
  const auto names_b = [](const troupe::error& e) { return std::string(e.what()).find("node 'b'") != std::string::npos; };
  BOOST_CHECK_EXCEPTION(pass->backward({y.sum()}).get(), troupe::error, names_b);
  pass.reset();
  BOOST_CHECK_EXCEPTION(module.parameters(), troupe::error, names_b);
  BOOST_TEST(holds("b", 0));
  BOOST_TEST(left_on("b") == "");
  BOOST_TEST(left_on_driver() == "");
  // While "b" starts over it may hold the driver for unreachable once more.
  BOOST_TEST(troupe::test::becomes_true([&] {
    try {
      return driver().peer("b").create("linear", layer()).parameters().size() == 2u;
    } catch (const troupe::error&) {
      return false;
    }
  }));
  BOOST_TEST(at::equal(twice("b", torch::ones({2})), torch::full({2}, 2.0)));
}

BOOST_AUTO_TEST_SUITE_END()
