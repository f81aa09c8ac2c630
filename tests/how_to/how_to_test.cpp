// SPDX-License-Identifier: BSD-3-Clause
// The code of docs/how_to.md, which quotes what stands between ":begin" and ":end".
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <torch/script.h>
#include <torch/torch.h>
#include <boost/test/unit_test.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <ATen/autocast_mode.h>

#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "support/captured_stderr.hpp"
#include "support/contains.hpp"

namespace {

/// What the stage sees when it is called.
struct seen_by_stage {
  std::atomic<bool> records = true;
  std::atomic<bool> trains = true;
  std::atomic<at::ScalarType> makes = at::kFloat;
  std::function<void()> in_backward;
};

/// The half of the model that lives on the stage: that of README's program, and a layer with a mode.
struct encoder : troupe::module {
  torch::nn::Linear layer{1, 32};
  torch::nn::Dropout dropout;
  seen_by_stage& seen;

  encoder(double rate, seen_by_stage& seen) : dropout(rate), seen(seen) {}

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method != "forward") throw std::invalid_argument("expected the method 'forward', got '" + method + "'");
    const auto hidden = dropout(torch::tanh(layer(arguments.tensor(0))));
    seen.records = hidden.requires_grad();
    seen.trains = dropout->is_training();
    seen.makes = hidden.scalar_type();
    if (seen.in_backward) hidden.register_hook([&seen = seen](const torch::Tensor&) { seen.in_backward(); });
    return {{hidden}};
  }
  troupe::named_tensors parameters() override { return {{"weight", layer->weight}, {"bias", layer->bias}}; }

  // modes:begin
  void train(bool on) override { dropout->train(on); }
  // modes:end
};

/// A stage and a driver, as in README's program.
struct two_nodes {
  seen_by_stage seen;
  double dropout = 0;
  troupe::node driver;
  std::optional<troupe::node> stage_node;
  torch::nn::Linear head{32, 1};
  const torch::Tensor inputs = torch::linspace(-3, 3, 64).unsqueeze(1);
  const torch::Tensor targets = torch::sin(inputs);

  explicit two_nodes(const std::function<void(troupe::settings&)>& change = [](auto&) {})
      : driver(settings_of("driver", change)) {
    start_stage(change);
    driver.peer("stage");
  }

  static troupe::settings settings_of(const std::string& name, const std::function<void(troupe::settings&)>& change) {
    auto result = troupe::test::loopback_settings(name);
    change(result);
    return result;
  }
  void start_stage(const std::function<void(troupe::settings&)>& change = [](auto&) {}) {
    auto options = settings_of("stage", change);
    options.join = {"127.0.0.1:" + std::to_string(driver.port())};
    options.prepare = [this](troupe::node& here) {
      troupe::add_module_type(here, "encoder", [this](auto&) { return std::make_shared<encoder>(dropout, seen); });
    };
    stage_node.emplace(options);
  }
};

constexpr double rate = 0.1;

/// The same, with an optimizer.
struct training : two_nodes {
  troupe::remote_module half = driver.peer("stage").create("encoder");
  troupe::optimizer optimizer{driver, {"sgd", {{"lr", rate}}}, {half}, {{"weight", head->weight}, {"bias", head->bias}}};

  using two_nodes::two_nodes;

  torch::Tensor loss() { return torch::mse_loss(head(half.call("forward", {inputs}).get().tensor(0)), targets); }
};

/// The model of the two nodes in one process, with the parameters that the two nodes have now.
struct one_process {
  torch::nn::Linear layer{1, 32};
  torch::nn::Linear head{32, 1};

  one_process(const troupe::remote_module& half, const torch::nn::Linear& there) {
    const torch::NoGradGuard no_graph;
    layer->weight.copy_(half.parameter("weight"));
    layer->bias.copy_(half.parameter("bias"));
    head->weight.copy_(there->weight);
    head->bias.copy_(there->bias);
  }

