// SPDX-License-Identifier: BSD-3-Clause
// Runs random programs on 2 to 5 nodes that talk over loopback, and the same programs in one process on libtorch's own engine.
// The gradients must have the same bits.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include <troupe/troupe.hpp>

#include "engine/oracle.hpp"
#include "message_boundary.hpp"

namespace {

using tensors = std::vector<at::Tensor>;
using troupe::test::cross;

/// A user's function of two tensors. An undefined gradient of an output counts as zeros here, and the second tensor may get an undefined
/// gradient.
struct pair_function : torch::autograd::Function<pair_function> {
  static tensors forward(torch::autograd::AutogradContext* context, const at::Tensor& a, const at::Tensor& b, bool silent) {
    context->saved_data["silent"] = silent;
    return {a * 1.5, b * 0.75};
  }
  static tensors backward(torch::autograd::AutogradContext* context, const tensors& gradients) {
    const bool silent = context->saved_data["silent"].toBool();
    return {gradients[0] * 1.5, silent ? at::Tensor() : gradients[1] * 0.75 + gradients[0] * 0.5, at::Tensor()};
  }
};

/// How often hooks ran.
struct hook_counts {
  std::atomic<std::size_t> defined{0};
  std::atomic<std::size_t> undefined{0};
};

constexpr std::size_t most_nodes = 5;
constexpr std::size_t most_depth = 3;

/// A random program. Every call carries a seed, and the seed alone decides what the called node does. So the run on nodes and
/// the run in one process do the same. A node may call itself too. All calls on a node use the same leaves, at any depth.
class program {
 public:
  using call = std::function<tensors(std::size_t from, std::size_t to, std::uint64_t seed, std::size_t depth, const tensors&)>;

  program(std::uint64_t seed, std::size_t nodes) : seed(seed), nodes(nodes) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    for (std::size_t n = 0; n < nodes; ++n)
      for (int i = 0; i < 5; ++i) leaves[n].push_back((at::randn({3, 3}, generator) * 0.7).requires_grad_());
  }

  /// Computes on `node`, from `inputs`. Calls to nodes go through `remote`.
  tensors run(std::size_t node, std::uint64_t body, std::size_t depth, const tensors& inputs, const call& remote) const {
    std::mt19937_64 random(body);
    tensors values = inputs;
    if (is_strict())
      for (const auto& each : inputs)
        if (each.requires_grad() && random() % 3 == 0) watch(each);
    for (int i = 0; i < 2; ++i) values.push_back(leaves.at(node)[random() % leaves.at(node).size()]);
    const auto pick = [&] {  // recent values are more likely, so that graphs get deep
      const auto among = random() % 2 == 0 ? values.size() : std::min<std::size_t>(values.size(), 3);
      return values[values.size() - 1 - random() % among];
    };
    for (std::size_t steps = 2 + random() % 4; steps > 0; --steps) {
      if (depth < most_depth && random() % (depth + 2) == 0) {
        tensors arguments{pick()};
        while (random() % 2 == 0) arguments.push_back(pick());
        if (random() % 5 == 0) arguments.push_back(at::arange(3));
        const auto to = random() % nodes;
        const auto inner = random();
        const auto results = remote(node, to, inner, depth + 1, arguments);
        for (const auto& each : results) {
          if (is_strict() && each.requires_grad() && random() % 3 == 0) watch(each);
          if (random() % 4 != 0) values.push_back(each);  // otherwise the result goes unused
        }
      } else {
        if (is_strict() && random() % 4 == 0) {
          auto both = pair_function::apply(as_float(pick()), as_float(pick()), random() % 3 == 0);
          values.insert(values.end(), both.begin(), both.end());
        } else {
          values.push_back(step(random, pick(), pick()));
        }
      }
    }
    tensors outputs{values.back() * pick() + pick()};
    if (random() % 2 == 0) outputs.push_back(pick());
    if (random() % 6 == 0) outputs.push_back(pick().detach());
    return outputs;
  }

