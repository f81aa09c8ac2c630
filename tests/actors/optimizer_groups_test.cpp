// SPDX-License-Identifier: BSD-3-Clause
// Parameter groups: each with a rate and options, one norm, one checkpoint.
#include <troupe/actors/parameter_group.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <torch/torch.h>
#include <boost/test/unit_test.hpp>

#include <actors/linear_cluster.hpp>
#include <actors/same_tensors.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/optimizer.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

const attributes slow{{"lr", 0.001}, {"weight_decay", 0.0}};

/// Weights in the first group, biases and a scale of the driver in the second one.
struct grouped_model {
  linear_cluster cluster;
  std::vector<remote_module> layers{cluster.driver.peer("stage1").create("linear", layer(3, 4, 1)),
                                    cluster.driver.peer("stage2").create("linear", layer(4, 3, 2)),
                                    cluster.driver.self().create("linear", layer(3, 2, 3))};
  at::Tensor scale = at::ones({2}).requires_grad_();
  std::optional<optimizer> steps;

  explicit grouped_model(attributes of_second = slow) {
    parameter_group weights;
    parameter_group others{.local = {{"scale", scale}}, .options = std::move(of_second)};
    for (const auto& each : layers) {
      weights.modules.push_back(each.select({"weight"}));
      others.modules.push_back(each.select({"bias"}));
    }
    steps.emplace(cluster.driver, std::vector{weights, others}, optimizer_settings{"adamw", {{"lr", 0.1}}});
  }
  std::optional<double> step(int number, std::optional<double> clip = {}) {
    context pass(cluster.driver);
    torch::manual_seed(static_cast<std::uint64_t>(number));
    auto hidden = at::randn({5, 3});
    for (const auto& each : layers) hidden = each.call("forward", {hidden}).get().tensor(0);
    pass.backward({(hidden * scale).square().sum()}).get();
    return steps->step(pass, clip);
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& each : layers)
      for (const auto& [name, parameter] : each.parameters()) all.push_back(parameter);
    all.push_back(scale.detach().clone());
    return all;
  }
};

/// The same in one process.
struct single_model {
  std::vector<linear> layers{linear(layer(3, 4, 1)), linear(layer(4, 3, 2)), linear(layer(3, 2, 3))};
  at::Tensor scale = at::ones({2}).requires_grad_();
  torch::optim::AdamW steps;

  single_model() : steps(groups(), torch::optim::AdamWOptions(0.1)) {}

  std::vector<torch::optim::OptimizerParamGroup> groups() const {
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> others;
    for (const auto& each : layers) {
      weights.push_back(each.weight);
      others.push_back(each.bias);
    }
    others.push_back(scale);
    std::vector<torch::optim::OptimizerParamGroup> all;
    all.emplace_back(weights);
    all.emplace_back(others, std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(0.001).weight_decay(0)));
    return all;
  }
  /// Returns the norm. The squares are summed as OM-1 says: group by group.
  double step(int number, std::optional<double> clip = {}) {
    steps.zero_grad();
    torch::manual_seed(static_cast<std::uint64_t>(number));
    auto hidden = at::randn({5, 3});
    for (const auto& each : layers) hidden = each.forward(hidden);
    (hidden * scale).square().sum().backward();
    double total = 0;
    for (const auto& group : steps.param_groups())
      for (const auto& each : group.params()) total += each.grad().to(at::kDouble).square().sum().item<double>();
    const double norm = std::sqrt(total);
    if (clip)
      for (auto& group : steps.param_groups())
        for (auto& each : group.params()) each.mutable_grad() = each.grad().mul(std::min(1.0, *clip / (norm + 1e-6)));
    steps.step();
    return norm;
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& each : layers) all.insert(all.end(), {each.weight.detach(), each.bias.detach()});
    all.push_back(scale.detach());
    return all;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(parameter_groups)

