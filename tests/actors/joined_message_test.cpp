// SPDX-License-Identifier: BSD-3-Clause
// Messages between typed actors of the user's own join the graphs of the actors' nodes.
#include <troupe/actors/joined_message.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/troupe.hpp>

namespace own {

/// A message of this test: a name and tensors.
struct activation {
  std::string name;
  troupe::autograd_message payload;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, activation& x) {
  return f(caf::meta::type_name("activation"), x.name, x.payload);
}

using stage_actor = caf::typed_actor<caf::replies_to<activation>::with<activation>>;

}  // namespace own

namespace {

using namespace std::chrono_literals;
using own::activation;
using own::stage_actor;

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  options.deadline = 10s;
  options.configure = [](caf::actor_system_config& config) { config.add_message_type<activation>("own::activation"); };
  return options;
}

/// A stage multiplies its input by its weight. Then it answers, or hands the product on to the next stage, which answers.
class stage {
 public:
  stage(const std::string& name, double weight)
      : weight_(torch::full({2}, weight, torch::requires_grad())), here_(named(name)) {
    here_.publish("stage", caf::actor_cast<caf::strong_actor_ptr>(here_.system().spawn<caf::detached>(behave, this)));
    here_.functions().add("gradient", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.gradients->find(weight_)}};
    });
  }

  void hand_on_to(const std::string& name) {
    next_peer_ = here_.peer(name);
    next_ = caf::actor_cast<stage_actor>(next_peer_->actor("stage"));
  }

  troupe::node& here() { return here_; }

 private:
  static stage_actor::behavior_type behave(stage_actor::pointer self, stage* mine) {
    return {[=](activation& request) -> caf::result<activation> {
      try {
        const troupe::joined_scope scope(mine->here_, std::move(request.payload));
        if (request.name == "step") {
          const auto gradient = scope.gradients()->find(mine->weight_);
          at::NoGradGuard no_grad;
          if (gradient.defined()) mine->weight_.sub_(gradient);
          return activation{"stepped", scope.reply({mine->weight_.detach().clone()})};
        }
        const auto y = scope.tensor(0) * mine->weight_;
        if (mine->next_)
          return self->delegate(mine->next_, activation{request.name, troupe::join_graphs(*mine->next_peer_, {y})});
        return activation{request.name, scope.reply({y})};
      } catch (const troupe::error& reason) {
        return troupe::make_error(reason.code(), reason.what());
      }
    }};
  }

  at::Tensor weight_;
  std::optional<troupe::peer> next_peer_;
  stage_actor next_;
  troupe::node here_;
};

struct three_nodes {
  three_nodes() {
    for (auto* each : {&c.here(), &a}) each->join("127.0.0.1", b.here().port());
    first = caf::actor_cast<stage_actor>(a.peer("b").actor("stage"));
  }

  std::vector<at::Tensor> ask(const std::vector<at::Tensor>& inputs, const std::string& what = "x") {
    caf::scoped_actor self{a.system()};
    std::vector<at::Tensor> outputs;
    self->request(first, 10s, activation{what, troupe::join_graphs(a.peer("b"), inputs)})
      .receive([&](activation& answer) { outputs = troupe::joined_tensors(a, std::move(answer.payload)); },
               [](const caf::error& reason) { BOOST_FAIL(troupe::to_exception(reason).what()); });
    return outputs;
  }

  std::string refusal_of_step() {
    caf::scoped_actor self{a.system()};
    std::string text;
    self->request(first, 10s, activation{"step", troupe::join_graphs(a.peer("b"), {})})
      .receive([](activation&) {}, [&](const caf::error& reason) { text = troupe::to_exception(reason).what(); });
    return text;
  }

  at::Tensor gradient_on(const std::string& name) { return a.peer(name).call("gradient").get().tensors.at(0); }

  troupe::node a{named("a")};
  stage b{"b", 2};
  stage c{"c", 5};
  stage_actor first;
};

const std::string no_pass =
  "joined_scope::gradients: no backward pass of the message's context has completed, so it has no gradients; run "
  "context.backward(...).get() before the message is sent";

