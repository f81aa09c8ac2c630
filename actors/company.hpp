// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>

#include <troupe/actors/activity.hpp>
#include <troupe/actors/call_jobs.hpp>
#include <troupe/actors/call_worker.hpp>
#include <troupe/actors/context_actor.hpp>
#include <troupe/actors/cpu_continuation.hpp>
#include <troupe/actors/deadline_clock.hpp>
#include <troupe/actors/function_table.hpp>
#include <troupe/actors/membership.hpp>
#include <troupe/actors/memory_reader.hpp>
#include <troupe/actors/object_store.hpp>
#include <troupe/actors/peer_actor.hpp>
#include <troupe/actors/peer_directory.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/system_config.hpp>
#include <troupe/actors/tracer.hpp>
#include <troupe/actors/work_times.hpp>
#include <troupe/devices/courier.hpp>

namespace troupe {

class node;
class shared_multiplexer;

/// Nanoseconds of the steady clock, the one that heartbeats compare.
std::int64_t steady_ns() noexcept;

/// The actors behind a node and what they share. What is not an actor here is safe to use from any thread.
///   CM-1  numbers of messages grow along every chain of messages (a Lamport clock).
///   CM-2  after stop() no actor of the node lives, or, on a system of the caller's, each has been told to end. It waits for
///         functions that run, and no longer than `device_patience` for elements that a device has not made.
class company {
 public:
  static constexpr std::chrono::seconds device_patience{1};

  /// With `host` it lives on that system, without a network; nodes there are made known to each other by introduce().
  company(node& handle, settings options, caf::actor_system* host = nullptr);
  ~company();

  /// Throws troupe::error (misuse) on a thread that it would have to wait for: of a call, a burst or a continuation.
  void stop();
  /// Throws troupe::error (stopping) after stop().
  void check_running() const;

  node& handle() noexcept { return handle_; }
  node_id id() const noexcept { return id_; }
  const std::string& name() const noexcept { return options_.name; }
  const settings& options() const noexcept { return options_; }
  std::uint16_t port() const noexcept { return port_; }
  bool networked() const noexcept { return own_system_ != nullptr; }

  caf::actor_system& system() noexcept { return *system_; }
  const peer_actor& face() const noexcept { return face_; }
  const membership_actor& membership() const noexcept { return membership_; }
  const cpu_continuation_actor& continuation() const noexcept { return continuation_; }
  function_table& functions() noexcept { return functions_; }
  object_store& objects() noexcept { return *objects_; }
  peer_directory& directory() noexcept { return directory_; }
  /// Pre: networked.
  arriving_tensors& arriving() noexcept { return config_->arriving(); }
  activity& counts() noexcept { return counts_; }
  std::int64_t uptime_ns() const noexcept { return steady_ns() - started_ns_; }
  trace_recorder& recorder() noexcept { return recorder_; }
  devices::transfers& transfers() noexcept { return transfers_; }
  const tracer_actor& tracer() const noexcept { return tracer_; }
  deadline_clock& deadlines() noexcept { return deadlines_; }
  work_times& times() noexcept { return times_; }
  /// Runs a piece of work of a kind that is short on this thread, after what it does now. False if it should run elsewhere.
  bool run_soon(std::string_view kind, std::function<void()> run, std::function<void()> send_elsewhere);

  /// What goes into a message: tensors detached and on the CPU, and the send that leads back to their graph.
  struct packed {
    autograd_message payload;
    std::shared_ptr<engine::send_backward> send;
    devices::staged arriving;  // its events say when the elements are there
  };
  /// Throws troupe::error for a tensor that can't travel, naming it after `what`.
  packed pack(context_id context, std::vector<at::Tensor> tensors, const std::string& what);

