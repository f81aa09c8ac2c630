// SPDX-License-Identifier: BSD-3-Clause
// What hooks and a user's functions meet in a distributed pass: tensors without a gradient, their context, libtorch's callbacks.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/profiler_legacy.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/current_pass.hpp>
#include <troupe/troupe.hpp>

#include "loopback_nodes.hpp"
#include "stderr_in_pipe.hpp"
#include "support/thread_name.hpp"

using namespace std::chrono_literals;

namespace {

using tensors = std::vector<at::Tensor>;
using texts = std::vector<std::string>;

/// Three nodes. Each has a leaf `w` of its own.
struct cast {
  static troupe::settings named(std::string name) {
    troupe::settings result;
    result.name = std::move(name);
    result.deadline = 10s;
    return result;
  }

  cast() {
    b.join("127.0.0.1", c.port());
    a.join("127.0.0.1", b.port());
    for (auto* each : {&a, &b, &c}) {
      each->functions().add("gradient", [this, each](troupe::call_arguments& arguments) {
        const auto& leaf = w[each == &a ? 0 : each == &b ? 1 : 2];
        return troupe::call_reply{{arguments.gradients ? arguments.gradients->find(leaf) : at::Tensor()}};
      });
      // The second tensor comes of the first and of `w`, by way of the next node if there is one.
      each->functions().add("both", [this, each](troupe::call_arguments& arguments) {
        const auto& x = arguments.tensors.at(0);
        auto second = strict(x * w[each == &a ? 0 : each == &b ? 1 : 2], each->name() + " second");
        if (each == &b) second = strict(b.peer("c").call("both", {second}).get().tensor(1), "b from c");
        return troupe::call_reply{{strict(x * 2, each->name() + " first"), second}};
      });
      each->functions().add("first_alone", [](troupe::call_arguments& arguments) {
        return troupe::call_reply{{arguments.tensors.at(0) * arguments.tensors.at(0)}};
      });
    }
  }

  void note(const std::string& what) {
    const std::scoped_lock lock(mutex);
    notes.push_back(what);
  }
  texts sorted_notes() {
    const std::scoped_lock lock(mutex);
    std::sort(notes.begin(), notes.end());
    return notes;
  }
  /// The tensor, with a hook that fails on an undefined gradient.
  at::Tensor strict(const at::Tensor& tensor, const std::string& name) {
    tensor.register_hook([this, name](const at::Tensor& gradient) {
      note(name);
      return gradient.clamp(-100, 100);
    });
    return tensor;
  }
  at::Tensor gradient_on(const std::string& node) { return a.peer(node).call("gradient").get().tensors.at(0); }

  tensors w{torch::tensor({2.0, 3.0}, torch::requires_grad()), torch::tensor({5.0, 7.0}, torch::requires_grad()),
            torch::tensor({11.0, 13.0}, torch::requires_grad())};
  std::mutex mutex;
  texts notes;
  troupe::node a{named("a")};
  troupe::node b{named("b")};
  troupe::node c{named("c")};
};

bool same(const at::Tensor& x, const at::Tensor& y) { return x.defined() && y.defined() && at::equal(x, y); }

/// Counts an undefined gradient of an output as zeros, as the functions of a user do if they do not ask otherwise.
struct twins : torch::autograd::Function<twins> {
  static tensors forward(torch::autograd::AutogradContext*, const at::Tensor& x, const at::Tensor& y) { return {x * 1, y * 1}; }
  static tensors backward(torch::autograd::AutogradContext*, tensors gradients) { return gradients; }
};

/// Gives no gradient to its input.
struct silent : torch::autograd::Function<silent> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 1; }
  static tensors backward(torch::autograd::AutogradContext*, const tensors&) { return {at::Tensor()}; }
};

struct post_hook : torch::autograd::FunctionPostHook {
  explicit post_hook(std::function<void()> call) : call(std::move(call)) {}
  tensors operator()(const tensors& outputs, const tensors&) override {
    call();
    return outputs;
  }
  std::function<void()> call;
};

void queue_libtorchs_callback(std::function<void()> call) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(call));
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hooks_in_passes, cast)