BOOST_AUTO_TEST_CASE(have_the_bits_of_libtorchs_groups_and_one_norm) {  // OM-8
  grouped_model spread;
  single_model single;
  for (int number = 0; number < 3; ++number) {
    const auto norm = spread.step(number, 0.5);
    BOOST_TEST((norm.value() == single.step(number, 0.5)));
    require_same(spread.parameters(), single.parameters());
  }
}

BOOST_AUTO_TEST_CASE(have_rates_of_their_own) {  // OM-8
  grouped_model spread;
  single_model single;
  const auto rate_of = [&](std::size_t group) -> torch::optim::OptimizerOptions& {
    return single.steps.param_groups()[group].options();
  };
  spread.steps->set_learning_rate(0.02, 1);
  rate_of(1).set_lr(0.02);
  spread.step(0);
  single.step(0);
  require_same(spread.parameters(), single.parameters());
  spread.steps->set_learning_rate(0.003);
  for (const std::size_t group : {0, 1}) rate_of(group).set_lr(0.003);
  spread.step(1);
  single.step(1);
  require_same(spread.parameters(), single.parameters());
  BOOST_TEST(contains(text_of<error>([&] { spread.steps->set_learning_rate(0.1, 2); }), "no parameter group 2; there are 2"));
}

BOOST_AUTO_TEST_CASE(have_one_checkpoint) {  // OM-4, OM-8
  const temporary_folder folder;
  std::vector<at::Tensor> expected;
  {
    grouped_model saving;
    saving.step(0);
    saving.steps->set_learning_rate(0.02, 1);
    saving.steps->save(folder.path(), {});
    saving.step(1);
    expected = saving.parameters();
  }
  grouped_model loading;
  loading.steps->load(folder.path());
  loading.step(1);
  require_same(loading.parameters(), expected);
  // Another division into groups is refused.
  optimizer in_one(loading.cluster.driver, {"adamw", {}}, loading.layers, {{"scale", loading.scale}});
  BOOST_TEST(!text_of<error>([&] { in_one.load(folder.path()); }).empty());
  parameter_group all{.local = {{"scale", loading.scale}}};
  for (const auto* name : {"weight", "bias"})
    for (const auto& each : loading.layers) all.modules.push_back(each.select({name}));
  optimizer of_one_group(loading.cluster.driver, {all, {}, {}}, {"adamw", {}});
  BOOST_TEST(contains(text_of<error>([&] { of_one_group.load(folder.path()); }), "2 parameter groups, this optimizer 3"));
  optimizer all_in_first(loading.cluster.driver, {all, {}}, {"adamw", {}});
  BOOST_TEST(
    contains(text_of<error>([&] { all_in_first.load(folder.path()); }), "is in parameter group 1 there and in 0 here"));
}

BOOST_AUTO_TEST_CASE(that_can_not_be_are_refused) {
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(3, 2, 1));
  const auto refusal = [&](const std::vector<parameter_group>& groups, const optimizer_settings& settings = {"adamw", {}}) {
    return text_of<error>([&] { optimizer refused(cluster.driver, groups, settings); });
  };
  const auto w = at::ones({2}).requires_grad_();
  BOOST_TEST(contains(refusal({}), "give at least one"));
  BOOST_TEST(
    contains(refusal({{.local = {{"w", w}}}, {.local = {{"v", w}}}}), "parameter 'v' is in the parameter groups 0 and 1"));
  BOOST_TEST(contains(refusal({{.modules = {block}}, {.modules = {block.select({"bias"})}}}),
                      "'1/bias' is in the parameter groups 0 and 1"));
  BOOST_TEST(contains(refusal({{.modules = {block}, .options = {{"rate", 1.0}}}}), "'adamw' has no option 'rate'"));
  BOOST_TEST(contains(refusal({{.modules = {block}, .options = {{"lr", -1.0}}}}), "Invalid learning rate: -1"));
  BOOST_TEST(contains(refusal({{.modules = {block}, .options = {{"initial_accumulator_value", 1.0}}}}, {"adagrad", {}}),
                      "is one for all parameter groups"));
  cluster.settle();
  BOOST_TEST(cluster.stage1.objects().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
