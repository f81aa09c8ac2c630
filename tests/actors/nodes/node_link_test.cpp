// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/node_link.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <future>
#include <optional>
#include <string>

#include <troupe/actors/node.hpp>
#include <troupe/actors/nodes/node_runtime.hpp>

namespace links_of_nodes {

using namespace troupe;

namespace {

struct linked {
  // The tests use only the addresses of a node and of a runtime.
  alignas(node) std::array<std::byte, sizeof(node)> node_storage{};
  alignas(nodes::node_runtime) std::array<std::byte, sizeof(nodes::node_runtime)> runtime_storage{};
  node& here = *reinterpret_cast<node*>(node_storage.data());
  nodes::node_runtime& runtime = *reinterpret_cast<nodes::node_runtime*>(runtime_storage.data());
  nodes::node_link link{here, runtime, node_id{7}, "stage1"};
};

bool says_stopping(const error& said) {
  return said.code() == errc::stopping && std::string(said.what()).find("node 'stage1' has stopped") != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(node_links, linked)

BOOST_AUTO_TEST_CASE(no_visit_begins_once_the_node_ends) {  // LK-1
  {
    const nodes::visit inside(link);
    BOOST_TEST(static_cast<bool>(inside));
    BOOST_TEST(inside.operator->() == &runtime);
  }
  link.close();
  const nodes::visit late(link);
  BOOST_TEST(!late);
  BOOST_CHECK_EXCEPTION(late.operator->(), error, says_stopping);
  link.drain();  // waits for no visit that has not begun
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_visits) {  // LK-2
  std::optional<nodes::visit> inside;
  inside.emplace(link);
  std::promise<void> begins;
  bool left = false;
  auto end = std::async(std::launch::async, [&] {
    begins.set_value();
    link.drain();
    return left;
  });
  begins.get_future().wait();
  while (nodes::visit(link)) {  // until drain() waits
  }
  left = true;
  inside.reset();
  BOOST_TEST(end.get());
}

BOOST_AUTO_TEST_CASE(the_node_is_given_until_it_is_forgotten) {  // LK-3
  link.close();
  BOOST_TEST(&link.here() == &here);
  link.forget_node();
  BOOST_CHECK_EXCEPTION(link.here(), error, says_stopping);
  BOOST_TEST(link.id().value == 7u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace links_of_nodes
