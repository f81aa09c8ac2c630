// SPDX-License-Identifier: BSD-3-Clause
// Tests that need separate processes: the owner of a module is killed, random numbers, and anomaly mode.
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/remote_module.hpp>
#include <troupe/troupe.hpp>

#include "actors/linear_cluster.hpp"
#include "actors/loopback_nodes.hpp"
#include "actors/process_cluster.hpp"
#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(separate_processes)

namespace {

using troupe::test::layer;
using troupe::test::loopback_settings;

/// A module that multiplies its input by a weight and drops each element with probability one half. The random generator of the
/// process decides which elements are dropped.
class dropping : public troupe::module {
 public:
  troupe::call_reply call(const std::string&, troupe::call_arguments& arguments) override {
    return {{torch::dropout(arguments.tensor(0) * weight_, 0.5, true)}};
  }
  troupe::named_tensors parameters() override { return {{"weight", weight_}}; }

 private:
  at::Tensor weight_ = torch::ones({16}).requires_grad_();
};

void add_functions(troupe::node& here) {
  troupe::add_module_type(here, "dropping", [](const troupe::attributes&) { return std::make_shared<dropping>(); });
  troupe::add_module_type(here, "linear",
                          [](const troupe::attributes& values) { return std::make_shared<troupe::test::linear>(values); });
  static std::vector<troupe::remote_module> kept;  // never destroyed: the process is killed
  here.functions().add("make", [](troupe::call_arguments& arguments) {
    kept.push_back(arguments.here.peer("home").create("linear", layer(3, 2, 1)));
    return troupe::call_reply{};
  });
  here.functions().add("take", [](troupe::call_arguments& arguments) {
    kept.push_back(troupe::remote_module::accept(arguments.here, troupe::get<std::string>(arguments.values, "module")));
    return troupe::call_reply{};
  });
  here.functions().add("outer", [](troupe::call_arguments& arguments) {
    return troupe::call_reply{arguments.here.peer("c").call("inner", arguments.tensors).get().tensors};
  });
  here.functions().add(
    "inner", [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0).sqrt() * 0}}; });
}

void be_process(const std::string& name, std::uint16_t port) {
  troupe::test::be_node("separate processes", loopback_settings(name), port, add_functions);
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct shared_nursery {
  shared_nursery() { processes = &own; }
  troupe::test::nursery own{be_process};
  static inline troupe::test::nursery* processes = nullptr;
};

/// A driver and two other processes.
struct trio : troupe::test::process_cluster {
  explicit trio(std::vector<std::string> names)
      : process_cluster(*shared_nursery::processes, loopback_settings("driver"), std::move(names)) {
    const auto missing = meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
  }
};

/// A model in two processes, and a driver in a third. The driver has no parameters and makes random inputs.
struct dropping_run {
  trio cluster{{"b", "c"}};
  std::vector<troupe::remote_module> stages{cluster.driver().peer("b").create("dropping"),
                                            cluster.driver().peer("c").create("dropping")};
  troupe::optimizer optimizer{cluster.driver(), {"sgd", {{"lr", 0.1}}}, stages};

  std::vector<double> losses_of(int steps) {
    std::vector<double> losses;
    for (int step = 0; step < steps; ++step) {
      troupe::context pass(cluster.driver());
      auto hidden = torch::rand({16});
      for (const auto& each : stages) hidden = each.call("forward", {hidden}).get().tensor(0);
      const auto loss = hidden.square().sum();
      pass.backward({loss}).get();
      optimizer.step(pass);
      losses.push_back(loss.item<double>());
    }
    return losses;
  }
};

/// Asks node `home` until it holds `objects` objects. False if it does not within ten seconds.
bool comes_to_hold(const troupe::peer& home, std::uint64_t objects) {
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (home.status(10s).objects != objects)
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

BOOST_AUTO_TEST_CASE(what_a_process_owned_on_another_goes_when_it_is_killed) {
  trio cluster({"home", "owner"});
  const auto home = cluster.driver().peer("home");
  const auto owner = cluster.driver().peer("owner");
  const auto shared = home.create("linear", layer(3, 2, 1));
  std::optional<troupe::remote_module> given = home.create("linear", layer(3, 2, 2));
  owner.call("make").get();
  for (const auto& each : {shared, *given}) owner.call("take", {}, {{"module", each.lend(owner)}}).get();
  given->lend(owner);  // `owner` never accepts this loan
  given.reset();
  troupe::test::after_others(home).get();  // is handled after the message that `given` sent at its end
  BOOST_TEST(home.status().objects == 3u);
  cluster.signal("owner", SIGKILL);
  BOOST_TEST(comes_to_hold(home, 1));
  BOOST_TEST(shared.parameters().size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_draws_in_every_process_what_one_without_interruption_would) {  // OM-4
  troupe::test::temporary_folder folder;
  std::vector<double> expected;
  {
    dropping_run whole;
    whole.losses_of(3);
    whole.optimizer.save(folder.path(), {});
    expected = whole.losses_of(3);
  }
  dropping_run resumed;  // its processes are new, and so are their random generators
  resumed.optimizer.load(folder.path());
  BOOST_TEST(resumed.losses_of(3) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(anomaly_mode_reaches_other_processes_and_their_traces_come_back) {
  trio cluster({"b", "c"});
  const torch::autograd::DetectAnomalyGuard detect;
  auto x = torch::zeros({2}, torch::kDouble).requires_grad_();
  troupe::context pass(cluster.driver());
  auto y = cluster.driver().peer("b").call("outer", {x}).get().tensors.at(0);
  BOOST_CHECK_EXCEPTION(pass.backward({y.sum()}).get(), troupe::error, [](const troupe::error& e) {
    const std::string text = e.what();
    for (const auto* part : {"backward on node 'c' failed in SqrtBackward0", "returned nan values in its 0th output",
                             "It was made where node 'driver' called 'outer' on node 'b', which called 'inner' on node 'c'.",
                             "Traceback of forward call that caused the error", "frame #0"})
      BOOST_TEST(troupe::test::contains(text, part), "no '" << part << "' in: " << text.substr(0, 2000));
    return true;
  });
}

BOOST_AUTO_TEST_SUITE_END()
