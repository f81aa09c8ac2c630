// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/ties.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/context_record.hpp>

#include "actors/deterministic_system.hpp"

using namespace troupe;
using nodes::share_context_or_object;

namespace {

constexpr node_id tied{7};
constexpr node_id stranger{8};

struct idle_module : module {
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return {}; }
};

struct lone_node {
  test::deterministic_system all;
  node here{[] {
              settings options;
              options.name = "here";
              return options;
            }(),
            all.system};
  nodes::node_services& services = services_of(here);

  ~lone_node() {
    here.stop();
    all.run();
  }

  bool shares_with(node_id who) const { return share_context_or_object(services, who); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ties_of_two_nodes, lone_node)

BOOST_AUTO_TEST_CASE(a_context_ties_this_node_to_the_nodes_that_joined_it) {
  BOOST_TEST(!shares_with(tied));
  const auto opened = services.contexts.open();
  BOOST_TEST(!shares_with(tied));
  opened.record->members.joined({tied});  // a third node named the peer
  BOOST_TEST(shares_with(tied));
  BOOST_TEST(!shares_with(stranger));
  opened.record->members.left(tied);
  BOOST_TEST(!shares_with(tied));
}

BOOST_AUTO_TEST_CASE(a_context_ties_this_node_to_the_node_that_opened_it) {
  const context_id id{tied, 1};
  BOOST_TEST(services.contexts.know(services.contexts.make(id)));
  BOOST_TEST(shares_with(tied));
  BOOST_TEST(!shares_with(stranger));
}

BOOST_AUTO_TEST_CASE(an_object_ties_its_node_and_its_owner_together) {
  const auto object = services.objects.add(tied, std::make_shared<idle_module>());
  BOOST_TEST(shares_with(tied));
  BOOST_TEST(!shares_with(stranger));
  services.objects.drop(object, tied);
  BOOST_TEST(!shares_with(tied));
  services.objects.tether()->hold({tied, 3});  // a handle here, an object there
  BOOST_TEST(shares_with(tied));
  services.objects.tether()->let_go({tied, 3});
  BOOST_TEST(!shares_with(tied));
}

BOOST_AUTO_TEST_SUITE_END()
