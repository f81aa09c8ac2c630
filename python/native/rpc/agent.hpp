// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/agent_test.py
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/ThreadLocalState.h>
#include <torch/csrc/distributed/rpc/rpc_agent.h>

#include <troupe/actors/node.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/messages/mutex.hpp>

#include "rpc/autograd_contexts.hpp"
#include "rpc/early_deletions.hpp"
#include "rpc/late_answers.hpp"
#include "rpc/sent_request.hpp"
#include "rpc/settlement.hpp"
#include "rpc/thread_pool.hpp"

namespace torchtroupe {

/// A worker of torch.distributed.rpc: a node of troupe, and the agent of PyTorch that sends and serves requests by that node.
/// Python makes the agent (torchtroupe/rpc.py), joins it to the nodes of the other workers, and hands it to PyTorch. A
/// request is one call of the other node, and its response is the answer of this call (message_form.hpp).
///   AG-1  PyTorch's RequestCallbackImpl runs the requests, in the default modes of libtorch, and callbacks of futures run
///         where the answer has come. Both run on a network thread while they are short (`settings::short_work`), else
///         requests on the call workers of the node and callbacks on threads of the agent; the end of a request may run in the
///         thread that waits for it (WA-3). A long one holds up no other. A request that has no response yet holds no worker.
///   AG-2  a worker or thread that has sent a request, or waits for a future of troupe, does not count as busy (WY-1): nested
///         requests never lack a thread.
///   AG-3  a request fails at its time-out with PyTorch's text, and at once when its worker is lost, with the name of that
///         worker.
///   AG-4  join() returns once no worker of the group has an open request, and throws if a worker is lost meanwhile. Without a
///         fixed group (world 0), join() waits for the requests of this worker alone.
///   AG-5  after shutdown() no thread of the agent runs and no future is open, whether the agent was started or not.
///   AG-6  without a fixed group, a worker knows the workers that call it. A worker that was started again is called under its
///         name, and contexts and RRefs of the one before it have other ids than its own.
class agent final : public torch::distributed::rpc::RpcAgent, public std::enable_shared_from_this<agent> {
 public:
  using worker_id = torch::distributed::rpc::worker_id_t;
  using worker_info = torch::distributed::rpc::WorkerInfo;
  using future_ptr = c10::intrusive_ptr<torch::distributed::rpc::JitFuture>;

  /// Adds further functions to the node of an agent before the node joins others. Null: there are none.
  static inline void (*add_functions)(const std::shared_ptr<agent>& by, troupe::node& node) = nullptr;

  /// Starts the node. `world`: the number of workers, or 0 if workers come and go. Throws troupe::error.
  static std::shared_ptr<agent> open(troupe::settings options, const std::string& name, worker_id id, std::size_t world,
                                     std::chrono::milliseconds timeout);
  agent(const std::string& name, worker_id id, std::size_t world, std::chrono::milliseconds timeout);
  ~agent() override;

  /// Calls `use` with the node, which lives meanwhile. Throws troupe::error (stopping) once the agent has ended.
  template <class Use>
  auto with_node(Use&& use) const {
    const std::shared_lock lock(ending_);
    if (!node_) throw troupe::error(troupe::errc::stopping, "worker '" + workerInfo_.name_ + "' has shut down");
    return use(*node_);
  }
  autograd_contexts& contexts() { return *contexts_; }
  /// Adds a worker, whose node has to be up within the patience. Throws troupe::error.
  void add(const std::string& name, worker_id id, std::chrono::milliseconds patience);
  /// Which worker of the group is lost, and why; empty if none is.
  std::string loss() const { return settlement_.loss(); }
  /// Ends an agent that was not started.
  void close();
  /// Waits until PyTorch has started this agent: a call may come before. Throws troupe::error (stopping) if it ends instead.
  void await_start();
  /// Counts a request or call of this worker that has begun or ended (AG-4).
  void began();
  void ended();

