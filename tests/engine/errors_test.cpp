// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"

using namespace troupe::test;
using torch::autograd::variable_list;
using trace = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(errors)

namespace {

struct my_error : std::runtime_error {
  my_error(const std::string& text, int code) : std::runtime_error(text), code(code) {}
  int code;
};

struct no_std_exception {
  int code;
};

at::Tensor leaf(at::IntArrayRef shape) { return at::ones(shape).requires_grad_(); }

template <class Thrown>
at::Tensor throwing(const at::Tensor& from, Thrown what) {
  return through(from, [what](const at::Tensor&) -> at::Tensor { throw what; });
}

using shared_trace = std::shared_ptr<trace>;

/// A function that records when it runs and when its saved variables are released. The records are shared, because libtorch's
/// engine keeps ready functions after an error until the thread's next pass.
struct saving final : torch::autograd::Node {
  saving(std::string name, shared_trace notes, torch::autograd::edge_list next)
      : Node(std::move(next)), given_name(std::move(name)), notes(std::move(notes)) {}
  variable_list apply(variable_list&& inputs) override {
    notes->push_back("run " + given_name);
    return std::move(inputs);
  }
  void will_release_variables() override { notes->push_back("will release " + given_name); }
  void release_variables() override { notes->push_back("release " + given_name); }
  std::string name() const override { return given_name; }
  std::string given_name;
  shared_trace notes;
};

at::Tensor save(const at::Tensor& from, const std::string& name, const shared_trace& notes) {
  auto function =
    troupe::engine::make_node<saving>(name, notes, torch::autograd::edge_list{torch::autograd::impl::gradient_edge(from)});
  at::Tensor result = from.detach().clone();
  torch::autograd::create_gradient_edge(result, std::move(function));
  return result;
}

std::weak_ptr<int> watch(const at::Tensor& tensor, at::Tensor& watched) {
  auto token = std::make_shared<int>(0);
  std::weak_ptr<int> weak = token;
  watched = at::from_blob(tensor.data_ptr(), tensor.sizes(), [tensor, token](void*) mutable { token.reset(); });
  return weak;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_exception_of_any_type_arrives_as_itself) {
  const auto x = leaf({2});
  BOOST_CHECK_EXCEPTION(troupe::backward({throwing(x, my_error("mine", 7)).sum()}), my_error,
                        [](const my_error& error) { return error.code == 7 && std::string(error.what()) == "mine"; });
  BOOST_CHECK_EXCEPTION(troupe::backward({throwing(x, no_std_exception{8}).sum()}), no_std_exception,
                        [](const no_std_exception& error) { return error.code == 8; });
  BOOST_CHECK_EXCEPTION(troupe::backward({throwing(x, 42).sum()}), int, [](int number) { return number == 42; });
  BOOST_TEST(error_of([&] { troupe::backward({throwing(x, c10::ValueError({}, "a value")).sum()}); }) == "a value");
  BOOST_CHECK_THROW(troupe::backward({throwing(x, c10::ValueError({}, "a value")).sum()}), c10::ValueError);
}

BOOST_AUTO_TEST_CASE(the_first_error_wins_and_the_rest_of_the_pass_stops) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto early = throwing(x, my_error("second", 2)).sum();
    const auto late = throwing(x, my_error("first", 1)).sum();
    early.register_hook([&](const at::Tensor&) { notes.emplace_back("the rest goes on"); });
    notes.push_back(error_of([&] { run_on.backward({early + late}); }));
    notes.emplace_back(x.grad().defined() ? "some gradient" : "no gradient");
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
  BOOST_TEST(run(way(true))[0] == "std: first");
}

// GT-4
BOOST_AUTO_TEST_CASE(buffers_are_freed_before_the_error_arrives) {
  const auto x = leaf({2});
  std::vector<std::weak_ptr<int>> given;
  const auto made_anew = [&](const at::Tensor& gradient) {
    at::Tensor watched;
    given.push_back(watch(gradient.clone(), watched));
    return watched;
  };
  const auto waits = through(x, made_anew);  // gets one gradient, waits for another one, never runs
  const auto ready = through(x, made_anew);  // would run after the failing function
  const auto failing = throwing(waits, my_error("in between", 1));
  const auto feeds = through(waits, made_anew);  // runs first
  const auto feeds_ready = through(ready, made_anew);
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(failing.sum() + feeds.sum() + feeds_ready.sum())};
  settings.root_gradients = {at::ones({})};
  troupe::engine::graph_task task(std::move(settings));
  BOOST_CHECK_THROW(task.run(), my_error);
  BOOST_TEST(given.size() == 2u);
  BOOST_TEST(task.finished());
  for (const auto& each : given) BOOST_TEST(each.expired());
}

BOOST_AUTO_TEST_CASE(the_graph_is_usable_after_an_error) {
  const auto run = [](const way& run_on) {
    trace notes;
    bool fails = true;
    const auto x = at::arange(1, 4, at::kFloat).requires_grad_();
    const auto y = through(x.exp(), [&](at::Tensor gradient) {
      if (fails) throw my_error("once", 1);
      return gradient;
    });
    const auto loss = y.sum();
    notes.push_back(error_of([&] { run_on.backward({loss}); }));
    fails = false;
    notes.push_back(error_of([&] { run_on.backward({loss}); }));  // the functions that ran before had nothing saved
    notes.push_back(text_of(x.grad()));
    notes.push_back(error_of([&] { run_on.backward({loss}); }).substr(0, 60));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 4);
}