// GT-10. The pass needs no discovery, so fast mode completes too.
BOOST_AUTO_TEST_CASE(what_only_an_unused_result_leads_to_does_not_run_on_any_node) {
  for (const auto mode : {troupe::pass_mode::smart, troupe::pass_mode::fast}) {
    notes.clear();
    auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
    troupe::context pass(a);
    auto results = a.peer("b").call("both", {x}).get().tensors;
    strict(results.at(0), "a first");
    strict(results.at(1), "a second").retain_grad();
    troupe::backward_options options;
    options.mode = mode;
    pass.backward({results.at(0).sum()}, options).get();
    BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 2.0})));
    BOOST_TEST(!gradient_on("b").defined());
    BOOST_TEST(!gradient_on("c").defined());
    BOOST_TEST(!results.at(1).grad().defined());
    BOOST_TEST((sorted_notes() == texts{"a first", "b first"}));
  }
}

// GT-10
BOOST_AUTO_TEST_CASE(what_only_an_unused_argument_comes_from_does_not_run) {
  for (auto* callee : {&a, &b}) {  // a node that calls itself too
    notes.clear();
    auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
    auto y = strict(torch::tensor({1.0, 4.0}, torch::requires_grad()), "leaf");
    troupe::context pass(a);
    const auto unused = twins::apply(y, strict(y * 3, "inner"));
    const auto to = callee == &a ? a.self() : a.peer("b");
    auto z = to.call("first_alone", {strict(x * 1, "used"), strict(unused[0], "0"), strict(unused[1], "1")}).get().tensor(0);
    pass.backward({z.sum()}).get();
    BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 8.0})));
    BOOST_TEST(!pass.gradient(y).defined());
    BOOST_TEST((sorted_notes() == texts{"used"}));
  }
}

// GT-10: node c waits for a gradient that node b no longer gives, and node b for one of a call that nobody used.
BOOST_AUTO_TEST_CASE(unused_tensors_and_unused_messages_meet) {
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  troupe::context pass(a);
  auto used = a.peer("b").call("both", {x}).get().tensors;
  auto unused = a.peer("b").call("both", {used.at(1)}).get().tensors;
  auto again = a.peer("b").call("both", {used.at(0) + unused.at(0).detach()}).get().tensors;
  pass.backward({again.at(0).sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({4.0, 4.0})));
  BOOST_TEST(!gradient_on("b").defined());
  BOOST_TEST(!gradient_on("c").defined());
  BOOST_TEST((sorted_notes() == texts{"b first", "b first"}));
}

// GT-10
BOOST_AUTO_TEST_CASE(a_gradient_that_a_function_left_undefined_travels_as_one) {
  b.functions().add("watched", [this](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * w[1];
    y.register_hook([this](const at::Tensor& gradient) {
      note(gradient.defined() ? "defined" : "undefined");
      return gradient;
    });
    return troupe::call_reply{{y, arguments.tensors.at(0) * 2}};
  });
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  troupe::context pass(a);
  auto results = a.peer("b").call("watched", {x}).get().tensors;
  pass.backward({(silent::apply(results.at(0)) + results.at(1)).sum()}).get();
  BOOST_TEST((sorted_notes() == texts{"undefined"}));
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0, 2.0})));
  BOOST_TEST(!gradient_on("b").defined());
}

// GT-10
BOOST_AUTO_TEST_CASE(a_recorded_pass_leaves_unused_tensors_out_of_the_pass_over_it) {
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  auto y = torch::tensor({2.0, 2.0}, torch::requires_grad());
  b.functions().add("products", [](troupe::call_arguments& arguments) {
    const auto& [p, q] = std::tie(arguments.tensors.at(0), arguments.tensors.at(1));
    return troupe::call_reply{{p * p, q * q * q}};
  });
  troupe::context pass(a);
  auto results = a.peer("b").call("products", {x, y}).get().tensors;
  troupe::backward_options recorded;
  recorded.create_graph = true;
  pass.backward({(results.at(0) + results.at(1)).sum()}, recorded).get();
  auto of_x = pass.gradient(x);
  strict(pass.gradient(y), "of y");
  pass.backward({(of_x * of_x).sum()}).get();
  BOOST_TEST(same(pass.gradient(x), torch::tensor({2.0 + 8.0, 8.0 + 32.0})));
  BOOST_TEST(same(pass.gradient(y), torch::tensor({12.0, 12.0})));
  BOOST_TEST(notes.empty());
}