  future_ptr send(const worker_info& to, c10::intrusive_ptr<torch::distributed::rpc::Message> message, float timeout_s,
                  const torch::distributed::rpc::DeviceMap& map) override;
  void join(bool shutdown, float timeout_s) override;
  void sync() override {}
  void startImpl() override;
  void shutdownImpl() override { close(); }

  const worker_info& getWorkerInfo(const std::string& name) const override;
  const worker_info& getWorkerInfo(worker_id id) const override;
  std::vector<worker_info> getWorkerInfos() const override;
  std::unordered_map<std::string, std::string> getMetrics() override;
  torch::distributed::rpc::DeviceMap getDeviceMap(const worker_info& to) const override;
  const std::vector<c10::Device>& getDevices() const override { return devices_; }

 private:
  struct worker {
    worker_info info;
    troupe::peer peer;
  };

  void start_node(troupe::settings options);
  void addGilWaitTime(std::chrono::microseconds time) override;
  troupe::call_reply serve(troupe::call_arguments& call);
  troupe::call_reply settle(troupe::call_arguments& call);
  troupe::call_reply lead(troupe::call_arguments& call);
  template <class Value, class Reply>
  void answer_later(const troupe::future<Value>& with, Reply reply);
  std::optional<troupe::peer> peer_of(worker_id id) const;
  std::unique_ptr<troupe::support::call_scope> scope_of(std::optional<std::int64_t> context);
  void run(std::function<void()> end);
  void complete(const future_ptr& future, const troupe::future<troupe::call_reply>& done,
                std::chrono::milliseconds timeout) noexcept;
  const worker* find(const std::string& name) const TROUPE_REQUIRES(mutex_);
  bool is_worker(const std::string& name) const;
  bool is_worker(const std::string& name, std::optional<troupe::node_id> node) const;
  void note_caller(const troupe::call_arguments& call);
  std::vector<std::string> peers() const;
  void meet_all() const;
  void meet_if_unknown(worker_id id) const;
  const worker* look_up(const std::string& name) const;
  const worker* meet(const std::string& name) const;
  const worker& keep(const std::string& name, worker_id id, troupe::peer peer) const;

  const std::size_t world_;
  const std::vector<c10::Device> devices_;
  thread_pool callbacks_;
  const troupe::services::node_network* network_ = nullptr;
  const at::ThreadLocalState modes_;     // of the thread that has made the agent
  sending_thread::other_way other_way_;  // written before the first request
  std::shared_ptr<late_answers> answers_ = std::make_shared<late_answers>();
  std::shared_ptr<early_deletions> deletions_ = std::make_shared<early_deletions>();
  mutable settlement settlement_;
  std::unique_ptr<troupe::node> node_;
  mutable std::shared_mutex ending_;  // held by who uses node_; close() takes it alone
  std::shared_ptr<autograd_contexts> contexts_;
  mutable troupe::checked_mutex mutex_;
  mutable std::map<worker_id, worker> workers_ TROUPE_GUARDED_BY(mutex_);
  /// Others may still read their infos.
  mutable std::vector<std::map<worker_id, worker>::node_type> former_ TROUPE_GUARDED_BY(mutex_);
  troupe::checked_mutex counting_;
  std::condition_variable counted_;
  std::size_t open_ TROUPE_GUARDED_BY(counting_) = 0;     // requests of this worker without a response
  std::uint64_t begun_ TROUPE_GUARDED_BY(counting_) = 0;  // requests of this worker since the last round of join()
  bool started_ TROUPE_GUARDED_BY(counting_) = false;
  bool closed_ TROUPE_GUARDED_BY(counting_) = false;
  std::atomic<std::int64_t> serving_{0};
  std::atomic<std::int64_t> gil_waits_{0}, gil_wait_us_{0};
  troupe::support::work_times times_;  // of the ends of requests
};

}  // namespace torchtroupe
