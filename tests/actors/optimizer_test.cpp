// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <actors/linear_cluster.hpp>
#include <actors/same_tensors.hpp>
#include <actors/size_limit.hpp>
#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/object_store.hpp>

using namespace troupe;
using namespace troupe::test;
namespace data = boost::unit_test::data;

namespace {

at::Tensor input_at(int step) {
  return at::randn({8, 6}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(step)));  // threads share the default one
}

/// Four layers: two on stage1 with one on stage2 between them, one on the driver, and a scale of the driver's own.
struct model {
  linear_cluster& cluster;
  std::vector<remote_module> modules;
  at::Tensor scale = at::ones({2}).requires_grad_();
  std::optional<optimizer> steps;

  explicit model(linear_cluster& where, optimizer_settings settings = {}, int seed = 1, int width = 5) : cluster(where) {
    auto& driver = cluster.driver;
    modules.push_back(driver.peer("stage1").create("linear", layer(6, width, seed)));
    modules.push_back(driver.peer("stage2").create("linear", layer(width, 4, seed + 1)));
    modules.push_back(driver.peer("stage1").create("linear", layer(4, 3, seed + 2)));
    modules.push_back(driver.self().create("linear", layer(3, 2, seed + 3)));
    steps.emplace(driver, settings, modules, named_tensors{{"scale", scale}});
  }

  at::Tensor loss(int number) { return loss(input_at(number)); }
  at::Tensor loss(at::Tensor hidden) {
    for (const auto& one : modules) hidden = one.call("forward", {hidden}).get().tensors.at(0);
    return (hidden * scale).square().sum();
  }

  std::optional<double> step(int number, std::optional<double> clip = {}) {
    context pass(cluster.driver);
    pass.backward({loss(input_at(number))}).get();
    return steps->step(pass, clip);
  }

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> result;
    for (const auto& one : modules)
      for (const auto& [name, parameter] : one.parameters()) result.push_back(parameter);
    result.push_back(scale.detach().clone());
    return result;
  }
};

/// The same model in one process, with libtorch's engine and one optimizer of its own.
struct single_process {
  std::vector<linear> layers{linear(layer(6, 5, 1)), linear(layer(5, 4, 2)), linear(layer(4, 3, 3)), linear(layer(3, 2, 4))};
  at::Tensor scale = at::ones({2}).requires_grad_();

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> result;
    for (const auto& one : layers) result.insert(result.end(), {one.weight, one.bias});
    result.push_back(scale);
    return result;
  }

  void backward(int number) {
    auto hidden = input_at(number);
    for (const auto& one : layers) hidden = one.forward(hidden);
    (hidden * scale).square().sum().backward();
  }

  /// Scales the gradients as the contract of the optimizer says (OM-1). Returns the norm that they had before.
  double clip(double limit) {
    double total = 0;
    for (const auto& parameter : parameters()) total += parameter.grad().to(at::kDouble).square().sum().item<double>();
    const double norm = std::sqrt(total);
    for (auto& parameter : parameters()) parameter.mutable_grad() = parameter.grad().mul(std::min(1.0, limit / (norm + 1e-6)));
    return norm;
  }
};

/// Linear, batch norm, dropout, as a node's module. Methods: forward.
class normed : public module {
 public:
  explicit normed(std::int64_t in) : layers_(torch::nn::Linear(in, 4), torch::nn::BatchNorm1d(4), torch::nn::Dropout(0.5)) {}

  call_reply call(const std::string&, call_arguments& arguments) override { return {{layers_->forward(arguments.tensor(0))}}; }
  named_tensors parameters() override { return listed(layers_->named_parameters()); }
  named_tensors buffers() override { return listed(layers_->named_buffers()); }

 private:
  static named_tensors listed(const torch::OrderedDict<std::string, at::Tensor>& from) {
    named_tensors all;
    for (const auto& each : from) all.emplace_back(each.key(), each.value());
    return all;
  }

  torch::nn::Sequential layers_;
};

/// A stage with batch norm and dropout on each of two nodes, and a batch norm on the driver. The driver makes random inputs.
struct normed_cluster {
  linear_cluster cluster;
  std::vector<remote_module> modules;
  torch::nn::BatchNorm1d head{4};
  std::optional<optimizer> steps;

