// SPDX-License-Identifier: BSD-3-Clause
// Nodes that know each other and are not connected: what a call, a pass, a handle or a question between two of them does.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <troupe/actors/membership/roster.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/actors/status_client.hpp>
#include <troupe/troupe.hpp>

#include "actors/linear_cluster.hpp"
#include "actors/loopback_nodes.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int count = 24;  // more than one mesh takes

/// Nodes n0 to n23. Each knows all others and is connected to few.
struct large_cluster {
  explicit large_cluster(const std::function<void(settings&)>& change = [](settings&) {}) {
    for (int i = 0; i < count; ++i) {
      auto options = loopback_settings("n" + std::to_string(i));
      options.heartbeat = 50ms;
      change(options);
      auto& added = *nodes.emplace_back(std::make_unique<node>(options));
      added.functions().add("twice", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) * 2}}; });
      added.functions().add("go", [](call_arguments& arguments) {  // doubles, then asks the next node of the way
        const auto way = get<std::string>(arguments.values, "way");
        const auto y = arguments.tensors.at(0) * 2;
        if (way.empty()) return call_reply{{y}};
        const auto end = std::min(way.find(' '), way.size());
        const auto rest = way.substr(std::min(end + 1, way.size()));
        return call_reply{arguments.here.peer(way.substr(0, end)).call("go", {y}, {{"way", rest}}).get().tensors};
      });
      add_module_type(added, "linear", [](const attributes& values) { return std::make_shared<linear>(values); });
      if (i > 0) added.join("127.0.0.1", nodes[static_cast<std::size_t>(i) / 2]->port());
    }
    for (const auto& each : nodes)
      BOOST_TEST(becomes_true([&] { return each->peers().size() == count - 1; }), each->name() << " does not know all");
  }

  node& at(int i) { return *nodes[static_cast<std::size_t>(i)]; }

  static bool are_connected(node& one, const std::string& other) {
    const auto status = one.status();
    return std::any_of(status.peers.begin(), status.peers.end(), [&](const auto& each) {
      return each.who.name == other && each.up && each.transport != "not connected";
    });
  }

  /// A node that is connected to none of these.
  node& stranger_of(const std::vector<node*>& others) {
    for (const auto& each : nodes)
      if (std::none_of(others.begin(), others.end(),
                       [&](node* other) { return other == each.get() || are_connected(*other, each->name()); }))
        return *each;
    throw std::logic_error("every node is connected to one of the given nodes");
  }

  std::vector<std::unique_ptr<node>> nodes;
};

}  // namespace

BOOST_AUTO_TEST_CASE(nodes_that_are_not_connected_call_each_other) {
  large_cluster all;
  auto& one = all.at(count - 1);
  auto& other = all.stranger_of({&one});
  const auto doubled = one.peer(other.name()).call("twice", {at::ones({3})}).get().tensors.at(0);
  BOOST_TEST(at::equal(doubled, at::full({3}, 2)));
  BOOST_TEST(large_cluster::are_connected(one, other.name()));
  BOOST_TEST(large_cluster::are_connected(other, one.name()));
}

// The last node of the way reports to the first, which has never called it.
// node::peer() connects. A peer that a program makes from an id does not.
BOOST_AUTO_TEST_CASE(calls_to_a_peer_that_was_never_looked_up_connect_first) {
  large_cluster all;
  auto& one = all.at(count - 1);
  auto& other = all.stranger_of({&one});
  const peer to(one, other.name(), other.id());
  const auto large = at::randn({300, 300});  // leaves in pieces
  std::vector<future<call_reply>> replies;
  for (int i = 0; i < 20; ++i) replies.push_back(to.call("twice", {i % 2 == 0 ? large + i : at::full({1}, i)}));
  for (int i = 0; i < 20; ++i)
    BOOST_TEST(
      at::equal(replies[static_cast<std::size_t>(i)].get().tensors.at(0), i % 2 == 0 ? (large + i) * 2 : at::full({1}, 2 * i)));
  BOOST_TEST(large_cluster::are_connected(one, other.name()));
}