bool alike(const at::Tensor& x, const at::Tensor& y) { return x.defined() && y.defined() && at::equal(x, y); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(joined_message, three_nodes)

BOOST_AUTO_TEST_CASE(requests_and_answers_of_own_actors_join_the_graphs) {
  auto x = torch::tensor({1.0, 3.0}, torch::requires_grad());
  troupe::context pass{a};
  const auto y = ask({x}).at(0);
  BOOST_TEST(alike(y, torch::tensor({2.0, 6.0})));
  pass.backward({y.sum()}).get();
  BOOST_TEST(alike(pass.gradient(x), torch::full({2}, 2.0)));
  BOOST_TEST(alike(gradient_on("b"), torch::tensor({1.0, 3.0})));
}

BOOST_AUTO_TEST_CASE(a_sender_without_grad_mode_gets_an_answer_without_a_graph) {  // JS-3
  auto x = torch::tensor({1.0, 3.0}, torch::requires_grad());
  b.hand_on_to("c");
  troupe::context pass{a};
  {
    const torch::NoGradGuard no_graph;
    BOOST_TEST(!ask({x}).at(0).requires_grad());
  }
  {
    const c10::InferenceMode inference;
    BOOST_TEST(!ask({x}).at(0).requires_grad());
  }
  for (auto* each : {&a, &b.here(), &c.here()}) {
    const auto known = troupe::services_of(*each).contexts.find(pass.id()).record;
    BOOST_TEST((!known || known->release().sends.empty()));
  }
}

BOOST_AUTO_TEST_CASE(an_actor_steps_its_own_parameters_with_what_completed_passes_left) {
  auto x = torch::tensor({1.0, 3.0}, torch::requires_grad());
  troupe::context pass{a};
  BOOST_TEST(refusal_of_step() == no_pass);
  const auto y = ask({x}).at(0).sum();
  pass.backward({y}, {.keep_graph = true, .gradients = {}, .deadline = {}}).get();
  BOOST_TEST(alike(ask({}, "step").at(0), torch::tensor({1.0, -1.0})));
}

BOOST_AUTO_TEST_CASE(gradients_of_a_pass_that_failed_count_nowhere) {
  auto x = torch::tensor({1.0, 3.0}, torch::requires_grad());
  x.register_hook([](const at::Tensor&) { throw std::runtime_error("not today"); });
  troupe::context pass{a};
  BOOST_CHECK_THROW(pass.backward({ask({x}).at(0).sum()}).get(), troupe::error);
  BOOST_TEST(refusal_of_step() == no_pass);
  BOOST_TEST(!pass.gradient(x).defined());
}

BOOST_AUTO_TEST_CASE(gradients_are_asked_for_in_a_message_of_a_context) {
  caf::scoped_actor self{a.system()};
  self->request(first, 10s, activation{"step", troupe::join_graphs(a.peer("b"), {})})
    .receive([](activation&) { BOOST_FAIL("a message without a context has no gradients"); },
             [](const caf::error& reason) {
               BOOST_TEST(std::string(troupe::to_exception(reason).what()).find("belongs to no context") != std::string::npos);
             });
}

BOOST_AUTO_TEST_CASE(a_request_may_be_handed_on_to_an_actor_of_a_third_node) {
  b.hand_on_to("c");
  auto x = torch::tensor({1.0, 3.0}, torch::requires_grad());
  troupe::context pass{a};
  at::Tensor sum;
  for (int part = 0; part < 4; ++part) {
    const auto y = ask({x}).at(0);
    sum = sum.defined() ? sum + y : y;
  }
  pass.backward({sum.sum()}).get();
  BOOST_TEST(alike(pass.gradient(x), torch::full({2}, 40.0)));
  BOOST_TEST(alike(gradient_on("b"), torch::tensor({20.0, 60.0})));
  BOOST_TEST(alike(gradient_on("c"), torch::tensor({8.0, 24.0})));
}

// JS-2
BOOST_AUTO_TEST_CASE(outside_a_context_messages_are_plain) {
  auto x = torch::tensor({1.0, 3.0}, torch::requires_grad());
  const auto y = ask({x}).at(0);
  BOOST_TEST(alike(y, torch::tensor({2.0, 6.0})));
  BOOST_TEST(!y.requires_grad());
}

BOOST_AUTO_TEST_CASE(an_actor_that_is_not_published_is_named) {
  BOOST_CHECK_EXCEPTION(a.peer("b").actor("decoder"), troupe::error, [](const troupe::error& e) {
    return e.code() == troupe::errc::unknown_function && std::string(e.what()).find("'decoder'") != std::string::npos &&
           std::string(e.what()).find("'b'") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(tensors_that_are_too_large_together_are_refused_before_they_are_sent) {
  const auto large = torch::empty({1}, torch::kByte).expand({std::int64_t{2} << 30});  // one byte, expanded
  const auto refused = [](const troupe::error& e) {
    return e.code() == troupe::errc::unsupported_tensor &&
           std::string(e.what()).find("4294967296 bytes together") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(troupe::join_graphs(a.peer("b"), {large, large}), troupe::error, refused);
}

BOOST_AUTO_TEST_CASE(a_request_whose_payloads_are_too_large_together_fails_alone) {
  const auto counts = b.here().system().spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](const troupe::autograd_message& x, const troupe::autograd_message& y) {
      return static_cast<std::uint64_t>(x.tensors.at(0).nbytes() + y.tensors.at(0).nbytes());
    }};
  });
  b.here().publish("counts", caf::actor_cast<caf::strong_actor_ptr>(counts));
  const auto remote = caf::actor_cast<caf::actor>(a.peer("b").actor("counts"));
  const auto payload = [&] { return troupe::join_graphs(a.peer("b"), {torch::ones({6000}, torch::kByte)}); };
  caf::scoped_actor self{a.system()};
  std::string said;
  const auto bytes = [&]() -> std::uint64_t {
    std::uint64_t result = 0;
    self->request(remote, 10s, payload(), payload())
      .receive([&](std::uint64_t sum) { result = sum; },
               [&](const caf::error& reason) { said = troupe::to_exception(reason).what(); });
    return result;
  };
  BOOST_TEST(bytes() == 12'000U);
  troupe::set_longest_message(10'000);
  BOOST_TEST(bytes() == 0U);
  troupe::set_longest_message(troupe::max_message_bytes);
  BOOST_TEST(
    said ==
    "a message could not be read (unexpected_message): its receiver has no handler for it, or its sender could not write "
    "it, perhaps because its payloads have more than 4 GiB together (the sender's stderr says so)");
  BOOST_TEST(bytes() == 12'000U);  // the connection still works
  caf::anon_send_exit(counts, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_CASE(a_tensor_that_cannot_travel_is_refused_before_it_is_sent) {
  BOOST_CHECK_EXCEPTION(troupe::join_graphs(a.peer("b"), {torch::eye(2).to_sparse_csr()}), troupe::error,
                        [](const troupe::error& e) { return e.code() == troupe::errc::unsupported_tensor; });
}

BOOST_AUTO_TEST_CASE(a_message_without_the_tensor_that_its_receiver_needs_says_so) {
  three_nodes nodes;
  caf::scoped_actor self{nodes.a.system()};
  std::string text;
  self->request(nodes.first, 10s, activation{"x", troupe::join_graphs(nodes.a.peer("b"), {})})
    .receive([](activation&) {}, [&](const caf::error& reason) { text = troupe::to_exception(reason).what(); });
  BOOST_TEST(text == "expected a message of at least 1 tensor, got none");
}

BOOST_AUTO_TEST_CASE(an_answer_without_the_tensor_that_its_requester_needs_says_so) {
  const auto answer = [&] { return troupe::join_graphs(a.peer("a"), {torch::ones({2})}); };
  BOOST_TEST(alike(troupe::joined_tensor(a, answer(), 0), torch::ones({2})));
  BOOST_CHECK_EXCEPTION(troupe::joined_tensor(a, answer(), 1), troupe::error, [](const troupe::error& e) {
    return e.code() == troupe::errc::misuse && std::string(e.what()) == "expected a message of at least 2 tensors, got 1";
  });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(order_of_joined_messages)

namespace {

/// Lets handlers on several threads go on in a given order.
class turns {
 public:
  explicit turns(std::vector<int> order) : order_(std::move(order)) {}
  void wait_for(int which) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 10s, [&] { return order_.at(done_) == which; })) throw std::runtime_error("no turn came");
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> order_;
  std::size_t done_ = 0;
};

// The sum of these numbers depends on the order in which they are added.
const std::vector<float> inputs{1e8F, 3.0F, -1e8F};

at::Tensor expected_gradient() {
  const auto weight = torch::ones({1}, torch::requires_grad());
  std::vector<at::Tensor> outputs;
  for (const float each : inputs) outputs.push_back(torch::full({1}, each) * weight);
  torch::cat(outputs).sum().backward();
  return weight.grad();
}

}  // namespace

// JS-1
BOOST_AUTO_TEST_CASE(has_no_influence_on_sums) {
  std::vector<int> order{0, 1, 2};
  do {
    const auto weight = torch::ones({1}, torch::requires_grad());
    turns handled(order);
    troupe::node a{named("a")};
    troupe::node b{named("b")};
    b.functions().add(
      "gradient", [&](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.gradients->find(weight)}}; });
    for (int i = 0; i < 3; ++i) {
      const auto behave = [&, i](stage_actor::pointer) -> stage_actor::behavior_type {
        return {[&, i](activation& request) -> caf::result<activation> {
          handled.wait_for(i);
          const troupe::joined_scope scope(b, std::move(request.payload));
          activation answer{request.name, scope.reply({scope.tensor(0) * weight})};
          handled.end();
          return answer;
        }};
      };
      b.publish("stage" + std::to_string(i), caf::actor_cast<caf::strong_actor_ptr>(b.system().spawn<caf::detached>(behave)));
    }
    a.join("127.0.0.1", b.port());
    troupe::context pass{a};
    caf::scoped_actor self{a.system()};
    std::vector<at::Tensor> leaves;
    std::vector<at::Tensor> outputs(3);
    std::vector<std::function<void()>> receive;
    for (int i = 0; i < 3; ++i) {
      leaves.push_back(torch::full({1}, inputs[static_cast<std::size_t>(i)], torch::requires_grad()));
      const auto to = caf::actor_cast<stage_actor>(a.peer("b").actor("stage" + std::to_string(i)));
      auto request = self->request(to, 20s, activation{"x", troupe::join_graphs(a.peer("b"), {leaves.back()})});
      receive.emplace_back([&outputs, &a, i, request = std::make_shared<decltype(request)>(std::move(request))] {
        request->receive(
          [&](activation& answer) { outputs[static_cast<std::size_t>(i)] = joined_tensor(a, answer.payload, 0); },
          [](const caf::error& reason) { BOOST_FAIL(troupe::to_exception(reason).what()); });
      });
    }
    for (const auto& each : receive) each();
    pass.backward({torch::cat(outputs).sum()}).get();
    BOOST_TEST(alike(a.peer("b").call("gradient").get().tensors.at(0), expected_gradient()));
  } while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_SUITE_END()