  explicit normed_cluster(const optimizer_settings& settings) {
    for (node* one : {&cluster.stage1, &cluster.stage2})
      add_module_type(*one, "normed",
                      [](const attributes& values) { return std::make_shared<normed>(get<std::int64_t>(values, "in")); });
    modules.push_back(cluster.driver.peer("stage1").create("normed", {{"in", 6}}));
    modules.push_back(cluster.driver.peer("stage2").create("normed", {{"in", 4}}));
    steps.emplace(cluster.driver, settings, modules, head_parameters(), head_buffers());
  }

  named_tensors head_parameters() const { return {{"head.weight", head->weight}, {"head.bias", head->bias}}; }
  named_tensors head_buffers() const {
    return {{"head.running_mean", head->running_mean},
            {"head.running_var", head->running_var},
            {"head.num_batches_tracked", head->num_batches_tracked}};
  }

  void step() {
    context pass(cluster.driver);
    auto hidden = at::randn({8, 6});
    for (const auto& one : modules) hidden = one.call("forward", {hidden}).get().tensor(0);
    pass.backward({head(hidden).pow(3).sum()}).get();
    steps->step(pass);
  }

  std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> result;
    const auto add = [&](const named_tensors& from) {
      for (const auto& [name, tensor] : from) result.push_back(tensor.detach().clone());
    };
    for (const auto& one : modules) {
      add(one.parameters());
      add(one.buffers());
    }
    add(head_parameters());
    add(head_buffers());
    return result;
  }
};

struct pairing {
  optimizer_settings ours;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> theirs;
};
std::ostream& operator<<(std::ostream& out, const pairing& of) { return out << of.ours.type; }
using namespace torch::optim;
const std::vector<pairing> pairings{
  {{"sgd", {{"lr", 0.01}, {"momentum", 0.9}}}, [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.01).momentum(0.9)); }},
  {{"adam", {{"lr", 0.01}}}, [](auto p) { return std::make_unique<Adam>(p, AdamOptions(0.01)); }},
  {{"adamw", {{"lr", 0.01}, {"beta2", 0.95}}},
   [](auto p) {
     return std::make_unique<AdamW>(p, AdamWOptions(0.01).betas({0.9, 0.95}));
   }},
  {{"adagrad", {{"lr", 0.05}, {"lr_decay", 0.1}}},
   [](auto p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.05).lr_decay(0.1)); }},
};

const optimizer_settings adamw{"adamw", {{"lr", 0.01}}};

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizers)

BOOST_DATA_TEST_CASE(steps_over_nodes_give_the_bits_of_one_process, data::make(pairings), both) {  // OM-1
  linear_cluster cluster;
  model spread(cluster, both.ours);
  single_process single;
  const auto theirs = both.theirs(single.parameters());
  for (int number = 0; number < 4; ++number) {
    BOOST_TEST(!spread.step(number).has_value());
    theirs->zero_grad();
    single.backward(number);
    theirs->step();
    require_same(spread.parameters(), single.parameters());
  }
}

BOOST_AUTO_TEST_CASE(clipped_steps_over_nodes_give_the_bits_of_one_process) {  // OM-1
  linear_cluster cluster;
  model spread(cluster, adamw);
  single_process single;
  AdamW theirs(single.parameters(), AdamWOptions(0.01));
  for (int number = 0; number < 4; ++number) {
    const double limit = number < 3 ? 0.1 : 1e6;
    const auto norm = spread.step(number, limit);
    theirs.zero_grad();
    single.backward(number);
    BOOST_TEST((norm.value() == single.clip(limit)));
    theirs.step();
    require_same(spread.parameters(), single.parameters());
  }
}

BOOST_AUTO_TEST_CASE(gathered_gradients_of_several_contexts_give_the_bits_of_one_process) {  // OM-5
  linear_cluster cluster;
  model spread(cluster, adamw);
  single_process single;
  AdamW theirs(single.parameters(), AdamWOptions(0.01));
  for (int number = 0; number < 2; ++number) {
    std::promise<void> first_is_in;
    const auto train = [&](int input, const std::function<void()>& before_gathering) {
      context pass(cluster.driver);
      pass.backward({spread.loss(input)}).get();
      before_gathering();
      spread.steps->gather(pass);
    };
    auto second = std::async(std::launch::async, [&] { train(20 + number, [&] { first_is_in.get_future().wait(); }); });
    train(10 + number, [] {});
    first_is_in.set_value();
    second.get();
    const auto norm = spread.steps->step(0.1);
    theirs.zero_grad();
    single.backward(10 + number);
    single.backward(20 + number);
    BOOST_TEST((norm.value() == single.clip(0.1)));
    theirs.step();
    require_same(spread.parameters(), single.parameters());
  }
}

