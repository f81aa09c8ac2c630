// SPDX-License-Identifier: BSD-3-Clause
/// A pipeline written as actors alone. Two typed actors on two nodes hold a layer each and send activations in messages of
/// their own. Only the tensors in these messages are troupe's, and gradients flow back through them.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

namespace pipeline {

/// Asks a stage to run these tensors through its layer. The answer is of the same type.
struct activation {
  troupe::autograd_message tensors;
};

/// Asks a stage to step its layer with the gradients of this message's context. The answer is of the same type.
struct step {
  troupe::autograd_message context;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, activation& x) {
  return f(caf::meta::type_name("activation"), x.tensors);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step& x) {
  return f(caf::meta::type_name("step"), x.context);
}

using stage_actor = caf::typed_actor<caf::replies_to<activation>::with<activation>, caf::replies_to<step>::with<step>>;

}  // namespace pipeline

namespace {

using pipeline::activation;
using pipeline::stage_actor;
using pipeline::step;

constexpr auto deadline = std::chrono::seconds(20);
constexpr double rate = 0.05;

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  options.configure = [](caf::actor_system_config& config) {
    config.add_message_type<activation>("pipeline::activation").add_message_type<step>("pipeline::step");
  };
  return options;
}

/// A node with a layer, and with the actor that runs and steps the layer.
class stage {
 public:
  stage(const std::string& name, std::int64_t in, std::int64_t out) : here_(named(name)), layer_(in, out) {
    here_.publish("stage", caf::actor_cast<caf::strong_actor_ptr>(here_.system().spawn<caf::detached>(behave, this)));
  }
  troupe::node& here() { return here_; }

 private:
  static stage_actor::behavior_type behave(stage_actor::pointer, stage* mine) {
    return {[mine](activation& request) {
              const troupe::joined_scope scope(mine->here_, std::move(request.tensors));
              return activation{scope.reply({torch::tanh(mine->layer_(scope.tensor(0)))})};
            },
            [mine](step& request) {
              const troupe::joined_scope scope(mine->here_, std::move(request.context));
              const auto gradients = scope.gradients();
              torch::NoGradGuard no_grad;
              for (auto& parameter : mine->layer_->parameters()) parameter.sub_(rate * gradients->find(parameter));
              return step{scope.reply({})};
            }};
  }

  troupe::node here_;
  torch::nn::Linear layer_;
};

/// Sends `request` to a stage and waits. Returns the answer, which is a message of the same type.
template <class Message>
Message ask(troupe::node& from, const stage_actor& to, Message request) {
  caf::scoped_actor self{from.system()};
  Message answer;
  self->request(to, deadline, std::move(request))
    .receive([&](Message& came) { answer = std::move(came); },
             [](const caf::error& reason) { throw troupe::to_exception(reason, "the pipeline"); });
  return answer;
}

void run() {
  torch::manual_seed(1);
  stage first("first", 1, 16);
  stage second("second", 16, 16);
  troupe::node driver{named("driver")};
  std::vector<std::pair<troupe::peer, stage_actor>> stages;
  for (auto* each : {&first, &second}) {
    auto where = driver.peer(driver.join("127.0.0.1", each->here().port()));
    stages.emplace_back(where, caf::actor_cast<stage_actor>(where.actor("stage")));
  }
  torch::nn::Linear head(16, 1);
  const auto inputs = torch::linspace(-2, 2, 64).unsqueeze(1);
  const auto targets = inputs.square() / 4;

  double before = 0;
  double loss = 0;
  for (int i = 0; i < 300; ++i) {
    troupe::context pass{driver};
    auto x = inputs;
    for (const auto& [where, actor] : stages) {
      auto answer = ask(driver, actor, activation{troupe::join_graphs(where, {x})});
      x = troupe::joined_tensor(driver, std::move(answer.tensors), 0);
    }
    const auto error = torch::mse_loss(head(x), targets);
    pass.backward({error}).get();
    for (const auto& [where, actor] : stages) ask(driver, actor, step{troupe::join_graphs(where, {})});
    {
      torch::NoGradGuard no_grad;
      for (auto& parameter : head->parameters()) parameter.sub_(rate * pass.gradient(parameter));
    }
    loss = error.item<double>();
    if (i == 0) before = loss;
  }
  std::printf("loss %.4f before, %.4f after 300 steps through two actors\n", before, loss);
  if (!(loss < 0.02)) throw std::runtime_error("expected a loss below 0.02");
}

}  // namespace

int main() try { run(); } catch (const std::exception& failure) {
  std::fprintf(stderr, "own_actors: %s\n", failure.what());
  return 1;
}