  torch::Tensor loss(const torch::Tensor& inputs, const torch::Tensor& targets) {
    return torch::mse_loss(head(torch::tanh(layer(inputs))), targets);
  }
  std::vector<torch::Tensor> parameters() const { return {layer->weight, layer->bias, head->weight, head->bias}; }
  void zero_grad() {
    for (auto& each : parameters()) each.mutable_grad() = torch::Tensor();
  }
  double norm() const {
    double sum = 0;
    for (const auto& each : parameters()) sum += each.grad().to(torch::kDouble).square().sum().item<double>();
    return std::sqrt(sum);
  }
  void step(double scale = 1) {
    const torch::NoGradGuard no_graph;
    for (auto& each : parameters()) each.add_(each.grad(), -rate * scale);
  }
  /// Whether the two nodes have these parameters.
  bool is_like(const troupe::remote_module& half, const torch::nn::Linear& there, double tolerance = 1e-6) const {
    const auto remote = half.parameters();
    const auto close = [&](const torch::Tensor& a, const torch::Tensor& b) { return torch::allclose(a, b, 0, tolerance); };
    return close(remote.at(0).second, layer->weight) && close(remote.at(1).second, layer->bias) &&
           close(there->weight, head->weight) && close(there->bias, head->bias);
  }
};

using troupe::test::contains;
using troupe::test::temporary_folder;

}  // namespace

BOOST_AUTO_TEST_SUITE(how_to)

BOOST_FIXTURE_TEST_CASE(a_model_is_evaluated_without_a_graph_and_without_dropout, training) {
  dropout = 0.5;
  half = driver.peer("stage").create("encoder");
  // evaluate:begin
  double score = 0;
  half.eval();
  {
    const torch::NoGradGuard no_graph;
    const auto hidden = half.call("forward", {inputs}).get().tensor(0);
    score = torch::mse_loss(head(hidden), targets).item<double>();
  }
  half.train();
  // evaluate:end
  BOOST_TEST(!seen.records);
  BOOST_TEST(!seen.trains);
  const torch::NoGradGuard no_graph;
  BOOST_TEST(score == one_process(half, head).loss(inputs, targets).item<double>());
  half.call("forward", {inputs}).get();
  BOOST_TEST(seen.trains);
}

namespace {

// autocast:begin
/// While it lives, this thread computes under autocast. libtorch has no such class for C++.
class autocast_scope {
 public:
  autocast_scope() {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~autocast_scope() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();  // else the next step computes with the weights of this one
  }
};
// autocast:end

struct carrying : training {
  carrying() : training([](troupe::settings& options) { options.carry_autocast = true; }) {}
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(autocast_goes_with_a_call_and_parameters_stay_float32, carrying) {
  one_process twin(half, head);
  for (int step = 0; step < 3; ++step) {
    // autocast_step:begin
    troupe::context context{driver};
    torch::Tensor loss;
    {
      const autocast_scope autocast;
      const auto hidden = half.call("forward", {inputs}).get().tensor(0);  // the stage computes it in bfloat16
      loss = torch::mse_loss(head(hidden), targets);
    }
    context.backward({loss}).get();
    optimizer.step(context);
    // autocast_step:end
    BOOST_TEST(seen.makes == at::kBFloat16);
    twin.zero_grad();
    {
      const autocast_scope autocast;
      loss = twin.loss(inputs, targets);
    }
    loss.backward();
    twin.step();
  }
  BOOST_TEST(half.parameter("weight").scalar_type() == at::kFloat);
  BOOST_TEST(twin.is_like(half, head, 0));
}

BOOST_FIXTURE_TEST_CASE(a_wire_format_halves_what_travels, training) {
  const auto before = driver.peer("stage").status();
  {
    // wire:begin
    troupe::context context{driver, troupe::wire_format::bfloat16};
    const auto hidden = half.call("forward", {inputs}).get().tensor(0);
    context.backward({torch::mse_loss(head(hidden), targets)}).get();
    // wire:end
    BOOST_TEST(hidden.scalar_type() == at::kFloat);
    BOOST_TEST(context.gradient(head->weight).defined());
  }
  const auto after = driver.peer("stage").status();
  const auto saved = [](const troupe::node_status& x) { return x.peers.at(0).plain_bytes_sent - x.peers.at(0).bytes_sent; };
  BOOST_TEST(saved(after) - saved(before) == 64u * 32 * 2);
}

BOOST_FIXTURE_TEST_CASE(groups_have_rates_and_options_of_their_own, two_nodes) {
  const auto half = driver.peer("stage").create("encoder");
  one_process twin(half, head);
  // groups:begin
  const troupe::parameter_group weights{
    .modules = {half.select({"weight"})}, .local = {{"weight", head->weight}}, .options = {{"weight_decay", 0.1}}};
  const troupe::parameter_group biases{
    .modules = {half.select({"bias"})}, .local = {{"bias", head->bias}}, .options = {{"lr", 0.05}, {"weight_decay", 0.0}}};
  troupe::optimizer optimizer{driver, {weights, biases}, {"adamw", {{"lr", 0.02}}}};
  optimizer.set_learning_rate(0.01, 1);  // of the second group, from the next step on
  // groups:end
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector{twin.layer->weight, twin.head->weight},
                      std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(0.02).weight_decay(0.1)));
  groups.emplace_back(std::vector{twin.layer->bias, twin.head->bias},
                      std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(0.01).weight_decay(0)));
  torch::optim::AdamW expected(groups, torch::optim::AdamWOptions(0.02));
  for (int step = 0; step < 3; ++step) {
    troupe::context context{driver};
    context.backward({torch::mse_loss(head(half.call("forward", {inputs}).get().tensor(0)), targets)}).get();
    optimizer.step(context);
    expected.zero_grad();
    twin.loss(inputs, targets).backward();
    expected.step();
  }
  BOOST_TEST(twin.is_like(half, head, 0));
}