  /// Runs the driver's part, and calls `backward` once for each pass with the root of the pass. In some programs the first pass
  /// is recorded, and the root of the second pass depends on gradients of the first pass. `gradients` returns the gradients of
  /// the driver's leaves.
  void run(const call& remote, const std::function<void(const at::Tensor& root, bool keep, bool record)>& backward,
           const std::function<tensors()>& gradients) const {
    auto outputs = run(0, seed, 0, {}, remote);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad()) continue;
      const bool keep = i + 1 < outputs.size();
      auto root = outputs[i].sum();
      if (i == 0 && has_penalty()) {
        backward(root, true, true);
        for (const auto& each : gradients())
          if (each.defined() && each.requires_grad()) root = root + (each * each).sum();
      }
      backward(root, keep, false);
    }
  }
  bool has_penalty() const { return seed % 4 == 0; }
  /// Whether the program has hooks and functions that notice what runs without a gradient.
  bool is_strict() const { return seed % 2 == 1 || seed % 16 == 0; }

  std::uint64_t seed;
  std::size_t nodes;
  std::map<std::size_t, tensors> leaves;
  mutable hook_counts hooks;

 private:
  void watch(const at::Tensor& tensor) const {
    tensor.register_hook([this](const at::Tensor& gradient) {
      ++(gradient.defined() ? hooks.defined : hooks.undefined);
      return gradient.defined() ? gradient.clamp(-100, 100) : gradient;
    });
  }
  static at::Tensor as_float(const at::Tensor& any) {
    return any.is_floating_point() ? any : any.to(at::kFloat).expand({3, 3});
  }

  static at::Tensor step(std::mt19937_64& random, const at::Tensor& one, const at::Tensor& other) {
    const auto a = as_float(one);
    const auto b = as_float(other);
    switch (random() % 8) {
      case 0:
        return a + b;
      case 1:
        return a * b;
      case 2:
        return at::mm(a, b).tanh();
      case 3:
        return a.sigmoid() - b * 0.5;
      case 4:
        return a.t() + b;
      case 5:
        return at::softmax(a, 0) * b;
      case 6: {
        auto hooked = a * 1.25;
        if (hooked.requires_grad())
          hooked.register_hook([](const at::Tensor& gradient) { return gradient.defined() ? gradient * 1.5 : gradient; });
        return hooked;
      }
      default:
        return a.relu() + b.tanh();
    }
  }
};

/// The nodes, and the program that they run.
struct stage {
  stage() {
    at::set_num_threads(1);
    for (std::size_t n = 0; n < most_nodes; ++n) {
      troupe::settings options;
      options.name = name(n);
      options.deadline = std::chrono::seconds(30);
      nodes.push_back(std::make_unique<troupe::node>(std::move(options)));
      nodes.back()->functions().add("body", [this, n](troupe::call_arguments& arguments) {
        const auto seed = static_cast<std::uint64_t>(troupe::get<std::int64_t>(arguments.values, "seed"));
        const auto depth = static_cast<std::size_t>(troupe::get<std::int64_t>(arguments.values, "depth"));
        return troupe::call_reply{current->run(n, seed, depth, arguments.tensors, remote)};
      });
      nodes.back()->functions().add("gradients", [this, n](troupe::call_arguments& arguments) {
        return troupe::call_reply{gradients(n, arguments.gradients.get())};
      });
    }
    for (std::size_t n = 0; n < most_nodes; ++n)
      for (std::size_t m = 0; m < n; ++m) nodes[n]->join("127.0.0.1", nodes[m]->port());
    for (std::size_t n = 0; n < most_nodes; ++n)
      for (std::size_t m = 0; m < most_nodes; ++m) peers.push_back(n == m ? nodes[n]->self() : nodes[n]->peer(name(m)));
  }

  static std::string name(std::size_t n) { return std::string(1, static_cast<char>('a' + n)); }
  const troupe::peer& peer(std::size_t from, std::size_t to) const { return peers[from * most_nodes + to]; }

  // The gradients of the leaves of node `n`. A leaf without a gradient has an undefined tensor.
  tensors gradients(std::size_t n, const troupe::engine::gradient_table* table) const {
    tensors result;
    for (const auto& leaf : current->leaves.at(n)) result.push_back(table != nullptr ? table->find(leaf) : at::Tensor{});
    return result;
  }

  tensors distributed(const program& what) {
    current = &what;
    calls = 0;
    troupe::context pass(*nodes[0]);
    const auto backward = [&](const at::Tensor& root, bool keep, bool record) {
      troupe::backward_options options;
      options.keep_graph = keep;
      options.create_graph = record;
      pass.backward({root}, options).get();
    };
    what.run(remote, backward, [&] { return gradients(0, pass.gradients().get()); });
    auto result = gradients(0, pass.gradients().get());
    for (std::size_t n = 1; n < what.nodes; ++n) {
      const auto there = peer(0, n).call("gradients").get().tensors;
      result.insert(result.end(), there.begin(), there.end());
    }
    return result;
  }