// GT-11: on the node of the caller and on another, in hooks and in a user's function
BOOST_AUTO_TEST_CASE(libtorchs_callbacks_run_at_the_end_of_the_pass_on_their_node) {
  b.functions().add("queues", [this](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * w[1];
    y.register_hook([this](const at::Tensor& gradient) {
      queue_libtorchs_callback([this] {
        note("b callback");
        queue_libtorchs_callback([this] { note("b callback of a callback"); });
      });
      note("b hook");
      return gradient;
    });
    w[1].register_hook([this](const at::Tensor& gradient) {
      note("b leaf");
      return gradient;
    });
    return troupe::call_reply{{y}};
  });
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  x.register_hook([this](const at::Tensor& gradient) {
    note("a leaf");
    return gradient;
  });
  troupe::context pass(a);
  auto y = a.peer("b").call("queues", {x * 1}).get().tensor(0);
  y.register_hook([this](const at::Tensor& gradient) {
    queue_libtorchs_callback([this] { note("a callback"); });
    troupe::queue_callback([this] { note("a callback of troupe"); });
    return gradient;
  });
  pass.backward({y.sum()}).get();
  const auto at = [this](const std::string& what) { return std::find(notes.begin(), notes.end(), what) - notes.begin(); };
  BOOST_TEST_REQUIRE(notes.size() == 7u);
  BOOST_TEST(at("b hook") < at("b leaf"));
  BOOST_TEST(at("b leaf") < at("b callback"));
  BOOST_TEST(at("b callback") < at("b callback of a callback"));
  BOOST_TEST(at("a leaf") < at("a callback"));
  BOOST_TEST(at("a leaf") < at("a callback of troupe"));
}

BOOST_AUTO_TEST_CASE(a_callback_that_throws_fails_the_pass) {  // GT-11
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = a.peer("b").call("first_alone", {x}).get().tensor(0);
  x.register_hook([](const at::Tensor& gradient) {
    queue_libtorchs_callback([] { throw std::runtime_error("too late"); });
    return gradient;
  });
  BOOST_CHECK_EXCEPTION(pass.backward({y.sum()}).get(), troupe::error,
                        [](const troupe::error& e) { return std::string(e.what()).find("too late") != std::string::npos; });
}

// LT-6: as in libtorch's distributed autograd, where checkpoints that run nested passes are refused.
BOOST_AUTO_TEST_CASE(checkpoints_learn_that_a_distributed_pass_keeps_gradients_apart) {
  const auto ask = [this](const std::string& where) {
    return [this, where](const at::Tensor& gradient) {
      const bool libtorchs = torch::autograd::Engine::get_default_engine().is_checkpoint_valid();
      note(where + (libtorchs || troupe::is_checkpoint_valid() ? " valid" : " not valid"));
      return gradient;
    };
  };
  b.functions().add("asks", [this, ask](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * w[1];
    y.register_hook(ask("b"));
    return troupe::call_reply{{y}};
  });
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = a.peer("b").call("asks", {x * 1}).get().tensor(0);
  y.register_hook(ask("a"));
  pass.backward({y.sum()}).get();
  BOOST_TEST((sorted_notes() == texts{"a not valid", "b not valid"}));
  BOOST_TEST(troupe::is_checkpoint_valid());
  BOOST_TEST(torch::autograd::Engine::get_default_engine().is_checkpoint_valid());
}

