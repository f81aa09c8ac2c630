// SPDX-License-Identifier: BSD-3-Clause
// A cluster in which some nodes use troupe's own network and others use CAF's.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <caf/io/middleman.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

BOOST_AUTO_TEST_SUITE(networks)

namespace {

troupe::settings on(troupe::network_kind network, const char* name) {
  auto result = troupe::test::loopback_settings(name);
  result.network = network;
  return result;
}

bool has_own_network(troupe::node& here) {
  return dynamic_cast<troupe::network::shared_multiplexer*>(&here.system().middleman().backend()) != nullptr;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nodes_on_both_kinds_of_network_work_together) {
  troupe::node own(on(troupe::network_kind::troupe, "own"));
  troupe::node stock(on(troupe::network_kind::caf, "stock"));
  BOOST_TEST(has_own_network(own));
  BOOST_TEST(!has_own_network(stock));
  for (auto* each : {&own, &stock})
    each->functions().add("double",
                          [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensor(0) * 2}}; });
  own.join("127.0.0.1", stock.port());
  const auto small = torch::ones({3}, torch::requires_grad());
  const auto large = torch::ones({1 << 20}, torch::requires_grad());
  for (auto* caller : {&own, &stock}) {
    const auto callee = caller->peer(caller == &own ? "stock" : "own");
    troupe::context pass(*caller);
    auto loss = torch::zeros({});
    for (const auto& x : {small, large}) loss = loss + callee.call("double", {x}).get().tensor(0).square().sum();
    pass.backward({loss}).get();
    BOOST_TEST(at::equal(pass.gradient(small), torch::full({3}, 8)));
    BOOST_TEST(at::equal(pass.gradient(large), torch::full({1 << 20}, 8)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