  tensors in_one_process(const program& what) {
    program::call local = [&](std::size_t, std::size_t to, std::uint64_t seed, std::size_t depth, const tensors& arguments) {
      return cross(what.run(to, seed, depth, cross(arguments), local));
    };
    tensors leaves;
    for (const auto& [n, own] : what.leaves) leaves.insert(leaves.end(), own.begin(), own.end());
    tensors result(leaves.size());
    const auto backward = [&](const at::Tensor& root, bool keep, bool record) {
      const troupe::test::unreached_cut apart(root);
      cut += apart.size();
      torch::autograd::backward({root}, {}, keep, record);
      // The gradients of two leaves may be views of one tensor. libtorch's next pass would add to that tensor twice.
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (!leaves[i].grad().defined()) continue;
        result[i] = result[i].defined() ? result[i] + leaves[i].grad() : leaves[i].grad();
        leaves[i].mutable_grad().reset();
      }
    };
    what.run(local, backward,
             [&] { return tensors(result.begin(), result.begin() + static_cast<long>(what.leaves.at(0).size())); });
    for (auto& each : result)
      if (each.defined()) each = each.detach().clone();
    return result;
  }

  const program* current = nullptr;
  std::atomic<std::size_t> calls{0};
  std::size_t cut = 0;  // tensors that got no gradient, though others of their message did
  program::call remote = [this](std::size_t from, std::size_t to, std::uint64_t seed, std::size_t depth,
                                const tensors& arguments) {
    ++calls;
    const troupe::attributes values{{"seed", static_cast<std::int64_t>(seed)}, {"depth", static_cast<std::int64_t>(depth)}};
    return peer(from, to).call("body", arguments, values).get().tensors;
  };
  std::vector<std::unique_ptr<troupe::node>> nodes;
  std::vector<troupe::peer> peers;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(distributed_programs)

// The environment variable TROUPE_RANDOM_PROGRAMS sets the number of programs.
BOOST_AUTO_TEST_CASE(have_the_bits_of_one_process) {
  const auto* asked = std::getenv("TROUPE_RANDOM_PROGRAMS");
  const std::uint64_t programs = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 2000;
  // Two programs that once went wrong. 4136: a recorded pass drops one of the tensors that a leaf's gradient is summed from.
  // 11732: a gradient that is the second in its sum arrives last in some runs.
  std::vector<std::uint64_t> seeds{4136, 11732, 11732, 11732, 11732};
  for (std::uint64_t seed = 1; seed <= programs; ++seed) seeds.push_back(seed);
  stage play;
  std::size_t calls = 0;
  std::size_t defined = 0;
  std::size_t undefined = 0;
  std::size_t hooks = 0;
  for (const auto seed : seeds) {
    const program what(seed, 2 + seed % 4);
    const auto expected = play.in_one_process(what);
    const auto with = what.hooks.defined.exchange(0);
    const auto without = what.hooks.undefined.exchange(0);
    const auto found = play.distributed(what);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(what.hooks.defined == with);
      BOOST_TEST(what.hooks.undefined == without);
    }
    hooks += with;
    calls += play.calls;
    for (const auto& each : expected) ++(each.defined() ? defined : undefined);
    const auto wrong = troupe::test::difference(found, expected, troupe::test::strides::meaningful);
    BOOST_REQUIRE_MESSAGE(wrong.empty(),
                          "seed " << seed << ", " << what.nodes << " nodes, " << play.calls << " calls: " << wrong);
  }
  BOOST_TEST_MESSAGE(calls << " calls, " << defined << " gradients, " << undefined << " leaves without, " << play.cut
                           << " tensors without in a message that has some, " << hooks << " hooks");
  BOOST_TEST(calls > 2 * programs);  // otherwise the programs test too little
  BOOST_TEST(defined > 3 * programs);
  BOOST_TEST(undefined > programs);
  BOOST_TEST(play.cut > programs / 4);
  BOOST_TEST(hooks > programs / 4);
}

BOOST_AUTO_TEST_SUITE_END()