// HP-1
BOOST_AUTO_TEST_CASE(hooks_have_the_context_of_their_pass) {
  troupe::context_id on_b;
  b.functions().add("asks", [&](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * w[1];
    y.register_hook([&](const at::Tensor& gradient) {
      on_b = troupe::context::current();
      return gradient;
    });
    return troupe::call_reply{{y}};
  });
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  troupe::context_id first;
  troupe::context_id last;
  bool opened = false;
  troupe::context pass(a);
  x.register_hook([&](const at::Tensor& gradient) {
    last = troupe::context::current();
    const troupe::context inner(a);  // another context may be open in a hook
    opened = troupe::context::current() == inner.id();
    return gradient;
  });
  auto y = a.peer("b").call("asks", {x * 1}).get().tensor(0);
  y.register_hook([&](const at::Tensor& gradient) {
    first = troupe::context::current();
    return gradient;
  });
  pass.backward({y.sum()}).get();
  BOOST_TEST((first == pass.id()));
  BOOST_TEST((last == pass.id()));
  BOOST_TEST((on_b == pass.id()));
  BOOST_TEST(opened);
}

// HP-1: what the hook makes of the gradient leads through node b.
BOOST_AUTO_TEST_CASE(calls_of_hooks_join_the_graph_of_a_recorded_pass) {
  b.functions().add("scale",
                    [this](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * w[1]}}; });
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  troupe::context pass(a);
  auto y = x * x;
  y.register_hook([this](const at::Tensor& gradient) { return a.peer("b").call("scale", {gradient}).get().tensor(0); });
  troupe::backward_options recorded;
  recorded.create_graph = true;
  pass.backward({(y * y).sum()}, recorded).get();  // the gradient of y, 2 x^2, gets the factor w
  auto gradient = pass.gradient(x);
  BOOST_TEST(same(gradient, torch::tensor({4 * 1.0 * 5, 4 * 64.0 * 7})));
  BOOST_TEST(gradient.requires_grad());
  pass.backward({gradient.sum()}).get();
  BOOST_TEST(same(gradient_on("b"), torch::tensor({4 * 1.0, 4 * 64.0})));
}

// HP-2
BOOST_AUTO_TEST_CASE(a_leafs_hooks_see_what_was_gathered_before_them) {
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  tensors before;
  tensors after;
  troupe::context pass(a);
  x.register_hook([&](const at::Tensor& gradient) {
    before.push_back(pass.gradient(x));
    return gradient;
  });
  const auto accumulation = torch::autograd::impl::grad_accumulator(x);
  accumulation->add_post_hook(std::make_unique<post_hook>([&] {
    after.push_back(pass.gradient(x));
    after.push_back(pass.gradients()->find(x));
  }));
  auto y = a.peer("b").call("first_alone", {x}).get().tensor(0);
  troupe::backward_options keep;
  keep.keep_graph = true;
  pass.backward({y.sum()}, keep).get();
  pass.backward({y.sum()}).get();
  BOOST_REQUIRE(before.size() == 2u);
  BOOST_REQUIRE(after.size() == 4u);
  const auto once = torch::tensor({2.0, 8.0});
  BOOST_TEST(!before[0].defined());
  BOOST_TEST(same(after[0], once));
  BOOST_TEST(same(after[1], once));
  BOOST_TEST(same(before[1], once));
  BOOST_TEST(same(after[2], once * 2));
  BOOST_TEST(same(after[3], once * 2));
  BOOST_TEST(same(pass.gradient(x), once * 2));
}