BOOST_AUTO_TEST_CASE(a_pass_goes_over_nodes_that_were_not_connected) {
  large_cluster all;
  auto& one = all.at(count - 1);
  auto& second = all.stranger_of({&one});
  auto& third = all.stranger_of({&one, &second});
  const auto x = torch::ones({2}, at::requires_grad());
  context pass(one);
  const auto y = one.peer(second.name()).call("go", {x}, {{"way", third.name()}}).get().tensors.at(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(at::equal(pass.gradient(x), at::full({2}, 4)));
}

BOOST_AUTO_TEST_CASE(a_module_that_was_lent_to_a_node_that_is_not_connected_is_called_in_order) {
  large_cluster all;
  auto& owner = all.at(count - 1);
  auto& user = all.stranger_of({&owner});
  auto& lender = all.stranger_of({&owner, &user});
  const auto block = lender.peer(owner.name()).create("linear", layer(4, 3, 5));
  const auto reference = block.lend(lender.peer(user.name()));
  const auto mine = remote_module::accept(user, reference);
  const auto input = at::randn({2, 4});
  const auto expected = linear(layer(4, 3, 5)).forward(input);
  std::vector<future<call_reply>> replies;
  for (int i = 0; i < 20; ++i) replies.push_back(mine.call("forward", {input}));
  for (auto& each : replies) BOOST_TEST(at::equal(each.get().tensors.at(0), expected));
}

BOOST_AUTO_TEST_CASE(a_node_asks_one_that_it_is_not_connected_to_for_its_status) {
  large_cluster all;
  auto& one = all.at(count - 1);
  auto& other = all.stranger_of({&one});
  const auto status = one.status();
  const auto found =
    std::find_if(status.peers.begin(), status.peers.end(), [&](const auto& each) { return each.who.name == other.name(); });
  BOOST_TEST_REQUIRE((found != status.peers.end()));
  BOOST_TEST(found->up);
  BOOST_TEST(found->transport == "not connected");
  BOOST_TEST(found->since_ns > 0);
  status_client client("127.0.0.1", one.port(), 10s);
  const auto cluster = client.ask_cluster(10s);
  BOOST_TEST(cluster.others.size() == count - 1u);
  BOOST_TEST(cluster.asked.peers.size() == count - 1u);  // the asked node names all
  std::size_t listed_by_others = 0;
  for (const auto& each : cluster.others) {
    BOOST_TEST_REQUIRE(each.status.has_value(), each.seen.who.name << ": " << each.problem);
    BOOST_TEST(each.status->self.name == each.seen.who.name);
    BOOST_TEST(each.status->members_up == count - 1u);
    const auto& listed = each.status->peers;  // SH-2
    BOOST_TEST(std::none_of(listed.begin(), listed.end(), [](const auto& one) { return one.transport == "not connected"; }));
    listed_by_others += listed.size();
  }
  BOOST_TEST(listed_by_others < count * (count - 1u) / 2);
}

BOOST_AUTO_TEST_CASE(a_node_that_stops_is_no_member_for_any_node) {
  std::promise<std::string> told;
  large_cluster all;
  auto& one = all.at(count - 1);
  auto& other = all.stranger_of({&one});
  const auto name = other.name();
  one.on_peer_gone([&told, name](const std::string& who, const std::string&) {  // the nodes end after `name`
    if (who == name) told.set_value(who);
  });
  other.stop();
  BOOST_TEST((told.get_future().wait_for(20s) == std::future_status::ready));
  for (const auto& each : all.nodes) {
    if (each->name() == name) continue;
    BOOST_TEST(becomes_true([&] {
      const auto known = each->peers();
      return std::find(known.begin(), known.end(), name) == known.end();
    }));
  }
  const auto status = one.status();
  const auto seen =
    std::find_if(status.peers.begin(), status.peers.end(), [&](const auto& each) { return each.who.name == name; });
  BOOST_TEST_REQUIRE((seen != status.peers.end()));  // up, or since when not
  BOOST_TEST((!seen->up && seen->gone));
  BOOST_TEST(seen->reason != "");
  BOOST_TEST((seen->since_ns > 0 && seen->since_ns < 20'000'000'000));
  BOOST_CHECK_EXCEPTION(one.peer(name, 100ms), error, [&](const error& why) { return contains(why.what(), name); });
}
