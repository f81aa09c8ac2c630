// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include <troupe/actors/node.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::test {

/// The environment variable TROUPE_NETWORK chooses the network ("caf", which needs `insecure`, or "troupe"). Without the variable
/// the default counts.
inline settings loopback_settings(std::string name) {
  settings result;
  if (const auto* network = std::getenv("TROUPE_NETWORK")) result.network = network_named(network);
  result.insecure = result.network == network_kind::caf;
  result.name = std::move(name);
  result.deadline = std::chrono::seconds(20);
  return result;
}

/// A predicate for BOOST_CHECK_EXCEPTION: whether the text of an error contains `first` and `second`.
inline auto says(std::string first, std::string second = {}) {
  return [first = std::move(first), second = std::move(second)](const error& e) {
    const std::string text = e.what();
    return text.find(first) != std::string::npos && text.find(second) != std::string::npos;
  };
}

/// Whether nothing of a context, a pass or a call is left on the node.
inline bool is_idle(const node_status& x) {
  return x.contexts == 0 && x.passes_running == 0 && x.graph_tasks == 0 && x.calls_waiting == 0 && x.calls_running == 0 &&
         x.calls_queued == 0;
}

/// Asks until the condition is true. False if the condition is not true after `patience`. Other threads run between two
/// questions.
template <class Condition>
bool becomes_true(Condition condition, std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (; std::chrono::steady_clock::now() < until; std::this_thread::yield())
    if (condition()) return true;
  return false;
}

/// Asks a node (node or peer) until nothing is left on the node. False if something is left after `patience`.
template <class Node>
bool becomes_idle(const Node& who, std::chrono::milliseconds patience = std::chrono::seconds(5)) {
  return becomes_true([&] { return is_idle(who.status()); }, patience);
}

}  // namespace troupe::test