BOOST_AUTO_TEST_CASE(a_task_names_the_function_that_failed) {
  const auto x = leaf({2});
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(throwing(x, 1).exp().sum())};
  settings.root_gradients = {at::ones({})};
  troupe::engine::graph_task task(std::move(settings));
  BOOST_CHECK_THROW(task.run(), int);
  BOOST_TEST(task.failed_function() == "through");
  BOOST_TEST(task.finished());
  BOOST_CHECK_NO_THROW(task.run());
}

BOOST_AUTO_TEST_CASE(an_error_of_a_pass_within_a_pass_ends_both_unless_it_is_caught) {
  const auto run = [](const way& run_on) {
    trace notes;
    const auto x = leaf({2});
    const auto inner = throwing(x, my_error("inner", 1)).sum();
    for (const bool caught : {false, true}) {
      const auto outer = through(x, [&](at::Tensor gradient) {
        if (caught)
          notes.push_back("caught " + error_of([&] { run_on.backward({inner}); }));
        else
          run_on.backward({inner});
        return gradient;
      });
      notes.push_back(error_of([&] { run_on.backward({outer.sum()}); }));
    }
    notes.push_back(text_of(x.grad()));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 4);
}

BOOST_AUTO_TEST_CASE(saved_variables_are_released_as_early_as_in_libtorch) {
  for (const bool keep : {false, true}) {
    const auto run = [keep](const way& run_on) {
      const auto notes = std::make_shared<trace>();
      const auto x = leaf({2});
      const auto y = save(save(save(x, "c", notes), "b", notes), "a", notes);
      y.register_hook([&](const at::Tensor&) { notes->push_back("hook of a"); });
      run_on.backward({y.sum()}, {}, keep);
      return trace(*notes);
    };
    TROUPE_TEST_BOTH_WAYS(run, keep ? 4 : 10);
  }
}

BOOST_AUTO_TEST_CASE(a_function_that_fails_keeps_its_saved_variables) {
  const auto run = [](const way& run_on) {
    const auto notes = std::make_shared<trace>();
    const auto x = leaf({2});
    const auto y = save(save(x, "below", notes), "hooked", notes);
    y.grad_fn()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [](const variable_list&, const variable_list&) -> variable_list { throw my_error("after the function", 1); }));
    notes->push_back(error_of([&] { run_on.backward({y.sum()}); }));
    return trace(*notes);
  };
  TROUPE_TEST_BOTH_WAYS(run, 3);
}

BOOST_AUTO_TEST_CASE(a_gradient_is_freed_as_soon_as_its_function_has_run) {
  const auto x = leaf({2});
  std::weak_ptr<int> given;
  bool gone = false;
  const auto y = through(through(x,
                                 [&](at::Tensor gradient) {
                                   gone = given.expired();
                                   return gradient;
                                 }),
                         [](const at::Tensor& gradient) { return gradient * 2; });
  const auto z = through(y, [&](const at::Tensor& gradient) {
    at::Tensor watched;
    given = watch(gradient.clone(), watched);
    return watched;
  });
  troupe::backward({z.sum()});
  BOOST_TEST(gone);
}

BOOST_AUTO_TEST_CASE(a_second_pass_gets_libtorchs_error_word_for_word) {
  const auto run = [](const way& run_on) {
    const auto x = leaf({3});
    const auto kept = x.exp().sum();
    run_on.backward({kept}, {}, true);
    trace notes{error_of([&] { run_on.backward({kept}); })};
    notes.push_back(error_of([&] { run_on.backward({kept}); }));
    notes.push_back(error_of([&] { run_on.grad({kept}, {x}); }));
    const auto inside = x.sin();
    inside.mul_(2);
    const auto changed = inside * inside;
    inside.add_(1);
    notes.push_back(error_of([&] { run_on.backward({changed.sum()}); }));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 4);
  BOOST_TEST(run(way(true))[1].find("Trying to backward through the graph a second time") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_graph_of_gradients_lives_on_when_its_pass_has_released_nothing) {
  const auto run = [](const way& run_on) {
    const auto x = at::arange(1, 4, at::kDouble).requires_grad_();
    auto y = (x.pow(4) + x.exp() * x.sin()).sum();
    trace notes;
    for (int order = 1; order <= 4; ++order) {
      const auto gradient = run_on.grad({y}, {x}, {}, false, true)[0];
      notes.push_back(text_of(gradient));
      y = (gradient * gradient).sum();
    }
    run_on.backward({y});
    notes.push_back(text_of(x.grad()));
    return notes;
  };
  TROUPE_TEST_BOTH_WAYS(run, 5);
}

BOOST_AUTO_TEST_CASE(a_leaf_that_has_become_the_result_of_a_function_takes_no_gradient) {
  const auto x = leaf({2});
  const auto loss = (x * 2).sum();
  torch::autograd::impl::set_gradient_edge(x, torch::autograd::impl::gradient_edge(leaf({2}).exp()));
  const auto run = [&](const way& run_on) { return trace{error_of([&] { run_on.backward({loss}, {}, true); })}; };
  TROUPE_TEST_BOTH_WAYS(run, 1);
  BOOST_TEST(run(way(true))[0].find("leaf variable has been moved into the graph interior") != std::string::npos);

  troupe::engine::gradient_table leaves;
  troupe::engine::graph_task_settings settings;
  settings.roots = {torch::autograd::impl::gradient_edge(loss)};
  settings.root_gradients = {at::ones({})};
  settings.leaves = &leaves;
  troupe::engine::graph_task task(std::move(settings));
  BOOST_TEST(error_of([&] { task.run(); }) == "leaf variable has been moved into the graph interior");
  BOOST_TEST(!leaves.find(x).defined());
}

BOOST_AUTO_TEST_SUITE_END()
