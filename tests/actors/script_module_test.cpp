// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/loaded_script.hpp>
#include <troupe/actors/script_module.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

#include <torch/script.h>

#include <actors/linear_cluster.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/optimizer.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

torch::jit::Module scaled_layer() {
  torch::jit::Module script("scaled_layer");
  script.register_parameter("weight", at::arange(6, at::kFloat).reshape({2, 3}).requires_grad_(), false);
  script.register_parameter("bias", at::ones({2}).requires_grad_(), false);
  script.define(R"(
    def forward(self, x, scale: float = 1.0):
        return torch.tanh(torch.matmul(x, self.weight.t()) + self.bias) * scale
    def both(self, x):
        return x + 1, x + 2
    def count(self, x):
        return 3
    def fail(self, x):
        assert x.dim() > 9, "not today"
        return x
  )");
  return script;
}

void with_scripts(settings& options) { options.allow_scripts = true; }

}  // namespace

BOOST_AUTO_TEST_SUITE(script_modules)

BOOST_AUTO_TEST_CASE(a_script_runs_and_trains_on_a_node_that_never_heard_of_it) {
  linear_cluster cluster(with_scripts);
  auto here = scaled_layer();
  auto there = create_script(cluster.driver.peer("stage1"), here);
  const auto input = at::randn({4, 3});
  optimizer steps{cluster.driver, {"sgd", {{"lr", 0.5}}}, {there}};

  auto expected = here.forward({input, 2.0}).toTensor();
  expected.sum().backward();
  {
    context pass(cluster.driver);
    const auto output = there.call("forward", {input}, {{"scale", 2.0}}).get().tensors.at(0);
    BOOST_TEST(at::equal(output.detach(), expected.detach()));
    pass.backward({output.sum()}).get();
    const auto gradients = there.gradients(pass);
    BOOST_TEST(gradients.size() == 2u);
    for (const auto& [name, gradient] : gradients) BOOST_TEST(at::equal(gradient, here.attr(name).toTensor().grad()), name);
    steps.step(pass);
  }
  for (const auto& [name, value] : there.parameters()) {
    const auto before = here.attr(name).toTensor();
    BOOST_TEST(at::equal(value, (before - before.grad() * 0.5).detach()), name);
  }
}

BOOST_AUTO_TEST_CASE(several_tensors_come_back_as_they_are) {
  linear_cluster cluster(with_scripts);
  const auto there = create_script(cluster.driver.peer("stage1"), scaled_layer());
  const auto reply = there.call("both", {at::zeros({2})}).get();
  BOOST_REQUIRE(reply.tensors.size() == 2u);
  BOOST_TEST(at::equal(reply.tensors[1], at::full({2}, 2.0)));
}

BOOST_AUTO_TEST_CASE(what_a_script_can_not_do_is_told_with_the_node) {
  linear_cluster cluster(with_scripts);
  const auto there = create_script(cluster.driver.peer("stage1"), scaled_layer());
  const auto x = at::zeros({2, 3});
  const auto refusal = [&](const std::string& method, attributes values = {}) {
    return text_of<error>([&] { there.call(method, {x}, values).get(); });
  };
  BOOST_TEST(contains(refusal("backward"), "no method 'backward'; it has 'forward'"));
  BOOST_TEST(contains(refusal("backward"), "stage1"));
  BOOST_TEST(contains(refusal("count"), "gives int, expected a tensor"));
  BOOST_TEST(contains(refusal("fail"), "not today"));
  BOOST_TEST(contains(refusal("forward", {{"sclae", 1.0}}), "sclae"));
  BOOST_TEST(contains(text_of<error>([&] { objects::load_script(at::zeros({3}, at::kByte)); }), "no TorchScript module"));
  BOOST_TEST(contains(text_of<error>([&] { objects::load_script(at::zeros({3})); }), "uint8"));
}

