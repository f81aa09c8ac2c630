// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/autograd_contexts.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/functions/recvrpc_backward.h>
#include <torch/csrc/distributed/autograd/functions/sendrpc_backward.h>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/nodes/node_link.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_start.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/torch_compat.hpp>

#include "rpc/private_members.hpp"
#include "rpc/python_thread.hpp"

namespace torchtroupe {

namespace da = torch::distributed::autograd;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;
using troupe::nodes::visit;

namespace {

constexpr int bits_of_number = 48;  // of the ids of contexts and messages: the worker's id is above
constexpr std::chrono::hours no_limit{24 * 365};
std::atomic<std::size_t> running{0};

struct counted_pass {
  counted_pass() { ++running; }
  ~counted_pass() { --running; }
  counted_pass(const counted_pass&) = delete;
  counted_pass& operator=(const counted_pass&) = delete;
};

autograd_contexts::worker_id worker_of(std::int64_t id) {
  return static_cast<autograd_contexts::worker_id>(id >> bits_of_number);
}

/// Stands for PyTorch's SendRpcBackward in a pass. Its place in the order of sums is that of PyTorch's function.
struct send_of_torch : troupe::engine::send_backward {
  using send_backward::send_backward;
  std::string name() const override { return "torch::distributed::autograd::SendRpcBackward"; }
};

/// While it lives, the thread works for the context, as hooks (DDP's) find it.
struct in_context {
  explicit in_context(const da::ContextPtr& which) : scope(da::ContextPtr(which)) {}
  counted_pass counted;
  da::ThreadLocalDistAutogradContext scope;
};

/// PyTorch's context; null if PyTorch has released it.
da::ContextPtr find_in_torch(std::int64_t context) try {
  return da::DistAutogradContainer::getInstance().retrieveContext(context);
} catch (const std::exception&) {
  return nullptr;
}

void release_in_torch(std::int64_t context) {
  const auto graph = find_in_torch(context);  // freed last, without the lock of PyTorch's table
  if (!graph) return;
  python_thread::keep();  // the graph may hold objects of Python
  autograd_contexts::releases_here() = true;
  try {
    da::DistAutogradContainer::getInstance().releaseContextIfPresent(context);
  } catch (const std::exception& why) {
    LOG(ERROR) << "autograd context " << context << " is not released: " << why.what();
  }
  autograd_contexts::releases_here() = false;
}

class torch_pass : public troupe::passes::guest_pass {
 public:
  using node_finder = std::function<std::optional<troupe::node_id>(autograd_contexts::worker_id)>;

  torch_pass(da::ContextPtr context, troupe::context_id id, troupe::node_id here, autograd_contexts::worker_id own,
             const node_finder& node_of)
      : context_(std::move(context)), here_(here), own_(own) {
    for (auto& [number, recv] : context_->recvFunctions()) {
      const auto sender = node_of(worker_of(number));
      if (!sender) continue;
      const troupe::message_id message{static_cast<std::uint64_t>(number), *sender};
      const auto* function = recv.get();
      recvs_.emplace(function,
                     std::pair{std::move(recv), troupe::engine::make_node<troupe::engine::recv_backward>(id, message)});
    }
  }

  std::vector<troupe::engine::send_source> sends() override {
    std::map<std::int64_t, troupe::engine::pointer_to<da::SendRpcBackward>> in_order;
    for (auto& [number, send] : context_->sendFunctions()) in_order.emplace(number, send);
    std::vector<troupe::engine::send_source> result;
    for (const auto& [number, send] : in_order) {
      const troupe::message_id message{static_cast<std::uint64_t>(number), here_};
      auto stand_in = troupe::engine::make_node<send_of_torch>(message, send->next_edges());
      stand_in->set_sequence_nr(send->sequence_nr());
      stand_in.get()->*member_of(thread_of_function{}) = send->thread_id();
      result.push_back({std::move(stand_in), 0});
    }
    return result;
  }

  troupe::engine::recv_backward* recv_of(const Node& function) const override {
    const auto found = recvs_.find(&function);
    return found == recvs_.end() ? nullptr : found->second.second.get();
  }
  void accumulate(const at::Tensor& leaf, const at::Tensor& gradient) override {
    (context_.get()->*member_of(accumulate_of_context{}))(leaf, gradient, 1);
  }
  std::shared_ptr<void> enter() override { return std::make_shared<in_context>(context_); }
  std::string describe(const std::string& where, const std::string& reason) override {
    return "Error on Node " + std::to_string(own_) + ": " + reason + "\n(" + where.substr(0, where.find_last_not_of(": ") + 1) +
           ")";
  }

