// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/peer_test.py
// The functions that torchtroupe/peers.py calls. A function that can fail returns an error's text, or null; the text is valid
// until the thread's next call, and torchtroupe_peer_code() has its code.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/context.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/nodes/node_link.hpp>
#include <troupe/actors/remote_object.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/engine/gradient_table.hpp>

#include "c_api.hpp"
#include "rpc/agent.hpp"
#include "rpc/peer_message.hpp"
#include "rpc/python_thread.hpp"

namespace {

namespace da = torch::distributed::autograd;
using torchtroupe::agent;
using torchtroupe::peer_message;
using troupe::support::call_scope;

using python_function = void (*)(peer_message*);

struct {
  std::mutex mutex;
  std::set<std::string> names;
  python_function run = nullptr;  // runs the function that the message names
} registered;

thread_local troupe::errc last_code = troupe::errc::none;
thread_local const peer_message* running = nullptr;  // the call that this thread runs

template <class Function>
const char* text_of(Function&& call) noexcept {
  return torchtroupe::text_of_error([&] {
    last_code = troupe::errc::function_failed;
    try {
      call();
    } catch (const troupe::error& why) {
      last_code = why.code();
      throw;
    }
  });
}

std::shared_ptr<agent> current() {
  namespace rpc = torch::distributed::rpc;
  auto ours =
    rpc::RpcAgent::isCurrentRpcAgentSet() ? std::dynamic_pointer_cast<agent>(rpc::RpcAgent::getCurrentRpcAgent()) : nullptr;
  if (!ours)
    throw troupe::error(troupe::errc::stopping,
                        "expected a worker in this process: call rpc.init_rpc with backend=rpc.BackendType.TROUPE first");
  return ours;
}

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(nanoseconds_of(seconds));
}

at::Tensor tensor_of(void* handle) {
  using held = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  return handle == nullptr ? at::Tensor()
                           : at::Tensor(held::unsafe_reclaim_from_nonowning(static_cast<c10::TensorImpl*>(handle)));
}

/// Throws troupe::error (unsupported_tensor) for a tensor that PyTorch can't wrap for Python.
void expect_no_sparse(const std::vector<at::Tensor>& tensors, const std::string& what) {
  for (const auto& each : tensors)
    if (each.defined() && each.is_sparse())
      throw troupe::error(troupe::errc::unsupported_tensor,
                          what + ": expected dense tensors, and a sparse one has come; send its indices and values");
}

/// The bounds of a call that ends after `timeout_s`, and not after the call that the thread runs.
troupe::support::call_bounds bounds_of(const agent& here, double timeout_s) {
  auto bounds = call_scope::current_bounds();
  const auto timeout = timeout_s > 0 ? nanoseconds_of(timeout_s) : std::chrono::nanoseconds(here.getRpcTimeout());
  if (timeout.count() <= 0) return bounds;  // the worker's requests have no time-out
  const auto until = troupe::support::steady_ns() + timeout.count();
  bounds.until_ns = bounds.until_ns == 0 ? until : std::min(bounds.until_ns, until);
  return bounds;
}

/// Waits until the future has its result or its error, for so many seconds at most. Returns whether it has.
template <class Value>
bool is_ready_after(const troupe::future<Value>& which, double seconds) try {
  static_cast<void>(which.get(nanoseconds_of(seconds)));
  return true;
} catch (const troupe::error&) {
  return which.ready();
}

/// The node of this name, which has to be known after so many seconds. Throws troupe::error.
troupe::peer peer_of(const agent& here, const char* name, double patience_s) {
  return here.with_node([&](troupe::node& node) { return node.peer(name, milliseconds_of(patience_s)); });
}

/// A call that this thread has made, or a module that it makes.
struct pending_call {
  std::shared_ptr<agent> by;
  troupe::peer to;
  troupe::future<troupe::call_reply> reply;
};

struct held_module {
  std::shared_ptr<troupe::remote_object> object;
};

/// A context of troupe without one of PyTorch.
struct held_context {
  std::shared_ptr<agent> by;
  std::unique_ptr<troupe::context> context;
  std::optional<troupe::future<troupe::done>> pass;
};

/// Throws troupe::error (misuse) for a context that Python has closed.
void expect_open(const held_context* which) {
  if (which == nullptr)
    throw troupe::error(troupe::errc::misuse, "context: expected an open context: use it within its `with` block");
}