BOOST_AUTO_TEST_CASE(a_gathered_step_that_throws_drops_what_was_gathered) {  // OM-5
  linear_cluster cluster;
  model spread(cluster, adamw);
  const auto before = spread.parameters();
  {
    context pass(cluster.driver);
    pass.backward({spread.loss(0) * std::numeric_limits<float>::infinity()}).get();
    spread.steps->gather(pass);
  }
  BOOST_TEST(contains(text_of<error>([&] { spread.steps->step(1.0); }), "is not finite; no parameter was stepped"));
  BOOST_TEST(contains(text_of<error>([&] { spread.steps->step(); }), "no context was gathered since the last step"));
  require_same(spread.parameters(), before);
}

BOOST_AUTO_TEST_CASE(a_step_without_gradients_says_what_to_do_before_anything_changes) {
  linear_cluster cluster;
  model spread(cluster, adamw);
  const auto before = spread.parameters();
  const auto refusal = [](auto&& run) { return text_of<error>(run); };
  const std::string missing =
    "no backward pass of the context has completed, so it has no gradients; run "
    "context.backward(...).get() first";
  {
    context pass(cluster.driver);
    spread.loss(0);
    BOOST_TEST(refusal([&] { spread.steps->step(pass); }) == "optimizer::step: " + missing);
    BOOST_TEST(refusal([&] { spread.steps->step(pass, 1.0); }) == "optimizer::step: " + missing);
    BOOST_TEST(refusal([&] { spread.steps->gather(pass); }) == "optimizer::gather: " + missing);
  }
  {
    context pass(cluster.driver);
    auto loss = spread.loss(0);
    loss.register_hook([](const at::Tensor&) { throw std::runtime_error("not today"); });
    BOOST_TEST(contains(refusal([&] { pass.backward({loss}).get(); }), "not today"));
    BOOST_TEST(refusal([&] { spread.steps->step(pass); }) == "optimizer::step: " + missing);
  }
  const std::string not_gathered =
    "optimizer::step: no context was gathered since the last step; call gather(context), or "
    "step(context)";
  BOOST_TEST(refusal([&] { spread.steps->step(); }) == not_gathered);
  require_same(spread.parameters(), before);
  {
    context pass(cluster.driver);
    pass.backward({spread.loss(0)}).get();
    spread.steps->gather(pass);
  }
  spread.steps->step();
  BOOST_TEST(!at::equal(spread.parameters()[0], before[0]));
  BOOST_TEST(refusal([&] { spread.steps->step(); }) == not_gathered);
}

BOOST_AUTO_TEST_CASE(parameters_that_the_context_did_not_touch_stay_as_they_are) {
  linear_cluster cluster;
  model spread(cluster, adamw);
  const auto before = spread.parameters();
  context pass(cluster.driver);
  pass.backward({spread.modules[0].call("forward", {input_at(0)}).get().tensors.at(0).sum()}).get();
  spread.steps->step(pass, 1.0);
  const auto after = spread.parameters();
  for (std::size_t i = 0; i < after.size(); ++i) BOOST_TEST(at::equal(before[i], after[i]) == (i >= 2));
}

BOOST_AUTO_TEST_CASE(gradients_that_are_not_finite_are_refused_by_name_before_anything_changes) {  // OM-2
  linear_cluster cluster;
  model spread(cluster, adamw);
  const auto before = spread.parameters();
  context pass(cluster.driver);
  pass.backward({spread.loss(input_at(0)) * std::numeric_limits<float>::infinity()}).get();
  const auto text = text_of<error>([&] { spread.steps->step(pass, 1.0); });
  BOOST_TEST(contains(text, "the gradient of parameter '0/weight' on node 'stage1' is not finite; no parameter was stepped"));
  require_same(spread.parameters(), before);
}

BOOST_AUTO_TEST_CASE(the_learning_rate_changes_on_every_node) {
  linear_cluster cluster;
  model spread(cluster, adamw);
  spread.steps->set_learning_rate(0);
  const auto before = spread.parameters();
  spread.step(0);
  require_same(spread.parameters(), before);
  spread.steps->set_learning_rate(0.1);
  spread.step(1);
  const auto after = spread.parameters();
  for (std::size_t i = 0; i < after.size(); ++i) BOOST_TEST(!at::equal(after[i], before[i]));
  BOOST_CHECK_THROW(spread.steps->set_learning_rate(-1), error);
}