  /// Opens a context of this node; `peer` looks it up.
  struct open_context {
    context_record_ptr record;
    context_actor actor;
  };
  open_context make_context();
  /// It is released when the network thread has nothing else to do, or within a millisecond.
  void close_context(const context_id& id);
  /// What may take long to free: the network thread does within a millisecond, or the compute thread if it took long lately.
  void discard(garbage_ptr what);
  /// Releases those that were closed.
  void close_now();
  /// An open one; empty if there is none.
  open_context find_context(const context_id& id) const;
  std::vector<open_context> all_contexts() const;
  context_actor context(const context_id& id) const { return find_context(id).actor; }
  /// `peer` opens contexts of other nodes, and forgets those that are released.
  void know_context(const context_record_ptr& record, const context_actor& actor);
  void forget_context(const context_id& id);
  error no_context(const context_id& id) const;

  /// Sends it; where elements of its tensors are late, once they are there. Calls whose tensors are there leave before it,
  /// but for those on the same object.
  void send_call(outgoing_call_ptr job, devices::staged arriving = {});
  void finish_call(outgoing_call& job, call_result& result);
  void fail_call(outgoing_call& job, const error& reason);

  /// Tells the joint's context of it, or opens the context.
  void add_joint(outgoing_joint_ptr joint);

  /// Actors of the user's, by name.
  void publish(std::string name, caf::strong_actor_ptr actor);
  caf::strong_actor_ptr published(const std::string& name) const;

  /// Throws troupe::error (function_failed) where the system gives no thread.
  call_worker_actor spawn_call_worker();
  void let_go(const call_worker_actor& worker);
  /// Starts it when it is asked for first; null after stop(). Throws std::system_error where the system gives no thread.
  /// Pre: networked.
  memory_reader_actor memory_reader();

  std::uint64_t next_number() noexcept { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void witness(std::uint64_t number) noexcept;

  /// While it lives, the thread runs a call or a burst of the node.
  class own_thread {
   public:
    explicit own_thread(const company& of) noexcept;
    ~own_thread() { current_ = outer_; }
    own_thread(const own_thread&) = delete;
    own_thread& operator=(const own_thread&) = delete;
    static bool of(const company& which) noexcept { return current_ == &which; }

   private:
    static inline thread_local const company* current_ = nullptr;
    const company* outer_;
  };

  /// Tells this node that another one on the same system is up.
  void introduce(company& other);

  void on_peer_down(std::function<void(const std::string&, const std::string&)> notify);
  void tell_peer_down(const peer_down& news);

 private:
  void start_threads();
  void start();
  void listen();
  void tidy_soon();
  void tidy();
  std::vector<garbage_ptr> take_discarded();
  void free_garbage(std::vector<garbage_ptr>& what);
  void take_spans(outgoing_call& job, const std::string& from_callee);

  const std::int64_t started_ns_ = steady_ns();
  activity counts_;
  node& handle_;
  settings options_;
  node_id id_;
  std::uint16_t port_ = 0;
  std::optional<system_config> config_;
  function_table functions_;
  std::unique_ptr<object_store> objects_;
  peer_directory directory_;
  trace_recorder recorder_;
  std::atomic<std::uint64_t> clock_{0};
  std::atomic<std::uint64_t> contexts_opened_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<context_id, open_context> open_contexts_;
  std::vector<std::pair<context_id, context_actor>> closing_;
  std::vector<garbage_ptr> discarded_;
  std::unordered_map<std::string, caf::strong_actor_ptr> published_;
  std::vector<call_worker_actor> workers_;
  memory_reader_actor memory_reader_;
  std::set<std::size_t> slots_;  // of calls under way that are profiled
  std::function<void(const std::string&, const std::string&)> notify_;
  bool stopped_ = false;

  std::atomic<bool> will_tidy_{false};
  deadline_clock deadlines_;
  work_times times_;
  std::unique_ptr<caf::actor_system> own_system_;
  shared_multiplexer* network_ = nullptr;
  caf::actor_system* system_;
  peer_actor face_;
  membership_actor membership_;
  cpu_continuation_actor continuation_;
  tracer_actor tracer_;
  devices::transfers transfers_;
};

}  // namespace troupe
