// SPDX-License-Identifier: BSD-3-Clause
// Gradients of gradients over several nodes, compared with libtorch's gradients in one process.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <functional>

#include <troupe/troupe.hpp>

#include "linear_cluster.hpp"
#include "message_boundary.hpp"

namespace {

using tensors = std::vector<at::Tensor>;

at::Tensor sent(const at::Tensor& tensor) { return troupe::test::cross({tensor}).at(0); }

/// The functions that the nodes compute. The same functions run in one process for comparison.
struct model {
  model() {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
    for (auto* each : {&first, &second}) *each = (at::randn({3, 3}, generator) * 0.8).requires_grad_();
    x = at::randn({4, 3}, generator).requires_grad_();
  }

  at::Tensor outer(const at::Tensor& input, const std::function<at::Tensor(at::Tensor)>& next) const {
    const auto hidden = at::mm(input, first).tanh() * input;
    return next(hidden) * hidden + at::mm(input, first).sigmoid();
  }
  at::Tensor inner(const at::Tensor& input) const { return (at::mm(input, second) * input).tanh() + at::mm(input, second); }
  at::Tensor through_both(const at::Tensor& input) const {
    return sent(outer(sent(input), [this](const at::Tensor& hidden) { return sent(inner(sent(hidden))); }));
  }

  at::Tensor first;   // on b
  at::Tensor second;  // on c
  at::Tensor x;       // on a
};

struct chain_of_three {
  chain_of_three() {
    at::set_num_threads(1);
    b.functions().add("outer", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{remote.outer(arguments.tensors.at(0), [this](const at::Tensor& hidden) {
        return b.peer("c").call("inner", {hidden}).get().tensors.at(0);
      })}};
    });
    c.functions().add("inner", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{remote.inner(arguments.tensors.at(0))}};
    });
    c.functions().add("cube", [](troupe::call_arguments& arguments) {
      const auto& x = arguments.tensors.at(0);
      return troupe::call_reply{{x * x * x}};
    });
    const auto gradient_of = [](const at::Tensor& leaf) {
      return [&leaf](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.gradients->find(leaf)}}; };
    };
    b.functions().add("gradient", gradient_of(remote.first));
    c.functions().add("gradient", gradient_of(remote.second));
    b.join("127.0.0.1", c.port());
    a.join("127.0.0.1", b.port());
    a.join("127.0.0.1", c.port());
    b.peer("c");
    a.peer("c");
  }

  static troupe::backward_options recorded() {
    troupe::backward_options result;
    result.create_graph = true;
    return result;
  }
  at::Tensor ask(const char* node, const char* function, tensors arguments = {}) {
    return a.peer(node).call(function, std::move(arguments)).get().tensors.at(0);
  }
  void check(const troupe::context& pass) {
    const std::pair<at::Tensor, at::Tensor> pairs[] = {{pass.gradient(remote.x), local.x.grad()},
                                                       {ask("b", "gradient"), local.first.grad()},
                                                       {ask("c", "gradient"), local.second.grad()}};
    for (const auto& [found, expected] : pairs) {
      BOOST_REQUIRE(found.defined());
      BOOST_TEST(at::equal(found.detach(), expected.detach()), "found " << found << "\nexpected " << expected);
    }
  }
  static void backward(const at::Tensor& root, bool create_graph) {
    torch::autograd::backward({root}, {}, create_graph, create_graph);
  }

  model remote;
  model local;
  troupe::node a{troupe::test::named_settings("a")};
  troupe::node b{troupe::test::named_settings("b")};
  troupe::node c{troupe::test::named_settings("c")};
};

at::Tensor squares(const at::Tensor& x) { return (x * x).sum(); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(higher_order, chain_of_three)

BOOST_AUTO_TEST_CASE(a_gradient_penalty_over_two_nodes_has_the_numbers_of_one_process) {
  troupe::context pass(a);
  const auto y = ask("c", "inner", {remote.x}).sum();
  pass.backward({y}, recorded()).get();
  const auto gradient = pass.gradient(remote.x);
  BOOST_REQUIRE(gradient.requires_grad());
  pass.backward({y + squares(gradient)}).get();

  const auto expected = sent(local.inner(sent(local.x))).sum();
  backward(expected, true);
  BOOST_TEST(at::equal(gradient.detach(), local.x.grad().detach()));
  backward(expected + squares(local.x.grad()), false);
  BOOST_TEST(at::equal(pass.gradient(remote.x).detach(), local.x.grad().detach()));
  BOOST_TEST(at::equal(ask("c", "gradient").detach(), local.second.grad().detach()));
}

BOOST_AUTO_TEST_CASE(a_gradient_penalty_over_a_chain_of_three_nodes_has_the_numbers_of_one_process) {
  troupe::context pass(a);
  const auto y = ask("b", "outer", {remote.x}).sum();
  pass.backward({y}, recorded()).get();
  // The root depends on gradients of every node. The gradients of the weights come by calls that join the graph.
  pass.backward({y + squares(pass.gradient(remote.x)) + squares(ask("b", "gradient")) + squares(ask("c", "gradient"))}).get();

  const auto expected = local.through_both(local.x).sum();
  backward(expected, true);
  backward(expected + squares(local.x.grad()) + squares(sent(local.first.grad())) + squares(sent(local.second.grad())), false);
  check(pass);
}

BOOST_AUTO_TEST_CASE(a_pass_of_first_order_after_one_that_was_recorded_completes) {
  troupe::context pass(a);
  pass.backward({ask("b", "outer", {remote.x}).sum()}, recorded()).get();
  pass.backward({ask("b", "outer", {remote.x}).sum()}).get();  // no function here was recorded by the first pass
  backward(local.through_both(local.x).sum(), true);
  backward(local.through_both(local.x).sum(), false);
  check(pass);
}

BOOST_AUTO_TEST_CASE(third_derivatives_cross_nodes) {
  const auto run = [](const at::Tensor& cube, const std::function<void(const at::Tensor&, bool)>& backward,
                      const std::function<at::Tensor()>& gradient) {
    backward(cube.sum(), true);            // 3 x^2
    backward(squares(gradient()), true);   // and 36 x^3
    backward(squares(gradient()), false);  // and 2 (3 x^2 + 36 x^3) (6 x + 108 x^2)
  };
  troupe::context pass(a);
  run(
    ask("c", "cube", {remote.x}),
    [&](const at::Tensor& root, bool create_graph) {
      troupe::backward_options options;
      options.create_graph = create_graph;
      pass.backward({root}, options).get();
    },
    [&] { return pass.gradient(remote.x); });
  run(local.x * local.x * local.x, backward, [&] { return local.x.grad(); });
  BOOST_TEST(at::equal(pass.gradient(remote.x).detach(), local.x.grad().detach()));
}

BOOST_AUTO_TEST_CASE(gradients_have_no_graph_unless_it_is_asked_for) {
  troupe::context pass(a);
  pass.backward({ask("c", "cube", {remote.x}).sum()}).get();
  BOOST_TEST(!pass.gradient(remote.x).requires_grad());
}

BOOST_AUTO_TEST_SUITE_END()
