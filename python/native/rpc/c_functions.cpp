// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/agent_test.py
// The functions that torchtroupe/rpc.py calls. Each returns an error's text, or null. The text is valid until the thread's next
// call.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/version.hpp>

#include "c_api.hpp"
#include "rpc/agent.hpp"
#include "rpc/dist_engine.hpp"
#include "rpc/python_thread.hpp"
#include "rpc/sent_request.hpp"

namespace {

using torchtroupe::agent;
using torchtroupe::text_of_error;

/// Python's handle of an agent.
struct held_agent {
  std::shared_ptr<agent> agent;
};

}  // namespace

TORCHTROUPE_EXPORT const char* torchtroupe_version() { return troupe::version; }

/// Starts the node of a worker. `options`: those of a node (docs/options.md), such as "--name=worker1".
TORCHTROUPE_EXPORT const char* torchtroupe_rpc_open(int count, const char** options, const char* name, int id, int world,
                                                    double timeout_s, held_agent** result) {
  return text_of_error([&] {
    torchtroupe::take_distributed_passes();
    std::vector<std::string> words{"torchtroupe"};
    words.insert(words.end(), options, options + count);
    std::vector<char*> arguments;
    for (auto& each : words) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    troupe::settings with(static_cast<int>(words.size()), arguments.data());
    const std::chrono::milliseconds timeout(static_cast<std::int64_t>(timeout_s * 1000));
    *result = new held_agent{
      agent::open(std::move(with), name, static_cast<agent::worker_id>(id), static_cast<std::size_t>(world), timeout)};
  });
}

TORCHTROUPE_EXPORT int torchtroupe_rpc_port(const held_agent* of) {
  return of->agent->with_node([](const troupe::node& node) { return node.port(); });
}

TORCHTROUPE_EXPORT const char* torchtroupe_rpc_join(const held_agent* of, const char* host, int port, double patience_s) {
  return text_of_error([&] {
    of->agent->with_node([&](troupe::node& node) {
      node.join(host, static_cast<std::uint16_t>(port),
                std::chrono::milliseconds(static_cast<std::int64_t>(patience_s * 1000)));
    });
  });
}

TORCHTROUPE_EXPORT const char* torchtroupe_rpc_add(const held_agent* of, const char* name, int id, double patience_s) {
  return text_of_error([&] {
    of->agent->add(name, static_cast<agent::worker_id>(id),
                   std::chrono::milliseconds(static_cast<std::int64_t>(patience_s * 1000)));
  });
}

/// Makes the agent PyTorch's current one, so that Python can read it; with null, takes it away again.
TORCHTROUPE_EXPORT const char* torchtroupe_rpc_show(const held_agent* which) {
  return text_of_error(
    [&] { torch::distributed::rpc::RpcAgent::setCurrentRpcAgent(which == nullptr ? nullptr : which->agent); });
}

/// Which worker of the current agent's group is lost, and why; null if none is, or if the agent is not one of troupe.
TORCHTROUPE_EXPORT const char* torchtroupe_rpc_loss() {
  static thread_local std::string text;
  namespace rpc = torch::distributed::rpc;
  const auto current = rpc::RpcAgent::isCurrentRpcAgentSet() ? rpc::RpcAgent::getCurrentRpcAgent() : nullptr;
  const auto* ours = dynamic_cast<const agent*>(current.get());
  text = ours == nullptr ? std::string() : ours->loss();
  return text.empty() ? nullptr : text.c_str();
}

/// Waits for the answer to the last request of the calling thread (WA-1), for so many seconds at most. Returns whether it has
/// come.
TORCHTROUPE_EXPORT bool torchtroupe_rpc_wait(double seconds) {
  return torchtroupe::sent_request::wait(std::chrono::duration<double>(seconds));
}

/// Lets the next request of the calling thread wait for its answer before it returns, and hear of signals meanwhile; or no
/// more.
TORCHTROUPE_EXPORT void torchtroupe_rpc_await_at_once(bool on) { torchtroupe::sent_request::is_awaited_at_once() = on; }

/// Says that the program gives a callback to a future (WA-3).
TORCHTROUPE_EXPORT void torchtroupe_rpc_note_callback() { torchtroupe::sending_thread::note_callback(); }

/// Raises what the handler of a signal has raised in such a wait, if it has. Pre: the thread has the interpreter's lock.
TORCHTROUPE_EXPORT void torchtroupe_rpc_raise_of_signal() { torchtroupe::python_thread::raise_of_signal(); }

/// Frees Python's handle. With `ends`, ends the agent too.
TORCHTROUPE_EXPORT const char* torchtroupe_rpc_drop(held_agent* of, bool ends) {
  return text_of_error([&] {
    const std::unique_ptr<held_agent> dropped(of);
    if (ends) dropped->agent->close();
  });
}