BOOST_FIXTURE_TEST_CASE(gradients_of_several_batches_make_one_step, training) {
  one_process twin(half, head);
  const auto batches = torch::stack({inputs, targets}).chunk(4, 1);
  // accumulate:begin
  for (const auto& batch : batches) {
    troupe::context context{driver};
    const auto hidden = half.call("forward", {batch[0]}).get().tensor(0);
    const auto loss = torch::mse_loss(head(hidden), batch[1]) / static_cast<double>(batches.size());
    context.backward({loss}).get();
    optimizer.gather(context);
  }
  optimizer.step();
  // accumulate:end
  twin.loss(inputs, targets).backward();
  twin.step();
  BOOST_TEST(twin.is_like(half, head));
  BOOST_CHECK_THROW(optimizer.step(), troupe::error);
}

BOOST_FIXTURE_TEST_CASE(gradients_are_clipped_to_a_norm_over_both_nodes, training) {
  one_process twin(half, head);
  twin.loss(inputs, targets).backward();
  const double most = twin.norm() / 4;
  {
    troupe::context context{driver};
    context.backward({loss()}).get();
    // clip:begin
    const double norm = optimizer.step(context, most).value();  // over all nodes, before it was clipped to `most`
    // clip:end
    BOOST_TEST(norm == 4 * most, boost::test_tools::tolerance(1e-6));
    twin.step(most / norm);
    BOOST_TEST(twin.is_like(half, head));
  }
  troupe::context context{driver};
  context.backward({loss() * std::numeric_limits<float>::infinity()}).get();
  BOOST_CHECK_THROW(optimizer.step(context, most), troupe::error);
  BOOST_TEST(twin.is_like(half, head));
}

namespace {

/// A training whose stage has dropout, and which may be disturbed before a step.
struct long_training : two_nodes {
  const temporary_folder files;
  const std::string folder = files / "checkpoint";
  const std::int64_t steps = 25;
  std::int64_t steps_made = 0;
  std::function<void(std::int64_t)> before_step = [](auto) {};
  std::vector<torch::Tensor> parameters;  // after the last step

  long_training() {
    dropout = 0.5;
    torch::manual_seed(1);
    head->reset_parameters();
  }

  void train_step(std::int64_t step, const troupe::remote_module& half, troupe::optimizer& optimizer) {
    before_step(step);
    troupe::context context{driver};
    context.backward({torch::mse_loss(head(half.call("forward", {inputs}).get().tensor(0)), targets)}).get();
    optimizer.step(context);
    ++steps_made;
    parameters = {half.parameter("weight"), half.parameter("bias"), head->weight.clone(), head->bias.clone()};
  }

  void train(const troupe::remote_module& half, troupe::optimizer& optimizer, bool& resume) {
    // save:begin
    if (!resume) optimizer.save(folder, {{"step", 0}});  // a new run begins here
    resume = true;
    auto step = troupe::get<std::int64_t>(optimizer.load(folder), "step");
    while (step < steps) {
      train_step(step, half, optimizer);
      if (++step % 10 == 0) optimizer.start_save(folder, {{"step", step}});
    }
    // save:end
  }