BOOST_AUTO_TEST_CASE(misuse_is_refused) {
  linear_cluster cluster;
  model spread(cluster, adamw);
  std::optional<context> pass(std::in_place, cluster.driver);
  pass->backward({spread.loss(0)}).get();
  BOOST_TEST(contains(text_of<error>([&] { spread.steps->step(*pass, 0.0); }), "clip_norm is 0"));
  BOOST_TEST(contains(text_of<error>([&] { spread.steps->step(*pass, std::nan("")); }), "expected a number above 0"));
  BOOST_TEST(contains(text_of<error>([&] { spread.steps->step(0.0); }), "clip_norm is 0"));
  BOOST_TEST(contains(text_of<error>([&] {
                        optimizer refused(cluster.driver, {"lion", {}}, spread.modules);
                      }),
                      "no optimizer is called 'lion'"));
  BOOST_TEST(contains(text_of<error>([&] {
                        optimizer refused(cluster.driver, {"sgd", {{"beta1", 1}}}, spread.modules);
                      }),
                      "'sgd' has no option 'beta1'"));
}

BOOST_AUTO_TEST_CASE(an_optimizer_that_goes_is_dropped_on_every_node) {
  linear_cluster cluster;
  {
    model spread(cluster, adamw);
    BOOST_TEST(cluster.stage1.objects().size() == 3u);
    BOOST_TEST(cluster.stage2.objects().size() == 2u);
  }
  cluster.settle();
  BOOST_TEST(cluster.stage1.objects().size() == 0u);
  BOOST_TEST(cluster.stage2.objects().size() == 0u);
}

BOOST_DATA_TEST_CASE(another_run_goes_on_from_a_checkpoint_with_the_same_bits, data::make(pairings), both) {  // OM-4
  temporary_folder folder;
  std::vector<at::Tensor> expected;
  {
    linear_cluster cluster;
    model spread(cluster, both.ours);
    for (int number = 0; number < 3; ++number) spread.step(number, 1.0);
    spread.steps->save(folder / "deep/run", {{"steps", 3}, {"text", "x"}});
    for (int number = 3; number < 5; ++number) spread.step(number, 1.0);
    expected = spread.parameters();
  }
  linear_cluster cluster;
  model spread(cluster, both.ours, 50);
  spread.step(0);
  BOOST_TEST((spread.steps->load(folder / "deep/run") == attributes{{"steps", 3}, {"text", "x"}}));
  for (int number = 3; number < 5; ++number) spread.step(number, 1.0);
  require_same(spread.parameters(), expected);
}

BOOST_AUTO_TEST_CASE(an_interrupted_run_with_batch_norm_and_dropout_has_the_bits_of_one_that_was_not) {  // OM-4
  temporary_folder folder;
  const optimizer_settings settings{"adamw", {{"lr", 0.01}}};
  std::vector<at::Tensor> expected;
  {
    normed_cluster whole(settings);
    for (int number = 0; number < 3; ++number) whole.step();
    whole.steps->save(folder.path(), {});
    for (int number = 0; number < 3; ++number) whole.step();
    expected = whole.all();
  }
  normed_cluster resumed(settings);
  for (int number = 0; number < 2; ++number) resumed.step();
  torch::manual_seed(99);
  resumed.steps->load(folder.path());
  for (int number = 0; number < 3; ++number) resumed.step();
  require_same(resumed.all(), expected);
}

BOOST_AUTO_TEST_CASE(buffers_that_a_checkpoint_lacks_or_has_beyond_are_refused_before_any_node_changes) {  // OM-3
  temporary_folder folder;
  normed_cluster whole(adamw);
  whole.step();
  whole.steps->save(folder.path(), {});
  const auto before = whole.all();
  optimizer without_local(whole.cluster.driver, adamw, whole.modules, whole.head_parameters());
  BOOST_TEST(contains(text_of<error>([&] { without_local.load(folder.path()); }),
                      "it has 3 buffers, the model no buffers; 'head.running_mean' is only in the checkpoint"));
  auto more = whole.head_buffers();
  more.emplace_back("head.more", at::zeros({1}));
  optimizer with_more(whole.cluster.driver, adamw, whole.modules, whole.head_parameters(), more);
  BOOST_TEST(contains(text_of<error>([&] { with_more.load(folder.path()); }),
                      "it has 3 buffers, the model 4 buffers; 'head.more' is only in the model"));
  require_same(whole.all(), before);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_from_before_a_driver_without_parameters_had_a_part_is_loaded) {
  temporary_folder folder;
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  optimizer steps(cluster.driver, adamw, {block});
  steps.save(folder.path(), {});
  auto manifest = objects::read_manifest(folder.path());
  BOOST_TEST(manifest.parts.size() == 2u);
  std::erase_if(manifest.parts, [](const objects::part_entry& part) { return part.node == "driver"; });
  objects::write_manifest(folder.path(), manifest);
  block.set_parameters({{"bias", at::ones({3})}});
  steps.load(folder.path());
  BOOST_TEST(at::equal(block.parameters()[1].second, linear(layer(4, 3, 5)).bias));
}

