// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <atomic>

#include <ATen/autocast_mode.h>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

using troupe::call_arguments;
using troupe::call_reply;
using troupe::test::loopback_settings;

BOOST_AUTO_TEST_SUITE(thread_state_of_calls)

BOOST_AUTO_TEST_CASE(what_a_called_function_leaves_behind_ends_with_its_call) {
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  std::atomic<int> found = 0;
  b.functions().add("look and leave", [&](call_arguments& arguments) {
    found += at::autocast::is_autocast_enabled(at::kCPU) || !c10::GradMode::is_enabled() ? 1 : 0;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    c10::GradMode::set_enabled(false);
    return call_reply{arguments.tensors};
  });
  a.join("127.0.0.1", b.port());
  for (int i = 0; i < 20; ++i)  // more calls than threads, so that a thread runs several calls
    a.peer("b").call("look and leave", {at::ones({2})}).get();
  BOOST_TEST(found == 0);
}

BOOST_AUTO_TEST_SUITE_END()