  // lost_stage:begin
  void train_with_retries(bool resume) {
    for (int attempt = 0;; ++attempt) {
      try {
        const auto half = driver.peer("stage", std::chrono::minutes(5)).create("encoder");
        troupe::optimizer optimizer{driver, {"adam", {{"lr", 0.02}}}, {half}, {{"weight", head->weight}, {"bias", head->bias}}};
        return train(half, optimizer, resume);
      } catch (const troupe::error& failure) {
        if (attempt == 3 || !is_lost_stage(failure)) throw;
        std::fprintf(stderr, "%s\n", failure.what());
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
    }
  }
  // lost_stage:end

  // is_lost_stage:begin
  static bool is_lost_stage(const troupe::error& failure) {
    using enum troupe::errc;
    const auto code = failure.code();
    const bool is_away = code == peer_down || code == unknown_peer || code == stopping || code == deadline_passed;
    return is_away || code == unknown_function || code == unknown_context;  // the last two: it is back without its objects
  }
  // is_lost_stage:end
};

/// The parameters after a run.
std::vector<torch::Tensor> result_of(long_training& run, bool resume = false) {
  run.train_with_retries(resume);
  return run.parameters;
}

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return at::equal(x, y); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_goes_on_where_its_checkpoint_was_with_the_bits_of_a_run_that_did_not_stop) {
  long_training whole;
  const auto expected = result_of(whole);
  BOOST_TEST(whole.steps_made == 25);

  long_training stopped;
  stopped.before_step = [](auto step) {
    if (step == 17) throw std::runtime_error("a user stops the program");
  };
  BOOST_CHECK_THROW(result_of(stopped), std::runtime_error);
  stopped.before_step = [](auto) {};
  stopped.steps_made = 0;
  BOOST_TEST(same(result_of(stopped, true), expected));
  BOOST_TEST(stopped.steps_made == 15);
}

BOOST_AUTO_TEST_CASE(a_training_goes_on_after_its_stage_was_stopped_with_the_bits_of_one_that_lost_none) {
  long_training whole;
  const auto expected = result_of(whole);

  long_training struck;
  std::future<void> restart;
  struck.before_step = [&](auto step) {
    if (step != 17 || restart.valid()) return;
    struck.stage_node.reset();
    restart = std::async(std::launch::async, [&] { struck.start_stage(); });
  };
  BOOST_TEST(same(result_of(struck), expected));
  BOOST_TEST(restart.valid());
}

namespace {

struct running_scripts : two_nodes {
  const temporary_folder files;
  const std::string path = files / "model.pt";
  running_scripts() : two_nodes([](troupe::settings& options) { options.allow_scripts = true; }) {
    torch::jit::Module script("model");
    script.register_attribute("training", c10::BoolType::get(), true);
    script.register_parameter("weight", torch::ones({100, 4}).requires_grad_(), false);
    script.define(R"(
      def forward(self, tokens, mask, scale: float = 1.0):
          return (torch.embedding(self.weight, tokens) * mask.unsqueeze(2) * scale, mask)
    )");
    script.save(path);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_script_runs_and_trains_on_another_node, running_scripts) {
  const auto tokens = torch::randint(100, {2, 16});
  const auto mask = torch::ones({2, 16}, torch::kLong);
  // script:begin
  const auto model = troupe::create_script(driver.peer("stage"), torch::jit::load(path));
  troupe::optimizer optimizer{driver, {"adamw", {{"lr", 1e-3}}}, {model}};
  troupe::context context{driver};
  const auto output = model.call("forward", {tokens, mask}, {{"scale", 0.5}}).get().tensor(0);
  context.backward({output.square().mean()}).get();
  optimizer.step(context);
  // script:end
  BOOST_TEST(output.sizes() == (std::vector<std::int64_t>{2, 16, 4}), boost::test_tools::per_element());
  BOOST_TEST(at::equal(output.detach(), torch::full({2, 16, 4}, 0.5)));
  BOOST_TEST(!at::equal(model.parameter("weight"), torch::ones({100, 4})));
  model.eval();
}

BOOST_FIXTURE_TEST_CASE(threads_call_at_once_in_one_context, training) {
  one_process twin(half, head);
  const auto& half = this->half;
  // threads:begin
  troupe::context context{driver};
  std::vector<std::future<torch::Tensor>> parts;
  for (const auto& part : inputs.chunk(4))
    parts.push_back(std::async(std::launch::async, [&half, part, branch = troupe::context::branch{driver}] {
      const troupe::context::scope scope{branch};  // calls of this thread join the context
      return half.call("forward", {part}).get().tensor(0);
    }));
  std::vector<torch::Tensor> hidden;
  for (auto& part : parts) hidden.push_back(part.get());
  context.backward({torch::mse_loss(head(torch::cat(hidden)), targets)}).get();
  // threads:end
  optimizer.step(context);
  twin.loss(inputs, targets).backward();
  twin.step();
  BOOST_TEST(twin.is_like(half, head));
}

namespace how_to {

// actor_messages:begin
/// "Run these tensors through your layer", and the answer to it.
struct activation {
  troupe::autograd_message tensors;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, activation& x) {
  return f(caf::meta::type_name("activation"), x.tensors);
}

using layer_actor = caf::typed_actor<caf::replies_to<activation>::with<activation>>;

/// For settings::configure of both nodes.
void configure(caf::actor_system_config& config) { config.add_message_type<activation>("activation"); }
// actor_messages:end

// actor:begin
layer_actor::behavior_type behaviour(layer_actor::pointer, troupe::node* here, torch::nn::Linear layer) {
  return {[here, layer](activation& request) mutable {
    const troupe::joined_scope scope(*here, std::move(request.tensors));
    return activation{scope.reply({torch::tanh(layer(scope.tensor(0)))})};
  }};
}
// actor:end

struct with_messages : two_nodes {
  with_messages() : two_nodes([](troupe::settings& options) { options.configure = configure; }) {}
};

}  // namespace how_to

BOOST_FIXTURE_TEST_CASE(own_actors_take_part_in_a_pass, how_to::with_messages) {
  using namespace how_to;
  torch::nn::Linear layer(1, 32);
  std::atomic<int> gradients = 0;
  layer->weight.register_hook([&](const torch::Tensor&) { ++gradients; });
  auto& stage = *stage_node;
  // actor_published:begin
  const auto actor = stage.system().spawn<caf::detached>(behaviour, &stage, layer);
  stage.publish("layer", caf::actor_cast<caf::strong_actor_ptr>(actor));
  // actor_published:end
  // actor_called:begin
  torch::Tensor hidden;
  const auto where = driver.peer("stage");
  const auto layer_there = caf::actor_cast<layer_actor>(where.actor("layer"));
  troupe::context context{driver};
  caf::scoped_actor self{driver.system()};
  self->request(layer_there, std::chrono::seconds(20), activation{troupe::join_graphs(where, {inputs})})
    .receive([&](activation& answer) { hidden = troupe::joined_tensor(driver, std::move(answer.tensors), 0); },
             [](const caf::error& reason) { throw troupe::to_exception(reason, "the layer"); });
  context.backward({torch::mse_loss(head(hidden), targets)}).get();
  // actor_called:end
  BOOST_TEST(gradients == 1);
  BOOST_TEST(at::equal(hidden.detach(), torch::tanh(layer(inputs)).detach()));
}

namespace {

struct traced : training {
  traced() : training([](troupe::settings& options) { options.trace = true; }) {}
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_pass_that_hangs_ends_at_its_deadline_with_names_and_a_trace, traced) {
  const temporary_folder files;
  const auto path = files / "trace.json";
  std::promise<void> released;
  seen.in_backward = [waits = released.get_future().share()] { waits.wait(); };
  troupe::context context{driver};
  const auto error = loss();
  const auto told = troupe::test::captured_stderr([&] {
    // hang:begin
    troupe::backward_options options;
    options.deadline = std::chrono::seconds(2);
    try {
      context.backward({error}, options).get();
    } catch (const troupe::error& failure) {
      std::fprintf(stderr, "%s\n", failure.what());
      std::ofstream(path) << driver.collect_trace({"stage"});  // for https://ui.perfetto.dev
    }
    // hang:end
  });
  released.set_value();
  BOOST_TEST(told == "backward was not complete within its deadline of 2 s; not done with it: 'stage'\n");
  const auto trace = troupe::test::read_text(path);
  BOOST_TEST(contains(trace, R"("name":"forward","cat":"request","pid":1)"));  // on the driver
  BOOST_TEST(contains(trace, R"("name":"forward","cat":"call","pid":2)"));     // on the stage
}

BOOST_AUTO_TEST_SUITE_END()