BOOST_AUTO_TEST_CASE(a_scripts_buffers_are_in_its_checkpoint_also_those_that_it_replaces) {
  temporary_folder folder;
  const auto counting = [] {
    torch::jit::Module script("counting");
    script.register_parameter("weight", at::ones({2}).requires_grad_(), false);
    script.register_buffer("seen", at::zeros({}));
    script.define("def forward(self, x):\n    self.seen = self.seen + x.sum()\n    return x * self.weight\n");
    return script;
  };
  linear_cluster cluster(with_scripts);
  const auto stage = cluster.driver.peer("stage1");
  auto saved = create_script(stage, counting());
  saved.call("forward", {at::full({2}, 3.0)}).get();
  optimizer(cluster.driver, {"sgd", {}}, {saved}).save(folder.path(), {});
  auto loaded = create_script(stage, counting());
  loaded.call("forward", {at::full({2}, 100.0)}).get();
  optimizer(cluster.driver, {"sgd", {}}, {loaded}).load(folder.path());
  const auto buffers = loaded.buffers();
  BOOST_REQUIRE(buffers.size() == 1u);
  BOOST_TEST(buffers[0].first == "seen");
  BOOST_TEST(buffers[0].second.item<float>() == 6.f);
}

/// What a script is in Python: it has a mode. Dropout in training, a running mean as a buffer.
torch::jit::Module script_with_mode() {
  torch::jit::Module script("with_mode");
  script.register_attribute("training", c10::BoolType::get(), true);
  script.register_parameter("weight", at::ones({3}).requires_grad_(), false);
  script.register_buffer("mean", at::zeros({3}));
  script.define(R"(
    def forward(self, x):
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x
            return x * self.weight * 2
        return x * self.weight + self.mean
  )");
  return script;
}

BOOST_AUTO_TEST_CASE(a_script_changes_between_training_and_evaluation) {
  linear_cluster cluster(with_scripts);
  const auto there = create_script(cluster.driver.peer("stage1"), script_with_mode());
  const auto run = [&] { return there.call("forward", {at::ones({3})}).get().tensor(0)[0].item<float>(); };
  BOOST_TEST(run() == 2.f);
  there.eval();
  BOOST_TEST(run() == 1.5f);
  BOOST_TEST(run() == 1.5f);
  there.select({"weight"}).train();
  BOOST_TEST(run() == 2.f);
  const auto refused = [](const remote_module& which) { return text_of<error>([&] { which.eval(); }); };
  BOOST_TEST(contains(refused(create_script(cluster.driver.peer("stage1"), scaled_layer())), "has no training mode"));
  auto frozen = script_with_mode();
  frozen.eval();
  BOOST_TEST(contains(refused(create_script(cluster.driver.peer("stage1"), torch::jit::freeze(frozen))), "it was frozen"));
  BOOST_TEST(
    contains(refused(cluster.driver.peer("stage1").create("linear", layer(3, 2, 1))), "has no training mode; give its class"));
}

BOOST_AUTO_TEST_CASE(a_scripts_state_goes_out_and_in_with_its_buffers) {  // RM-3
  linear_cluster cluster(with_scripts);
  const auto first = create_script(cluster.driver.peer("stage1"), script_with_mode());
  const auto second = create_script(cluster.driver.peer("stage2"), script_with_mode());
  first.set_parameters({{"weight", at::full({3}, 7.0)}});
  first.call("forward", {at::ones({3})}).get();
  const auto state = first.state();
  BOOST_REQUIRE(state.size() == 2u);
  BOOST_TEST(state[0].first == "weight");
  BOOST_TEST(state[1].first == "mean");
  BOOST_TEST(at::equal(state[1].second, at::full({3}, 0.5)));
  const auto is_there = [&] {
    const auto now = second.state();
    return at::equal(now[0].second, state[0].second) && at::equal(now[1].second, state[1].second);
  };
  const auto refusal = [&](const named_tensors& values) { return text_of<error>([&] { second.set_state(values); }); };
  BOOST_TEST(contains(refusal({state[0]}), "no value was given for buffer 'mean'; nothing was written"));
  BOOST_TEST(contains(refusal({state[0], state[1], {"more", at::ones({3})}}), "no parameter or buffer 'more'"));
  BOOST_TEST(contains(refusal({state[0], {"mean", at::ones({4})}}), "buffer 'mean' is [3] Float, the value given [4] Float"));
  BOOST_TEST(!is_there());
  second.set_state(state);
  BOOST_TEST(is_there());
  second.set_parameters({{"weight", at::zeros({3})}, {"mean", at::zeros({3})}});
  BOOST_TEST(!is_there());
  auto all = first.parameters();
  for (const auto& each : first.buffers()) all.push_back(each);
  second.set_parameters(all);
  BOOST_TEST(is_there());
}

BOOST_AUTO_TEST_SUITE_END()