/// Calls in the context that is open on the calling thread.
troupe::future<troupe::call_reply> call_in_context(const std::shared_ptr<agent>& by, const troupe::peer& to,
                                                   troupe::request what, peer_message& with, troupe::object_id target,
                                                   double timeout_s) {
  auto values = torchtroupe::from_bytes(with.values);
  const auto bounds = bounds_of(*by, timeout_s);
  std::optional<std::int64_t> number;  // the autograd context of PyTorch that counts the call
  const auto ended = [by](std::optional<std::int64_t> in) {
    if (in) by->contexts().ended(*in);
    by->ended();
  };
  by->began();
  try {
    std::unique_ptr<call_scope> scope;
    if (da::DistAutogradContainer::getInstance().hasValidContext()) {
      const auto current = da::DistAutogradContainer::currentContextId();
      scope = by->contexts().scope(current, bounds);
      number = current;
    } else {
      const bool is_open{call_scope::context()};
      scope = std::make_unique<call_scope>(call_scope::here(), call_scope::context(),
                                           is_open ? call_scope::next_place() : troupe::program_place{}, std::string(), bounds,
                                           call_scope::format());
    }
    auto reply = troupe::node_access::ask(to, std::move(what), with.tensors, std::move(values), target);
    reply.then([ended, number](const auto&) { ended(number); });
    return reply;
  } catch (...) {
    ended(number);
    throw;
  }
}

/// While it lives, the context of PyTorch is open on the thread, if there is one.
class torch_context {
 public:
  explicit torch_context(std::optional<std::int64_t> number) : is_open_(number) {
    if (container_.hasValidContext()) outer_ = da::DistAutogradContainer::currentContextId();
    if (is_open_) da::DistAutogradContainer::forceCurrentContextId(*number);
  }
  ~torch_context() {
    if (!is_open_) return;
    container_.clearCurrentContext();
    if (outer_) da::DistAutogradContainer::forceCurrentContextId(*outer_);
  }
  torch_context(const torch_context&) = delete;
  torch_context& operator=(const torch_context&) = delete;

 private:
  da::DistAutogradContainer& container_ = da::DistAutogradContainer::getInstance();
  const bool is_open_;
  std::optional<std::int64_t> outer_;
};

troupe::call_reply run_python(const std::shared_ptr<agent>& by, troupe::call_arguments& call) {
  by->await_start();
  torchtroupe::python_thread::keep();
  expect_no_sparse(call.tensors, "the arguments of '" + call.called + "'");
  peer_message message{.tensors = std::move(call.tensors),
                       .values = torchtroupe::to_bytes(call.values),
                       .called = call.called,
                       .caller = call.here.name_of(call.caller),
                       .failure = {},
                       .gradients = call.gradients,
                       .context = by->contexts().number_of(call.context)};
  const torch_context inside(message.context);
  const torchtroupe::waiting_thread told;  // the worker of this call is free while the call waits
  const auto* const outer = std::exchange(running, &message);
  registered.run(&message);
  running = outer;
  if (message.context) by->contexts().note_recorded(call.context);
  if (!message.failure.empty()) throw troupe::error(troupe::errc::function_failed, message.failure);
  return {std::move(message.tensors), torchtroupe::from_bytes(message.values)};
}

void add_to(const std::shared_ptr<agent>& by, troupe::node& node, const std::string& name) {
  node.functions().add(name, [by](troupe::call_arguments& call) { return run_python(by, call); });
}

void add_all_to(const std::shared_ptr<agent>& by, troupe::node& node) {
  const std::lock_guard lock(registered.mutex);
  for (const auto& each : registered.names) add_to(by, node, each);
}

/// The tensors of the message at an address. An operator makes objects of Python of them without Python's headers.
void tensors_of(torch::jit::Stack& stack) {
  const auto* const message = reinterpret_cast<const peer_message*>(torch::jit::pop(stack).toInt());
  c10::List<std::optional<at::Tensor>> all;
  for (const auto& each : message->tensors) all.push_back(each.defined() ? std::optional(each) : std::nullopt);
  stack.emplace_back(std::move(all));
}

const torch::jit::RegisterOperators operators({torch::jit::Operator("torchtroupe::tensors(int message) -> Tensor?[]",
                                                                    tensors_of, c10::AliasAnalysisKind::CONSERVATIVE)});

}  // namespace