// HP-1, HP-2: on the node that started the pass and on another one
BOOST_AUTO_TEST_CASE(hooks_on_pass_workers_have_their_context_and_see_what_was_gathered_before_them) {
  constexpr int count = 8;
  const auto with_workers = [](const std::string& name) {
    auto result = named(name);
    result.pass_workers = 2;
    return result;
  };
  troupe::node d(with_workers("d"));
  troupe::node e(with_workers("e"));
  d.join("127.0.0.1", e.port());
  tensors factors;
  for (int i = 0; i < count; ++i) factors.push_back(at::linspace(1, 2, 100'000).requires_grad_());
  // When the hook runs, the function behind it has given the factor its gradient.
  const auto branches = [&factors](const at::Tensor& x, const std::function<void(int)>& hook) {
    tensors parts;
    for (int i = 0; i < count; ++i) {
      auto y = (x * (i + 0.3)).sin().exp();
      y.register_hook([hook, i](const at::Tensor& gradient) {
        hook(i);
        return gradient;
      });
      parts.push_back(y * factors[i]);
    }
    return at::stack(parts).sum(0);
  };
  const troupe::context* running = nullptr;
  std::atomic<int> on_d{0};
  std::atomic<int> on_e{0};
  std::atomic<int> wrong{0};
  const auto is_on_worker = [] { return troupe::test::thread_name() == "troupe.worker"; };
  e.functions().add("branches", [&](troupe::call_arguments& arguments) {
    return troupe::call_reply{{branches(arguments.tensor(0), [&, id = arguments.context](int) {
      on_e += is_on_worker() ? 1 : 0;
      wrong += troupe::context::current() == id ? 0 : 1;
    })}};
  });
  const auto passes = [&] {
    tensors seen(count);
    troupe::context pass(d);
    running = &pass;
    const auto x = at::linspace(0, 1, 100'000).requires_grad_();
    const auto y = branches(x, [&](int i) {
      on_d += is_on_worker() ? 1 : 0;
      wrong += troupe::context::current() == running->id() ? 0 : 1;
      seen[i] = running->gradient(factors[i]);
      wrong += same(running->gradients()->find(factors[i]), seen[i]) ? 0 : 1;
    });
    pass.backward({d.peer("e").call("branches", {y}).get().tensor(0).sum()}).get();
    for (int i = 0; i < count; ++i) BOOST_TEST(same(seen[i], pass.gradient(factors[i])), "branch " << i);
    return wrong == 0 && on_d > 0 && on_e > 0;
  };
  int left = 10;
  BOOST_TEST(troupe::test::becomes_true([&] { return passes() && --left <= 0; }));
  BOOST_TEST(wrong == 0);
}

// HP-1, HP-2, SR-1: deeper than a stack, and than what libtorch runs on one thread
BOOST_AUTO_TEST_CASE(hooks_of_deeply_nested_passes_have_the_context_of_the_outermost) {
  troupe::context pass(a);
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  std::set<std::thread::id> threads;
  int wrong = 0;
  const std::function<void(int)> nest = [&](int left) {
    threads.insert(std::this_thread::get_id());
    wrong += troupe::context::current() == pass.id() && pass.gradient(x).defined() ? 0 : 1;
    if (left == 0) return;
    const c10::AutoGradMode recording(true);
    auto y = torch::ones({1}, torch::requires_grad()) * 2;
    y.register_hook([&nest, left](const at::Tensor& gradient) {
      nest(left - 1);
      return gradient;
    });
    troupe::backward({y.sum()});
  };
  auto y = x * 2;
  torch::autograd::impl::grad_accumulator(x)->add_post_hook(std::make_unique<post_hook>([&] { nest(150); }));
  pass.backward({a.peer("b").call("first_alone", {y}).get().tensor(0).sum()}).get();
  BOOST_TEST(threads.size() > 2u);
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_profiler_of_libtorch_is_told_once_that_it_sees_this_node_alone) {
  troupe::test::stderr_in_pipe text;
  auto options = named("d");
  options.log_level = troupe::severity::warn;
  troupe::node d(options);
  d.join("127.0.0.1", b.port());
  auto x = torch::tensor({1.0, 4.0}, torch::requires_grad());
  {
    troupe::context pass(d);
    auto y = d.peer("b").call("first_alone", {x}).get().tensor(0);
    std::ostringstream events;
    const torch::autograd::profiler::RecordProfile profile(events);
    pass.backward({y.sum()}).get();
    d.peer("b").call("first_alone", {x}).get();
  }
  d.peer("b").call("first_alone", {x}).get();  // another warning, which comes after all others
  std::string all;
  while (all.find("left outside any context") == std::string::npos) {
    all += text.read();
    std::this_thread::yield();  // the log has a thread of its own
  }
  const auto first = all.find("libtorch's profiler");
  BOOST_TEST(first != std::string::npos, all);
  BOOST_TEST(all.find("libtorch's profiler", first + 1) == std::string::npos, all);
}

BOOST_AUTO_TEST_SUITE_END()
