// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/local_optimizer.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <limits>

#include <torch/torch.h>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <actors/temporary_folder.hpp>
#include <troupe/actors/objects/random_state.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;
using engine::gradient_table;
namespace data = boost::unit_test::data;

namespace {

const std::string this_save = "0123456789abcdef";

/// A module that only has parameters and buffers.
struct plain_module : module {
  named_tensors held;
  named_tensors kept;
  explicit plain_module(named_tensors tensors, named_tensors buffers = {})
      : held(std::move(tensors)), kept(std::move(buffers)) {}
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return held; }
  named_tensors buffers() override { return kept; }
};

std::shared_ptr<plain_module> with_buffers(named_tensors buffers) {
  return std::make_shared<plain_module>(named_tensors{{"w", at::ones({2}).requires_grad_()}}, std::move(buffers));
}

using sizes = std::vector<std::vector<std::int64_t>>;
const sizes usual{{8, 5}, {5}, {}, {3, 2, 2}};

std::vector<at::Tensor> leaves(const sizes& shapes, int seed = 1) {
  torch::manual_seed(seed);
  std::vector<at::Tensor> result;
  for (const auto& shape : shapes) result.push_back(at::randn(shape).requires_grad_());
  return result;
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& from) {
  std::vector<at::Tensor> result;
  for (const auto& one : from) result.push_back(one.detach().clone().requires_grad_());
  return result;
}

named_tensors named(const std::vector<at::Tensor>& tensors) {
  named_tensors result;
  for (const auto& one : tensors) result.emplace_back("p" + std::to_string(result.size()), one);
  return result;
}

/// Gradients of a step, different from step to step; the second parameter has none in odd steps.
std::vector<at::Tensor> gradients_at(int step, const std::vector<at::Tensor>& parameters) {
  torch::manual_seed(100 + step);
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto gradient = at::randn(parameters[i].sizes());
    result.push_back(i == 1 && step % 2 == 1 ? at::Tensor() : gradient);
  }
  return result;
}

gradient_table table_of(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& gradients) {
  gradient_table table;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    table.accumulate(parameters[i], gradients[i].defined() ? gradients[i].clone() : gradients[i]);
  return table;
}

/// One optimizer as settings for ours, and as a function that makes libtorch's.
struct pairing {
  const char* name;
  optimizer_settings ours;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> theirs;
};
std::ostream& operator<<(std::ostream& out, const pairing& of) { return out << of.name; }

using namespace torch::optim;
const std::vector<pairing> pairings{
  {"sgd", {"sgd", {{"lr", 0.1}}}, [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.1)); }},
  {"sgd with momentum",
   {"sgd", {{"lr", 0.1}, {"momentum", 0.9}, {"dampening", 0.25}, {"weight_decay", 0.01}}},
   [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9).dampening(0.25).weight_decay(0.01)); }},
  {"sgd nesterov",
   {"sgd", {{"lr", 1}, {"momentum", 0.9}, {"nesterov", true}}},
   [](auto p) { return std::make_unique<SGD>(p, SGDOptions(1).momentum(0.9).nesterov(true)); }},
  {"adam", {"adam", {}}, [](auto p) { return std::make_unique<Adam>(p, AdamOptions()); }},
  {"adam with options",
   {"adam", {{"lr", 0.01}, {"beta1", 0.8}, {"beta2", 0.95}, {"eps", 1e-6}, {"weight_decay", 0.1}, {"amsgrad", true}}},
   [](auto p) {
     return std::make_unique<Adam>(p, AdamOptions(0.01).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.1).amsgrad(true));
   }},
  {"adamw", {"adamw", {{"lr", 0.002}}}, [](auto p) { return std::make_unique<AdamW>(p, AdamWOptions(0.002)); }},
  {"adamw amsgrad",
   {"adamw", {{"lr", 0.002}, {"beta2", 0.95}, {"weight_decay", 0}, {"amsgrad", true}}},
   [](auto p) {
     return std::make_unique<AdamW>(p, AdamWOptions(0.002).betas({0.9, 0.95}).weight_decay(0).amsgrad(true));
   }},
  {"adagrad", {"adagrad", {}}, [](auto p) { return std::make_unique<Adagrad>(p, AdagradOptions()); }},
  {"adagrad with options",
   {"adagrad", {{"lr", 0.05}, {"lr_decay", 0.1}, {"weight_decay", 0.01}, {"initial_accumulator_value", 0.5}, {"eps", 1e-6}}},
   [](auto p) {
     return std::make_unique<Adagrad>(
       p, AdagradOptions(0.05).lr_decay(0.1).weight_decay(0.01).initial_accumulator_value(0.5).eps(1e-6));
   }},
};