TORCHTROUPE_EXPORT int torchtroupe_peer_code() { return static_cast<int>(last_code); }

/// Registers a function of Python. `run`: runs any of them.
TORCHTROUPE_EXPORT const char* torchtroupe_function_add(const char* name, python_function run) {
  return text_of([&] {
    const std::lock_guard lock(registered.mutex);
    registered.run = run;
    agent::add_functions = &add_all_to;
    if (registered.names.contains(name)) return;
    namespace rpc = torch::distributed::rpc;
    const auto by =
      rpc::RpcAgent::isCurrentRpcAgentSet() ? std::dynamic_pointer_cast<agent>(rpc::RpcAgent::getCurrentRpcAgent()) : nullptr;
    if (by) by->with_node([&](troupe::node& node) { add_to(by, node, name); });
    registered.names.insert(name);
  });
}

TORCHTROUPE_EXPORT peer_message* torchtroupe_message_new() { return new peer_message; }
TORCHTROUPE_EXPORT void torchtroupe_message_drop(peer_message* which) { delete which; }

TORCHTROUPE_EXPORT void torchtroupe_message_fill(peer_message* which, int count, void** tensors, const char* values,
                                                 std::size_t length) {
  which->tensors.clear();
  for (int i = 0; i < count; ++i) which->tensors.push_back(tensor_of(tensors[i]));
  which->values.assign(values, length);
}

TORCHTROUPE_EXPORT void torchtroupe_message_fail(peer_message* which, const char* why) { which->failure = why; }
TORCHTROUPE_EXPORT const char* torchtroupe_message_called(const peer_message* of) { return of->called.c_str(); }
TORCHTROUPE_EXPORT const char* torchtroupe_message_caller(const peer_message* of) { return of->caller.c_str(); }
TORCHTROUPE_EXPORT const char* torchtroupe_message_values(const peer_message* of, std::size_t* length) {
  *length = of->values.size();
  return of->values.data();
}

/// Joins this worker to the node at the address.
TORCHTROUPE_EXPORT const char* torchtroupe_peer_join(const char* host, int port, double patience_s) {
  return text_of([&] {
    current()->with_node(
      [&](troupe::node& node) { node.join(host, static_cast<std::uint16_t>(port), milliseconds_of(patience_s)); });
  });
}

/// Waits until the node is known.
TORCHTROUPE_EXPORT const char* torchtroupe_peer_find(const char* name, double patience_s) {
  return text_of([&] { static_cast<void>(peer_of(*current(), name, patience_s)); });
}

/// Calls a function of a node.
TORCHTROUPE_EXPORT const char* torchtroupe_peer_call(const char* name, const char* function, peer_message* with,
                                                     double timeout_s, pending_call** result) {
  return text_of([&] {
    auto by = current();
    auto to = peer_of(*by, name, 0);
    auto reply = call_in_context(by, to, troupe::requests::function{function}, *with, {}, timeout_s);
    *result = new pending_call{std::move(by), std::move(to), std::move(reply)};
  });
}

/// Makes a module on a node, outside any context.
TORCHTROUPE_EXPORT const char* torchtroupe_peer_create(const char* name, const char* type, peer_message* with, double timeout_s,
                                                       pending_call** result) {
  return text_of([&] {
    auto by = current();
    auto to = peer_of(*by, name, 0);
    const auto own = by->with_node([](const troupe::node& node) { return node.id(); });
    const call_scope outside({}, {}, {}, {}, bounds_of(*by, timeout_s));
    auto reply = troupe::node_access::ask(to, troupe::requests::create_module{own, type}, with->tensors,
                                          torchtroupe::from_bytes(with->values));
    *result = new pending_call{std::move(by), std::move(to), std::move(reply)};
  });
}

/// Waits for the result; null if it has not come after `seconds`.
TORCHTROUPE_EXPORT const char* torchtroupe_peer_wait(pending_call* which, double seconds, peer_message** result) {
  return text_of([&] {
    *result = nullptr;
    if (!is_ready_after(which->reply, seconds)) return;
    auto reply = which->reply.get();
    expect_no_sparse(reply.tensors, "the result of a call on node '" + which->to.name() + "'");
    auto message = std::make_unique<peer_message>();
    message->tensors = std::move(reply.tensors);
    message->values = torchtroupe::to_bytes(reply.values);
    *result = message.release();
  });
}