 private:
  const da::ContextPtr context_;
  const troupe::node_id here_;
  const autograd_contexts::worker_id own_;
  std::unordered_map<const Node*,
                     std::pair<troupe::engine::node_pointer, troupe::engine::pointer_to<troupe::engine::recv_backward>>>
    recvs_;
};

}  // namespace

std::size_t passes_now() noexcept { return running; }

autograd_contexts::autograd_contexts(troupe::node& here, worker_id own,
                                     std::function<std::optional<troupe::peer>(worker_id)> peer_of)
    : here_(troupe::runtime_of(here).link()), own_(own), peer_of_(std::move(peer_of)) {}

troupe::passes::guest_maker autograd_contexts::guest_of(std::int64_t context, troupe::context_id id) const {
  const auto node_of = [peer_of = peer_of_](worker_id worker) {
    const auto peer = peer_of(worker);
    return peer ? std::optional(peer->id()) : std::nullopt;
  };
  return [=, here = here_->id(), own = own_]() -> std::shared_ptr<troupe::passes::guest_pass> {
    auto found = find_in_torch(context);
    return found ? std::make_shared<torch_pass>(std::move(found), id, here, own, node_of) : nullptr;
  };
}

troupe::passes::open_context autograd_contexts::open(std::int64_t context) {
  const visit inside(*here_);
  auto& contexts = inside->services().contexts;
  const troupe::checked_lock lock(mutex_);
  if (const auto known = entries_.find(context); known != entries_.end()) return contexts.find(known->second.id);
  if (worker_of(context) != own_) return {};
  auto opened = contexts.open();
  opened.record->guests.set(guest_of(context, opened.record->id()));
  entries_.emplace(context, entry{opened.record->id()});
  return opened;
}

std::unique_ptr<troupe::support::call_scope> autograd_contexts::scope(std::int64_t context,
                                                                      troupe::support::call_bounds bounds) {
  const auto expect = [&](bool is_there) {
    if (!is_there)
      throw std::runtime_error("autograd context " + std::to_string(context) + " of worker " +
                               std::to_string(worker_of(context)) + " was released, or has not come to worker " +
                               std::to_string(own_) + " with a request");
  };
  const visit inside(*here_);
  const auto opened = open(context);
  expect(opened.record != nullptr);
  const auto id = opened.record->id();
  using scope_of_thread = troupe::support::call_scope;
  troupe::program_place place;
  {
    const troupe::checked_lock lock(mutex_);
    const auto found = entries_.find(context);
    expect(found != entries_.end());
    auto& here = found->second;
    ++here.open;
    if (scope_of_thread::context() == id)
      place = scope_of_thread::next_place();
    else
      place = {troupe::engine::recording_from_now({}).from, ++here.made};
  }
  return std::make_unique<scope_of_thread>(here_->id(), id, std::move(place), std::string(), bounds);
}

void autograd_contexts::ended(std::int64_t context) {
  std::optional<troupe::context_id> closed;
  {
    const troupe::checked_lock lock(mutex_);
    const auto known = entries_.find(context);
    if (known != entries_.end()) {
      if (--known->second.open > 0 || !known->second.is_released) return;
      closed = take_out(known);
    }
  }
  close(closed);
  release_in_torch(context);  // the answer has perhaps made it again
}

std::optional<troupe::context_id> autograd_contexts::take_out(std::unordered_map<std::int64_t, entry>::iterator which) {
  const auto [context, gone] = *which;
  entries_.erase(which);
  return worker_of(context) == own_ ? std::optional(gone.id) : std::nullopt;
}

void autograd_contexts::close(std::optional<troupe::context_id> which) const {
  if (const visit inside(*here_); which && inside) inside->services().contexts.close(*which);
}

void autograd_contexts::joined(std::int64_t context, troupe::context_id id) {
  const visit inside(*here_);
  if (!inside) return;
  const auto found = inside->services().contexts.find(id);
  if (!found.record) throw inside->services().contexts.unknown(id);
  const troupe::checked_lock lock(mutex_);
  if (entries_.emplace(context, entry{id}).second) found.record->guests.set(guest_of(context, id), released_by_drop(context));
}

void autograd_contexts::tidy(std::int64_t context) {
  {
    const troupe::checked_lock lock(mutex_);
    if (entries_.contains(context)) return;
  }
  release_in_torch(context);
}

bool& autograd_contexts::releases_here() {
  static thread_local bool of_thread = false;
  return of_thread;
}

/// What releases PyTorch's context when it is dropped.
std::shared_ptr<void> autograd_contexts::released_by_drop(std::int64_t context) {
  return {nullptr, [context, all = weak_from_this()](void*) {
            const auto here = all.lock();
            if (here && !visit(*here->here_)) return;  // release_all() follows
            release_in_torch(context);
            if (here) here->release(context);
          }};
}

std::optional<std::int64_t> autograd_contexts::number_of(troupe::context_id id) {
  if (!id) return std::nullopt;
  const troupe::checked_lock lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& each) { return each.second.id == id; });
  return found == entries_.end() || found->second.is_released ? std::nullopt : std::optional(found->first);
}

