// SPDX-License-Identifier: BSD-3-Clause
// Runs one program several times, each time on new nodes. The order of the messages differs, the bits of the gradients do not.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

BOOST_AUTO_TEST_SUITE(repeated_runs)

namespace {

using tensors = std::vector<at::Tensor>;

constexpr int runs = 5;
constexpr int calls = 12;

troupe::settings with_workers(std::string name) {
  auto result = troupe::test::loopback_settings(std::move(name));
  result.workers = 3;
  return result;
}

/// Every call on a node uses the one leaf of the node, whichever node made the call.
struct fresh_nodes {
  fresh_nodes() {
    at::set_num_threads(1);
    for (auto* each : {&b, &c}) {
      const auto weight = leaf(each == &b ? 2 : 3);
      const std::string other = each == &b ? "c" : "b";
      each->functions().add("mix", [weight](troupe::call_arguments& arguments) {
        return troupe::call_reply{{at::mm(arguments.tensors.at(0), weight).tanh()}};
      });
      each->functions().add("mix_with_the_other", [weight, other](troupe::call_arguments& arguments) {
        const auto x = at::mm(arguments.tensors.at(0), weight);
        auto reply = arguments.here.peer(other).call("mix", {x});
        return troupe::call_reply{{x.sigmoid() * weight + reply.get().tensors.at(0)}};
      });
      each->functions().add("gradient", [weight](troupe::call_arguments& arguments) {
        return troupe::call_reply{{arguments.gradients->find(weight)}};
      });
    }
    c.join("127.0.0.1", b.port());
    a.join("127.0.0.1", b.port());
  }

  static at::Tensor leaf(std::uint64_t seed) {
    return at::randn({4, 4}, at::make_generator<at::CPUGeneratorImpl>(seed)).requires_grad_();
  }

  /// The gradients of the three leaves after two passes over calls that run at the same time.
  tensors run() {
    const auto x = leaf(1);
    troupe::context pass(a);
    std::vector<troupe::future<troupe::call_reply>> replies;
    for (int i = 0; i < calls; ++i)
      replies.push_back(a.peer(i % 2 == 0 ? "b" : "c").call(i % 3 == 0 ? "mix" : "mix_with_the_other", {x * (1 + 0.3 * i)}));
    auto sum = x;
    for (auto& each : replies) sum = sum + each.get().tensors.at(0);
    troupe::backward_options keep;
    keep.keep_graph = true;
    pass.backward({sum.square().sum()}, keep).get();
    pass.backward({sum.exp().sum()}).get();
    tensors result{pass.gradient(x)};
    for (const auto* name : {"b", "c"}) result.push_back(a.peer(name).call("gradient").get().tensors.at(0));
    return result;
  }

  troupe::node a{with_workers("a")};
  troupe::node b{with_workers("b")};
  troupe::node c{with_workers("c")};
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_has_the_same_bits_in_every_run_on_fresh_nodes) {
  const auto first = fresh_nodes().run();
  for (int again = 1; again < runs; ++again) {
    const auto next = fresh_nodes().run();
    for (std::size_t i = 0; i < first.size(); ++i)
      BOOST_TEST(at::equal(next[i], first[i]), "run " << again << ": the gradient of leaf " << i << " differs");
  }
}

BOOST_AUTO_TEST_SUITE_END()