void require_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_REQUIRE_MESSAGE(at::equal(a[i], b[i]), "parameter " << i << " differs");
}

/// Writes the state of the optimizer to a file.
support::file_digest saved_to(const std::string& path, objects::local_optimizer&& of) {
  of.snapshot("n", this_save);
  return of.write_snapshot(path, this_save);
}
support::file_digest saved_to(const std::string& path, objects::local_optimizer& of) { return saved_to(path, std::move(of)); }

void step(objects::local_optimizer& ours, const std::vector<at::Tensor>& parameters, int number, double scale = 1) {
  ours.step(table_of(parameters, gradients_at(number, parameters)), scale);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(local_optimizers)

BOOST_DATA_TEST_CASE(a_step_gives_the_bits_of_libtorchs_optimizer, data::make(pairings), both) {  // LO-1
  auto mine = leaves(usual);
  auto others = copies(mine);
  objects::local_optimizer ours(both.ours, {}, named(mine));
  auto theirs = both.theirs(others);
  for (int number = 0; number < 5; ++number) {
    const auto gradients = gradients_at(number, mine);
    const double scale = number < 3 ? 1 : 0.37;
    for (std::size_t i = 0; i < others.size(); ++i)
      others[i].mutable_grad() = gradients[i].defined() ? gradients[i].mul(scale) : at::Tensor();
    theirs->step();
    step(ours, mine, number, scale);
    require_same(mine, others);
  }
  BOOST_TEST(!at::equal(mine[1], leaves(usual)[1]));
}

BOOST_AUTO_TEST_CASE(clipping_by_the_norm_agrees_with_libtorchs) {
  auto mine = leaves(usual);
  auto others = copies(mine);
  const auto gradients = gradients_at(0, mine);
  const auto table = table_of(mine, gradients);
  objects::local_optimizer ours({"sgd", {{"lr", 1}}}, {}, named(mine));
  double total = 0;
  for (const double sum : ours.norms(&table).sums) total += sum;
  const double scale = std::min(1.0, 0.5 / (std::sqrt(total) + 1e-6));
  for (std::size_t i = 0; i < others.size(); ++i) others[i].mutable_grad() = gradients[i].clone();
  const double norm = torch::nn::utils::clip_grad_norm_(others, 0.5);
  BOOST_TEST(std::abs(std::sqrt(total) - norm) < 1e-5 * norm);
  SGD(others, SGDOptions(1)).step();
  ours.step(table, scale);
  for (std::size_t i = 0; i < mine.size(); ++i) BOOST_TEST(at::allclose(mine[i], others[i], 1e-5, 1e-6));
}

BOOST_DATA_TEST_CASE(gradients_and_grad_are_after_a_step_what_they_were, data::make(pairings), both) {  // LO-2
  auto mine = leaves(usual);
  mine[0].mutable_grad() = at::ones_like(mine[0]);
  const auto table = table_of(mine, gradients_at(0, mine));
  objects::local_optimizer ours(both.ours, {}, named(mine));
  ours.step(table);
  ours.step(table, 0.5);
  require_same({table.find(mine[0]), table.find(mine[1]), table.find(mine[2]), table.find(mine[3])}, gradients_at(0, mine));
  BOOST_TEST(at::equal(mine[0].grad(), at::ones_like(mine[0])));
  BOOST_TEST(!mine[1].grad().defined());
}

BOOST_AUTO_TEST_CASE(a_parameter_without_a_gradient_stays_as_it_is_whatever_its_grad) {  // LO-3
  auto mine = leaves(usual);
  const auto before = copies(mine);
  mine[1].mutable_grad() = at::ones_like(mine[1]);
  objects::local_optimizer ours({"adamw", {}}, {}, named(mine));
  step(ours, mine, 1);
  BOOST_TEST(at::equal(mine[1], before[1]));
  BOOST_TEST(!at::equal(mine[0], before[0]));
}

BOOST_AUTO_TEST_CASE(gathered_gradients_are_summed_in_order_and_count_for_one_step) {  // LO-5
  const std::vector<float> order{1e8F, -1e8F, 3.0F};                                   // another order has another sum
  auto parameter = at::zeros({1}).requires_grad_();
  objects::local_optimizer ours({"sgd", {{"lr", 1.0}}}, {}, {{"w", parameter}});
  for (const float each : order) {
    gradient_table of_one;
    of_one.accumulate(parameter, at::full({1}, each));
    ours.gather(of_one);
  }
  ours.gathered_step(1);
  const float sum = order[0] + order[1];
  BOOST_TEST(parameter.item<float>() == -(sum + order[2]));
  ours.gathered_step(1);
  BOOST_TEST(parameter.item<float>() == -(sum + order[2]));
  BOOST_TEST(!ours.norms().sums.empty());
  BOOST_TEST(ours.norms().sums[0] == 0);
}

BOOST_AUTO_TEST_CASE(a_step_that_fails_midway_drops_what_was_gathered_and_is_told_until_a_part_is_applied) {  // LO-5, LO-8
  temporary_folder folder;
  auto first = at::zeros({2}).requires_grad_();
  auto second = at::zeros({2}).requires_grad_();
  objects::local_optimizer ours({"adamw", {}}, {}, {{"v", first}, {"w", second}});
  const auto digest = saved_to(folder / "a.safetensors", ours);
  gradient_table half_sparse;  // AdamW refuses the gradient of the second parameter
  half_sparse.accumulate(first, at::ones({2}));
  half_sparse.accumulate(second, at::ones({2}).to_sparse());
  ours.gather(half_sparse);
  BOOST_CHECK_THROW(ours.gathered_step(1, {1}), c10::Error);
  BOOST_TEST(!at::equal(first.detach(), at::zeros({2})));
  for (const std::uint64_t number : {0, 1, 2})
    BOOST_TEST(contains(text_of<error>([&] { ours.step({}, 1, {number}); }), "change 1 failed midway"));
  BOOST_TEST(contains(text_of<error>([&] { ours.has_made(1); }), "load a checkpoint"));
  ours.stage(folder / "a.safetensors", digest, this_save);
  ours.apply(this_save, {3});
  BOOST_TEST(at::equal(first.detach(), at::zeros({2})));
  ours.gathered_step(1, {.number = 4, .round = 3});
  BOOST_TEST(at::equal(first.detach(), at::zeros({2})));
}

BOOST_AUTO_TEST_CASE(a_change_with_a_number_is_made_once_and_one_that_comes_late_never) {  // LO-7
  temporary_folder folder;
  auto parameter = at::zeros({1}).requires_grad_();
  objects::local_optimizer ours({"sgd", {{"lr", 1.0}}}, {}, {{"w", parameter}});
  gradient_table ones;
  ones.accumulate(parameter, at::ones({1}));
  const auto value = [&] { return parameter.item<float>(); };
  const auto late = [](auto&& run) { return contains(text_of<error>(run), "came late"); };
  ours.step(ones, 1, {1});
  ours.step(ones, 1, {1});
  BOOST_TEST(value() == -1);
  ours.set_learning_rates({.number = 2, .rates = {{0, 10.0}}});
  BOOST_TEST(late([&] { ours.step(ones, 1, {1}); }));
  ours.step(ones, 1, {.number = 3, .rates = {{0, 100.0}}});
  BOOST_TEST(late([&] { ours.set_learning_rates({.number = 2, .rates = {{0, 10.0}}}); }));
  ours.step(ones, 1, {4});
  BOOST_TEST(value() == -201);
  BOOST_TEST(ours.has_made(4));
  BOOST_TEST(!ours.has_made(5));
  BOOST_TEST(!ours.has_made(5, true));
  BOOST_TEST(contains(text_of<error>([&] { ours.step(ones, 1, {5}); }), "change 5 was given up before it came"));
  ours.step(ones, 1, {6});
  BOOST_TEST(value() == -301);
  const auto digest = saved_to(folder / "a.safetensors", ours);
  ours.stage(folder / "a.safetensors", digest, this_save);
  BOOST_TEST(late([&] { ours.apply(this_save, {6}); }));
  ours.apply(this_save, {8});
  BOOST_TEST(late([&] { ours.step(ones, 1, {7}); }));
  BOOST_TEST(value() == -301);
}

BOOST_AUTO_TEST_CASE(gradients_of_a_later_round_take_the_place_of_those_before) {  // LO-5
  auto parameter = at::zeros({1}).requires_grad_();
  objects::local_optimizer ours({"sgd", {{"lr", 1.0}}}, {}, {{"w", parameter}});
  const auto table = [&](float value) {
    gradient_table of_one;
    of_one.accumulate(parameter, at::full({1}, value));
    return of_one;
  };
  ours.gather(table(1), 1);
  ours.gather(table(20), 2);  // round 1 was given up by the caller
  BOOST_TEST(contains(text_of<error>([&] { ours.gather(table(300), 1); }), "came late"));
  ours.forget_gathered(1);  // late too
  BOOST_TEST(
    contains(text_of<error>([&] { ours.gathered_step(1, {.number = 3, .round = 1}); }), "are of round 2, expected round 1"));
  ours.gathered_step(1, {.number = 3, .round = 2});
  BOOST_TEST(parameter.item<float>() == -20);
}

BOOST_AUTO_TEST_CASE(sparse_and_complex_gradients_have_norms) {
  auto table_leaf = at::zeros({10, 2}).requires_grad_();
  auto complex_leaf = at::zeros({2}, at::kComplexFloat).requires_grad_();
  gradient_table table;
  const auto indices = at::tensor({1, 1, 4}, at::kLong).unsqueeze(0);
  table.accumulate(table_leaf, at::sparse_coo_tensor(indices, at::ones({3, 2}), {10, 2}));
  table.accumulate(complex_leaf, at::complex(at::full({2}, 3.f), at::full({2}, 4.f)));
  objects::local_optimizer ours({"sgd", {{"lr", 1}}}, {}, {{"sparse", table_leaf}, {"complex", complex_leaf}});
  const auto norms = ours.norms(&table);
  BOOST_TEST(norms.sums[0] == 2 * 4.0 + 2 * 1.0);
  BOOST_TEST(norms.sums[1] == 50.0);
  ours.step(table);
  BOOST_TEST(table_leaf[1][0].item<float>() == -2.f);
}

BOOST_AUTO_TEST_CASE(a_gradient_that_is_not_finite_is_named) {
  auto mine = leaves(usual);
  auto gradients = gradients_at(0, mine);
  gradients[2].fill_(std::numeric_limits<float>::quiet_NaN());
  gradients[3].fill_(std::numeric_limits<float>::infinity());
  objects::local_optimizer ours({}, {}, named(mine));
  const auto table = table_of(mine, gradients);
  BOOST_TEST(ours.norms(&table).not_finite == "p2");
}

BOOST_AUTO_TEST_CASE(large_half_precision_gradients_do_not_overflow_the_norm) {
  auto leaf = at::zeros({100}, at::kHalf).requires_grad_();
  gradient_table table;
  table.accumulate(leaf, at::full({100}, 60000, at::kHalf));
  BOOST_TEST(objects::local_optimizer({}, {}, {{"p", leaf}}).norms(&table).sums[0] == 100 * 60000.0 * 60000.0);
}

BOOST_AUTO_TEST_CASE(a_parameter_of_two_modules_is_stepped_once) {
  auto shared = at::ones({2}).requires_grad_();
  auto own = at::ones({2}).requires_grad_();
  const auto first = std::make_shared<plain_module>(named_tensors{{"w", shared}});
  const auto second = std::make_shared<plain_module>(named_tensors{{"v", own}, {"w", shared}});
  objects::local_optimizer ours({"sgd", {{"lr", 1}}}, {first, second}, {{"tied", shared}});
  BOOST_TEST((ours.counts() == std::vector<std::size_t>{1, 1, 0}));
  gradient_table table;
  table.accumulate(shared, at::ones({2}));
  ours.step(table);
  BOOST_TEST(at::equal(shared, at::zeros({2})));
}

BOOST_AUTO_TEST_CASE(unknown_optimizers_and_options_are_refused_with_those_there_are) {
  const auto refusal = [](optimizer_settings settings) {
    return text_of<error>([&] { objects::local_optimizer refused(settings, {}, named(leaves(usual))); });
  };
  BOOST_TEST(refusal({"lion", {}}) == "no optimizer is called 'lion'; there are sgd, adam, adamw and adagrad");
  BOOST_TEST(refusal({"sgd", {{"beta1", 0.9}}}) ==
             "optimizer 'sgd' has no option 'beta1'; it has lr, momentum, dampening, weight_decay, nesterov");
  BOOST_TEST(refusal({"adamw", {{"LR", 0.9}}}) ==
             "optimizer 'adamw' has no option 'LR'; it has lr, beta1, beta2, eps, weight_decay, amsgrad");
  BOOST_TEST(contains(refusal({"adam", {{"lr", "fast"}}}), "option 'lr' takes a number"));
  BOOST_TEST(contains(refusal({"adam", {{"amsgrad", 1}}}), "option 'amsgrad' takes true or false"));
  BOOST_TEST(contains(refusal({"adam", {{"lr", -1}}}), "Invalid learning rate: -1"));
  BOOST_TEST(contains(text_of<error>([] {
                        objects::local_optimizer({}, {}, named(leaves(usual))).set_learning_rates({.rates = {{0, -1}}});
                      }),
                      "learning rate is -1"));
}

BOOST_AUTO_TEST_CASE(tensors_that_are_no_leaves_are_refused_by_name) {
  const auto leaf = at::ones({2}).requires_grad_();
  BOOST_TEST(contains(text_of<error>([&] {
                        objects::local_optimizer refused({}, {}, {{"w", leaf * 2}});
                      }),
                      "'w' is not a leaf"));
  BOOST_TEST(contains(text_of<error>([&] { objects::local_optimizer refused({}, {}, {{"w", {}}}); }), "'w' is undefined"));
  BOOST_TEST(contains(text_of<error>([&] {
                        objects::local_optimizer refused({}, {}, {{"w", leaf}, {"w", leaf}});
                      }),
                      "two parameters are called 'w'"));
}

BOOST_DATA_TEST_CASE(a_run_that_loads_goes_on_with_the_bits_of_the_run_that_saved, data::make(pairings), both) {  // OM-4
  temporary_folder folder;
  auto first = leaves(usual);
  objects::local_optimizer saving(both.ours, {}, named(first));
  for (int number = 0; number < 3; ++number) step(saving, first, number);
  saving.set_learning_rates({.rates = {{0, 0.005}}});
  const auto digest = saved_to(folder / "a.safetensors", saving);

  // The second optimizer has other first values, other steps and another rate. Loading overwrites all of them.
  auto second = leaves(usual, 2);
  objects::local_optimizer loading(both.ours, {}, named(second));
  for (int number = 0; number < 2; ++number) step(loading, second, number);
  loading.stage(folder / "a.safetensors", digest, this_save);
  loading.apply(this_save);
  require_same(first, second);
  for (int number = 3; number < 6; ++number) {
    step(saving, first, number);
    step(loading, second, number);
    require_same(first, second);
  }
}

BOOST_AUTO_TEST_CASE(state_that_the_checkpoint_does_not_have_is_forgotten) {
  temporary_folder folder;
  auto first = leaves(usual);
  objects::local_optimizer saving({}, {}, named(first));
  const auto digest = saved_to(folder / "a.safetensors", saving);
  auto second = leaves(usual);
  objects::local_optimizer loading({}, {}, named(second));
  step(loading, second, 0);
  loading.stage(folder / "a.safetensors", digest, this_save);
  loading.apply(this_save);
  step(saving, first, 1);
  step(loading, second, 1);
  require_same(first, second);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_model_is_refused_and_changes_nothing) {  // LO-4
  temporary_folder folder;
  const auto refusal = [&](const optimizer_settings& settings, const named_tensors& saved) {
    const auto digest = saved_to(folder / "a.safetensors", objects::local_optimizer(settings, {}, saved));
    auto mine = leaves({{2, 3}, {3}});
    const auto before = copies(mine);
    objects::local_optimizer loading({}, {}, named(mine));
    const auto text = text_of<error>([&] { loading.stage(folder / "a.safetensors", digest, this_save); });
    BOOST_TEST(contains(text, "is a checkpoint of another model: "));
    BOOST_TEST(contains(text, "; nothing was changed"));
    BOOST_TEST(!text_of<error>([&] { loading.apply(this_save); }).empty());
    require_same(mine, before);
    return text;
  };
  BOOST_TEST(contains(refusal({}, named(leaves({{2, 3}, {4}}))), "parameter 'p1' is [4] Float there and [3] Float here"));
  BOOST_TEST(contains(refusal({}, {{"p0", at::zeros({2, 3})}, {"p1", at::zeros({3}, at::kDouble)}}),
                      "parameter 'p1' is [3] Double there and [3] Float here"));
  BOOST_TEST(contains(refusal({}, {{"p0", at::zeros({2, 3})}, {"bias", at::zeros({3})}}),
                      "its parameter 1 is called 'bias', the model's 'p1'"));
  BOOST_TEST(
    contains(refusal({}, named(leaves({{2, 3}}))), "it has 1 parameter, the model 2 parameters; 'p1' is only in the model"));
  BOOST_TEST(contains(refusal({}, named(leaves({{2, 3}, {3}, {3}}))),
                      "3 parameters, the model 2 parameters; 'p2' is only in the checkpoint"));
  BOOST_TEST(
    contains(refusal({"adam", {}}, named(leaves({{2, 3}, {3}}))), "written with optimizer 'adam', this one is 'adamw'"));
}

BOOST_AUTO_TEST_CASE(buffers_and_random_numbers_come_back_with_the_parameters) {  // LO-4
  temporary_folder folder;
  const auto shared = at::full({}, 3, at::kLong);
  const auto first = with_buffers({{"mean", at::zeros({3})}, {"steps", shared}, {"unused", {}}});
  objects::local_optimizer saving({}, {first, with_buffers({{"tied", shared}})}, {}, {{"head.mean", at::full({2}, 4.5)}});
  first->kept[0].second = at::full({3}, 1.5);  // a call may put another tensor in a buffer's place
  torch::manual_seed(7);
  at::randn({3});  // normal numbers are made in pairs: the generator keeps one for later
  const auto digest = saved_to(folder / "a.safetensors", saving);
  const auto drawn = at::randn({5});

  const auto second = with_buffers({{"mean", at::zeros({3})}, {"steps", at::zeros({}, at::kLong)}, {"unused", {}}});
  const auto head = at::zeros({2});
  objects::local_optimizer loading({}, {second, with_buffers({{"tied", second->kept[1].second}})}, {}, {{"head.mean", head}});
  loading.stage(folder / "a.safetensors", digest, this_save);
  BOOST_TEST(at::equal(second->kept[0].second, at::zeros({3})));
  loading.apply(this_save);
  BOOST_TEST(at::equal(second->kept[0].second, at::full({3}, 1.5)));
  BOOST_TEST(second->kept[1].second.item<std::int64_t>() == 3);
  BOOST_TEST(at::equal(head, at::full({2}, 4.5)));
  BOOST_TEST(at::equal(at::randn({5}), drawn));
}

BOOST_AUTO_TEST_CASE(buffers_that_do_not_fit_are_refused_by_name_and_change_nothing) {  // LO-4
  temporary_folder folder;
  const auto refusal = [&](named_tensors saved) {
    const auto digest = saved_to(folder / "a.safetensors", objects::local_optimizer({}, {with_buffers(std::move(saved))}));
    const auto model = with_buffers({{"mean", at::ones({3})}, {"steps", at::full({}, 7, at::kLong)}});
    objects::local_optimizer loading({}, {model});
    const auto drawn = objects::random_state();
    const auto text = text_of<error>([&] { loading.stage(folder / "a.safetensors", digest, this_save); });
    BOOST_TEST(contains(text, "is a checkpoint of another model: "));
    BOOST_TEST(contains(text, "; nothing was changed"));
    BOOST_TEST(at::equal(model->kept[0].second, at::ones({3})));
    BOOST_TEST(at::equal(objects::random_state(), drawn));
    return text;
  };
  const std::pair<std::string, at::Tensor> steps{"steps", at::zeros({}, at::kLong)};
  BOOST_TEST(contains(refusal({{"mean", at::ones({4})}, steps}), "buffer '0/mean' is [4] Float there and [3] Float here"));
  BOOST_TEST(
    contains(refusal({{"mean", at::ones({3}, at::kDouble)}, steps}), "buffer '0/mean' is [3] Double there and [3] Float here"));
  BOOST_TEST(
    contains(refusal({{"average", at::ones({3})}, steps}), "its buffer 0 is called '0/average', the model's '0/mean'"));
  BOOST_TEST(
    contains(refusal({{"mean", at::ones({3})}}), "it has 1 buffer, the model 2 buffers; '0/steps' is only in the model"));
  BOOST_TEST(contains(refusal({}), "it has no buffers, the model 2 buffers; '0/mean' is only in the model"));
  BOOST_TEST(contains(refusal({{"mean", at::ones({3})}, steps, {"variance", at::ones({3})}}),
                      "it has 3 buffers, the model 2 buffers; '0/variance' is only in the checkpoint"));
  BOOST_TEST(contains(text_of<error>([&] {
                        objects::local_optimizer refused({}, {}, {}, {{"mean", at::ones({3})}, {"mean", at::ones({3})}});
                      }),
                      "two buffers are called 'mean'"));
}

BOOST_AUTO_TEST_CASE(tensors_that_can_not_be_overwritten_are_refused_before_anything_changes) {  // LO-4
  temporary_folder folder;
  const auto refusal = [&](const at::Tensor& parameter, const at::Tensor& buffer) {
    const auto first = std::make_shared<plain_module>(named_tensors{{"v", at::ones({2}).requires_grad_()}, {"w", parameter}},
                                                      named_tensors{{"mean", buffer}});
    objects::local_optimizer ours({}, {first});
    const auto digest = saved_to(folder / "a.safetensors", ours);
    at::NoGradGuard no_grad;
    first->held[0].second.fill_(5);
    const auto text = text_of<error>([&] { ours.stage(folder / "a.safetensors", digest, this_save); });
    BOOST_TEST(!text_of<error>([&] { ours.apply(this_save); }).empty());
    BOOST_TEST(at::equal(first->held[0].second, at::full({2}, 5.0)));
    return text;
  };
  const auto expanded = [] { return at::zeros({1}).expand({4}); };
  at::Tensor inferred;
  {
    c10::InferenceMode mode;
    inferred = at::zeros({4});
  }
  BOOST_TEST(contains(refusal(at::zeros({4}), expanded()),
                      "buffer '0/mean' here is an expanded tensor, which can't be overwritten; clone it"));
  BOOST_TEST(contains(refusal(at::zeros({4}), inferred),
                      "buffer '0/mean' here is an inference tensor, which can't be overwritten; clone it"));
  BOOST_TEST(contains(refusal(expanded().requires_grad_(), at::zeros({4})),
                      "parameter '0/w' here is an expanded tensor, which can't be overwritten; clone it"));
}

BOOST_AUTO_TEST_CASE(buffers_that_a_call_replaces_after_the_reading_are_those_that_are_overwritten) {  // LO-4
  temporary_folder folder;
  const auto digest =
    saved_to(folder / "a.safetensors", objects::local_optimizer({}, {with_buffers({{"mean", at::full({3}, 2.0)}})}));
  const auto model = with_buffers({{"mean", at::zeros({3})}});
  objects::local_optimizer loading({}, {model});
  loading.stage(folder / "a.safetensors", digest, this_save);
  model->kept[0].second = at::zeros({3});
  loading.apply(this_save);
  BOOST_TEST(at::equal(model->kept[0].second, at::full({3}, 2.0)));

  loading.stage(folder / "a.safetensors", digest, this_save);
  model->kept[0].second = at::zeros({4});
  {
    at::NoGradGuard no_grad;
    model->held[0].second.fill_(5);
  }
  BOOST_TEST(contains(text_of<error>([&] { loading.apply(this_save); }),
                      "the model changed after the checkpoint was read: buffer '0/mean' is [3] Float there and [4] Float here; "
                      "nothing was changed on this node, load again"));
  BOOST_TEST(at::equal(model->held[0].second, at::full({2}, 5.0)));
}

BOOST_AUTO_TEST_CASE(a_change_waits_for_no_snapshot_that_is_written_and_does_not_change_it) {  // LO-9
  temporary_folder folder;
  auto mine = leaves({{100'000}});  // more than a pipe holds
  const auto before = copies(mine);
  objects::local_optimizer ours({}, {}, named(mine));
  const auto digest = ours.snapshot("n", this_save);
  const auto path = folder / "pipe.safetensors";
  BOOST_TEST_REQUIRE(::mkfifo((path + ".part").c_str(), 0600) == 0);
  auto written = std::async(std::launch::async, [&] { return text_of<error>([&] { ours.write_snapshot(path, this_save); }); });
  const support::owned_descriptor pipe(::open((path + ".part").c_str(), O_RDONLY));  // once the writer opens it
  std::string bytes(1, '\0');
  BOOST_TEST_REQUIRE(::read(pipe.get(), bytes.data(), 1) == 1);
  step(ours, mine, 0);
  for (const auto& refused : {text_of<error>([&] { ours.snapshot("n", this_save); }),
                              text_of<error>([&] { ours.write_snapshot(folder / "b", this_save); })})
    BOOST_TEST(contains(refused, "the part of an earlier save is still being written"), refused);
  std::string more(1 << 16, '\0');
  for (ssize_t got = 1; got > 0;) {
    got = ::read(pipe.get(), more.data(), more.size());
    bytes.append(more, 0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  BOOST_TEST(contains(written.get(), "Invalid argument"));  // a pipe can't be made safe
  BOOST_TEST(bytes.size() == digest.bytes);

  BOOST_TEST((ours.write_snapshot(folder / "a.safetensors", this_save) == digest));
  BOOST_TEST(!at::equal(mine[0], before[0]));
  ours.stage(folder / "a.safetensors", digest, this_save);
  ours.apply(this_save);
  require_same(mine, before);
  ours.discard();
  BOOST_TEST(contains(text_of<error>([&] { ours.write_snapshot(folder / "b", this_save); }), "there is no snapshot of save"));
}

BOOST_AUTO_TEST_CASE(what_was_staged_is_applied_only_for_its_save_and_once) {
  temporary_folder folder;
  auto mine = leaves(usual);
  objects::local_optimizer ours({}, {}, named(mine));
  const auto digest = saved_to(folder / "a.safetensors", ours);
  ours.stage(folder / "a.safetensors", digest, this_save);
  BOOST_CHECK_THROW(ours.apply("ffffffffffffffff"), error);
  ours.apply(this_save);
  BOOST_CHECK_THROW(ours.apply(this_save), error);
  ours.stage(folder / "a.safetensors", digest, this_save);
  ours.discard();
  BOOST_CHECK_THROW(ours.apply(this_save), error);
}

BOOST_AUTO_TEST_SUITE_END()