BOOST_AUTO_TEST_CASE(a_rate_that_was_set_before_a_load_gives_way_to_the_checkpoints) {  // OM-4
  temporary_folder folder;
  std::vector<at::Tensor> expected;
  linear_cluster cluster;
  {
    model spread(cluster, adamw);
    spread.step(0);
    spread.steps->save(folder.path(), {});
    spread.step(1);
    expected = spread.parameters();
  }
  model spread(cluster, adamw);
  spread.steps->set_learning_rate(0.5);
  spread.steps->load(folder.path());
  spread.step(1);
  require_same(spread.parameters(), expected);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_model_is_refused_before_any_node_changes) {  // OM-3
  temporary_folder folder;
  linear_cluster cluster;
  model spread(cluster, adamw);
  spread.steps->save(folder.path(), {});
  model other(cluster, adamw, 50, 7);
  const auto before = other.parameters();
  const auto text = text_of<error>([&] { other.steps->load(folder.path()); });
  BOOST_TEST(
    contains(text, "is a checkpoint of another model: parameter '0/weight' is [5, 6] Float there and [7, 6] Float here"));
  BOOST_TEST(contains(text, "stage1"));
  require_same(other.parameters(), before);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_with_one_bad_part_is_refused_before_any_node_changes) {  // OM-3
  temporary_folder folder;
  linear_cluster cluster;
  model spread(cluster, adamw);
  spread.steps->save(folder.path(), {});
  const auto manifest = objects::read_manifest(folder.path());
  BOOST_TEST(manifest.parts.size() == 3u);
  spread.step(0);
  const auto before = spread.parameters();
  for (const auto& part : manifest.parts) {
    const auto path = folder / part.file;
    const auto bytes = read_text(path);
    write_text(path, bytes.substr(0, bytes.size() / 2));
    BOOST_TEST(contains(text_of<error>([&] { spread.steps->load(folder.path()); }), path + "' is damaged"));
    std::filesystem::remove(path);
    BOOST_TEST(contains(text_of<error>([&] { spread.steps->load(folder.path()); }), "can't read '" + path + "'"));
    write_text(path, bytes);
    require_same(spread.parameters(), before);
  }
  spread.steps->load(folder.path());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_other_nodes_is_refused_by_name) {
  temporary_folder folder;
  linear_cluster cluster;
  model spread(cluster, adamw);
  spread.steps->save(folder.path(), {});
  optimizer fewer(cluster.driver, adamw, {spread.modules[0], spread.modules[2]}, {{"scale", spread.scale}});
  const auto text = text_of<error>([&] { fewer.load(folder.path()); });
  BOOST_TEST(contains(text, "is of nodes 'driver', 'stage1', 'stage2', and this optimizer is of 'driver', 'stage1'"));
  BOOST_TEST(contains(text_of<error>([&] { fewer.load(folder / "nowhere"); }), "no checkpoint in '"));
}

BOOST_AUTO_TEST_CASE(a_refusal_lists_the_nodes_of_the_checkpoint_and_no_others) {
  temporary_folder folder;
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  optimizer(cluster.driver, adamw, {block}).save(folder.path(), {});
  const auto own = cluster.stage2.self().create("linear", layer(4, 3, 6));
  const auto far = cluster.stage2.peer("stage1").create("linear", layer(4, 3, 7));
  optimizer other(cluster.stage2, adamw, {own, far});
  BOOST_TEST(contains(text_of<error>([&] { other.load(folder.path()); }),
                      "is of nodes 'driver', 'stage1', and this optimizer is of 'stage1', 'stage2'"));
  optimizer alone(cluster.stage2, adamw, {}, {}, {{"mean", at::zeros({2})}});
  BOOST_TEST(contains(text_of<error>([&] { alone.load(folder.path()); }),
                      "is of nodes 'driver', 'stage1', and this optimizer is of 'stage2'"));
}