void autograd_contexts::note_recorded(troupe::context_id id) const {
  const visit inside(*here_);
  if (!inside) return;
  if (const auto found = inside->services().contexts.find(id); found.record)
    found.record->add({}, {}, {troupe::support::call_scope::recorded()});
}

troupe::future<troupe::done> autograd_contexts::start(std::int64_t context, edge_list roots, variable_list gradients,
                                                      bool keep_graph) {
  const visit inside(*here_);
  const auto opened = open(context);
  if (!opened.record) throw std::runtime_error("autograd context " + std::to_string(context) + " was released");
  auto job = std::make_shared<troupe::contracts::backward_job>();
  job->roots = std::move(roots);
  job->gradients = std::move(gradients);
  job->keep_graph = keep_graph;
  job->recorded = troupe::engine::recording_from_now({});
  job->recorded.from = 0;  // everything that this thread has recorded
  job->deadline = no_limit;
  auto result = job->result;
  troupe::passes::start_pass(inside->services(), opened.record, opened.actor, job);
  return result;
}

void autograd_contexts::backward(std::int64_t context, edge_list roots, variable_list gradients, bool keep_graph) {
  const counted_pass counted;
  try {
    if (worker_of(context) != own_) return ask_opener(context, std::move(roots), std::move(gradients), keep_graph);
    start(context, std::move(roots), std::move(gradients), keep_graph).get();
  } catch (const troupe::error& why) {
    throw std::runtime_error(why.what());
  }
}

void autograd_contexts::ask_opener(std::int64_t context, edge_list roots, variable_list gradients, bool keep_graph) {
  const auto record = open(context).record;
  const auto opener = peer_of_(worker_of(context));
  if (!record || !opener) throw std::runtime_error("autograd context " + std::to_string(context) + " was released");
  const troupe::message_id root{visit(*here_)->services().clock.next_number(), here_->id()};
  record->add({troupe::engine::make_node<send_of_torch>(root, std::move(roots)), 0}, opener->id(),
              {troupe::support::call_scope::recorded()});
  const auto in_context = scope(context, {});
  const struct until_here {
    ~until_here() { contexts.ended(context); }
    autograd_contexts& contexts;
    std::int64_t context;
  } open{*this, context};
  opener
    ->call(name_of_lead, std::move(gradients),
           {{"context", context}, {"root", static_cast<std::int64_t>(root.number)}, {"keep", keep_graph}})
    .get();
}

troupe::future<troupe::done> autograd_contexts::lead(std::int64_t context, troupe::message_id root,
                                                     std::vector<at::Tensor> gradients, bool keep_graph) {
  const auto opened = open(context);
  if (!opened.record)
    throw troupe::error(troupe::errc::unknown_context, "autograd context " + std::to_string(context) + " was released");
  auto stub = troupe::engine::make_node<troupe::engine::recv_backward>(opened.record->id(), root);
  edge_list roots;
  for (const auto& each : gradients) roots.emplace_back(stub, stub->add_input_metadata(each));
  return start(context, std::move(roots), std::move(gradients), keep_graph);
}

void autograd_contexts::release(std::int64_t context) {
  std::optional<troupe::context_id> closed;
  {
    const troupe::checked_lock lock(mutex_);
    const auto known = entries_.find(context);
    if (known == entries_.end()) return;
    known->second.is_released = true;
    if (known->second.open == 0) closed = take_out(known);
  }
  close(closed);
}

void autograd_contexts::release_all() {
  std::vector<std::int64_t> all;
  {
    const troupe::checked_lock lock(mutex_);
    std::erase_if(entries_, [&](const auto& each) {
      const bool is_of_other = worker_of(each.first) != own_;
      if (is_of_other) all.push_back(each.first);
      return is_of_other;
    });
  }
  for (const auto each : all) release_in_torch(each);
}

}  // namespace torchtroupe