TORCHTROUPE_EXPORT void torchtroupe_peer_drop(pending_call* which) { delete which; }

/// The module that a call of torchtroupe_peer_create has made.
TORCHTROUPE_EXPORT const char* torchtroupe_module_new(const pending_call* made_by, held_module** result) {
  return text_of([&] {
    const auto number = troupe::calls::number_from(made_by->reply.get().values, "object");
    *result =
      new held_module{std::make_shared<troupe::remote_object>(made_by->to, troupe::object_id{made_by->to.id(), number})};
  });
}

TORCHTROUPE_EXPORT const char* torchtroupe_module_call(const held_module* of, const char* method, peer_message* with,
                                                       double timeout_s, pending_call** result) {
  return text_of([&] {
    auto by = current();
    const auto& to = of->object->where();
    auto reply = call_in_context(by, to, troupe::requests::method{method}, *with, of->object->id(), timeout_s);
    *result = new pending_call{std::move(by), to, std::move(reply)};
  });
}

TORCHTROUPE_EXPORT void torchtroupe_module_drop(held_module* which) { delete which; }

/// The gradients of leaves in the context of the call that this thread runs, in a message of one tensor for each.
TORCHTROUPE_EXPORT const char* torchtroupe_gradients(int count, void** leaves, peer_message** result) {
  return text_of([&] {
    if (running == nullptr)
      throw troupe::error(troupe::errc::misuse, "gradient: expected a function that another node calls, and found none");
    std::optional<c10::Dict<at::Tensor, at::Tensor>> of_torch;
    if (running->context)
      of_torch = da::DistAutogradContainer::getInstance().retrieveContext(*running->context)->getGradients();
    auto all = std::make_unique<peer_message>();
    for (void* const leaf : std::span(leaves, static_cast<std::size_t>(count))) {
      const auto which = tensor_of(leaf);
      auto found = running->gradients->find(which);
      if (of_torch)
        if (const auto entry = of_torch->find(which); entry != of_torch->end())
          found = found.defined() ? found + entry->value() : entry->value();
      all->tensors.push_back(std::move(found));
    }
    *result = all.release();
  });
}

TORCHTROUPE_EXPORT const char* torchtroupe_context_open(held_context** result) {
  return text_of([&] {
    auto by = current();
    if (da::DistAutogradContainer::getInstance().hasValidContext())
      throw troupe::error(troupe::errc::misuse,
                          "context: a context of torch.distributed.autograd is open on this thread: leave it first");
    auto opened = by->with_node([](troupe::node& node) { return std::make_unique<troupe::context>(node); });
    *result = new held_context{std::move(by), std::move(opened), {}};
  });
}

/// Starts a pass. `roots`: pairs of a root and its gradient, which may be null.
TORCHTROUPE_EXPORT const char* torchtroupe_context_backward(held_context* of, int count, void** roots, bool keeps, bool records,
                                                            double timeout_s) {
  return text_of([&] {
    expect_open(of);
    std::vector<at::Tensor> all;
    troupe::backward_options options;
    for (int i = 0; i < count; ++i) {
      all.push_back(tensor_of(roots[2 * i]));
      options.gradients.push_back(tensor_of(roots[2 * i + 1]));
    }
    options.keep_graph = keeps;
    options.create_graph = records;
    const auto timeout = timeout_s > 0 ? milliseconds_of(timeout_s) : of->by->getRpcTimeout();
    if (timeout.count() > 0) options.deadline = timeout;
    of->pass = of->context->backward(std::move(all), std::move(options));
  });
}

TORCHTROUPE_EXPORT const char* torchtroupe_context_wait(const held_context* of, double seconds, bool* has_ended) {
  return text_of([&] {
    *has_ended = false;
    if (!is_ready_after(*of->pass, seconds)) return;
    of->pass->get();
    *has_ended = true;
  });
}

/// The gradient of a leaf of this worker, in a message of one tensor.
TORCHTROUPE_EXPORT const char* torchtroupe_context_gradient(const held_context* of, void* leaf, peer_message** result) {
  return text_of([&] {
    expect_open(of);
    *result = new peer_message{.tensors = {of->context->gradient(tensor_of(leaf))}};
  });
}

TORCHTROUPE_EXPORT void torchtroupe_context_drop(held_context* which) { delete which; }