BOOST_AUTO_TEST_CASE(a_driver_without_parameters_may_have_another_name_and_goes_on_with_the_random_numbers) {  // OM-4
  temporary_folder folder;
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  torch::manual_seed(7);
  optimizer(cluster.driver, adamw, {block}).save(folder.path(), {});
  const auto drawn = at::randn({3});
  const auto other = cluster.stage2.peer("stage1").create("linear", layer(4, 3, 6));
  optimizer(cluster.stage2, adamw, {other}).load(folder.path());
  BOOST_TEST(at::equal(at::randn({3}), drawn));
  BOOST_TEST(at::equal(other.parameters()[1].second, block.parameters()[1].second));
}

BOOST_AUTO_TEST_CASE(a_part_with_parameters_is_not_taken_for_that_of_a_driver_without) {
  temporary_folder folder;
  linear_cluster cluster;
  model spread(cluster, adamw);
  optimizer(cluster.driver, adamw, {spread.modules[0]}, {{"scale", spread.scale}}).save(folder.path(), {});
  optimizer other(cluster.stage2, adamw, {cluster.stage2.peer("stage1").create("linear", layer(6, 5, 6))});
  BOOST_TEST(contains(text_of<error>([&] { other.load(folder.path()); }), "'scale' is only in the checkpoint"));
}

BOOST_AUTO_TEST_CASE(buffers_of_a_driver_that_has_no_part_in_the_checkpoint_are_not_left_out_silently) {  // OM-3
  temporary_folder folder;
  linear_cluster cluster;
  const auto block = cluster.driver.peer("stage1").create("linear", layer(4, 3, 5));
  optimizer(cluster.driver, adamw, {block}).save(folder.path(), {});
  auto manifest = objects::read_manifest(folder.path());
  std::erase_if(manifest.parts, [](const objects::part_entry& part) { return part.node == "driver"; });
  objects::write_manifest(folder.path(), manifest);
  optimizer with_buffer(cluster.driver, adamw, {block}, {}, {{"mean", at::zeros({2})}});
  BOOST_TEST(contains(text_of<error>([&] { with_buffer.load(folder.path()); }),
                      "is of nodes 'stage1', and this optimizer is of 'driver', 'stage1'"));
}

BOOST_AUTO_TEST_CASE(a_save_without_space_keeps_the_checkpoint_before_it_and_leaves_nothing) {
  temporary_folder folder;
  linear_cluster cluster;
  model spread(cluster, adamw);
  spread.steps->save(folder.path(), {{"steps", 0}});
  const auto files = folder.files();
  const auto saved = spread.parameters();
  spread.step(0);
  {
    size_limit limit(1000);
    const auto text = text_of<error>([&] { spread.steps->save(folder.path(), {{"steps", 1}}); });
    BOOST_TEST(contains(text, "File too large"));
    BOOST_TEST(contains(text, folder.path()));
  }
  BOOST_TEST((folder.files() == files));
  BOOST_TEST((spread.steps->load(folder.path()) == attributes{{"steps", 0}}));
  require_same(spread.parameters(), saved);
  spread.steps->save(folder.path(), {{"steps", 1}});
  BOOST_TEST((folder.files() != files));
  BOOST_TEST(folder.files().size() == files.size());
}

BOOST_AUTO_TEST_CASE(a_save_that_fails_after_its_parts_were_written_takes_them_back) {
  temporary_folder folder;
  linear_cluster cluster;
  model spread(cluster, adamw);
  spread.steps->save(folder.path(), {});
  const auto files = folder.files();
  std::filesystem::create_symlink("/dev/full", folder / "checkpoint.json.part");
  const auto text = text_of<error>([&] { spread.steps->save(folder.path(), {}); });
  BOOST_TEST(contains(text, "checkpoint.json': No space left on device"));
  BOOST_TEST((folder.files() == files));
}

BOOST_AUTO_TEST_CASE(a_folder_that_can_not_be_made_is_named) {
  temporary_folder folder;
  linear_cluster cluster;
  model spread(cluster, adamw);
  write_text(folder / "file", "");
  BOOST_TEST(contains(text_of<error>([&] { spread.steps->save(folder / "file/run", {}); }),
                      "can't make the folder '" + (folder / "file/run") + "'"));
}

BOOST_AUTO_TEST_SUITE_END()
