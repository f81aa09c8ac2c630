// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <caf/fwd.hpp>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/network/known_peers.hpp>
#include <troupe/actors/network/send_credits.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/actors/services/burst_threads.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/device_maps.hpp>
#include <troupe/actors/services/running_work.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/engine/send_backward.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/residual_book.hpp>
#include <troupe/messages/tensor_memory.hpp>

namespace troupe {

class arriving_tensors;

}  // namespace troupe

namespace troupe::engine {

class cpu_workers;

}  // namespace troupe::engine

namespace troupe::network {

class shared_multiplexer;

}  // namespace troupe::network

namespace troupe::services {

/// What every actor of a node may use: the node's identity, its peers, its clocks, its trace, and threads for work that is too
/// long for an actor. Any thread may use it, from the start of the node's actors to their end.
///   NS-1  a message that was sent because of another message has the higher number (a Lamport clock).
///         Above 2^62 it has the higher number only within the limits of NS-3.
///   NS-2  on a node with a network, until the node stops, a call of discard() frees nothing: another thread frees the objects,
///         or the calling thread does so after the call.
///   NS-3  no number that another node names makes this node give a number twice: a message raises the clock to 2^62 + 2^20 at most, and
///         a clock above 2^62 by 2^20 at most. So it takes 2^42 messages to reach the numbers that nodes refuse (highest_message_number).
class node_services {
 public:
  /// `tidy`: the work that tidy_soon() schedules.
  node_services(settings options, std::function<void()> tidy);

  /// Sets the actor system of the node's actors. `network`: the multiplexer of the system, null if it is not troupe's.
  /// `arriving`: null if the system has no network. To be called before the first actor starts.
  void live_on(caf::actor_system& system, network::shared_multiplexer* network, arriving_tensors* arriving);
  /// Sets the actors that other actors send to. To be called by the thread that makes the actors, before a message from another
  /// node can come.
  void meet(tracing::tracer_actor tracer);
  void meet(contracts::gateway_actor gateway) { gateway_ = std::move(gateway); }
  void meet(contracts::membership_actor membership) { membership_ = std::move(membership); }
  void meet(contracts::cpu_continuation_actor continuation) { continuation_ = std::move(continuation); }
  /// Sets the workers for large functions of passes (settings::pass_workers); null: none. They outlive the bursts of the node.
  void use_pass_workers(engine::cpu_workers* workers) noexcept { pass_workers_ = workers; }
  /// Sets the port that the node listens at.
  void listens_at(std::uint16_t port) { port_ = port; }

  const settings& options() const noexcept { return options_; }
  const logging::node_log& log() const noexcept { return log_; }
  /// This node as a member of the cluster; the port is 0 until listens_at().
  member self() const { return {self_.name, self_.id, self_.host, port_, self_.formats, self_.devices}; }
  std::uint16_t port() const noexcept { return port_; }
  node_id id() const noexcept { return self_.id; }
  const std::string& name() const noexcept { return self_.name; }
  std::int64_t uptime_ns() const noexcept;

  caf::actor_system& system() noexcept { return *system_; }
  const contracts::gateway_actor& gateway() const noexcept { return gateway_; }
  const contracts::cpu_continuation_actor& continuation() const noexcept { return continuation_; }
  services::burst_threads& bursts() noexcept { return bursts_; }
  /// Null if functions of a pass run on one thread.
  engine::cpu_workers* pass_workers() const noexcept { return pass_workers_; }
  /// Null if the node has no network.
  const contracts::membership_actor& membership() const noexcept { return membership_; }
  const tracing::tracer_actor& tracer() const noexcept { return tracer_; }

  membership::peer_directory& directory() noexcept { return directory_; }
  const membership::peer_directory& directory() const noexcept { return directory_; }
  support::activity& counts() noexcept { return counts_; }
  tracing::trace_recorder& recorder() noexcept { return recorder_; }
  support::deadline_clock& deadlines() noexcept { return deadlines_; }
  support::work_times& times() noexcept { return times_; }
  /// Bytes of gradients that are under way to other nodes (GW-14).
  network::send_credits& gradient_credits() noexcept { return gradient_credits_; }
  /// Memory for tensors that are compressed or decompressed.
  tensor_memory& memory() noexcept { return memory_; }
  /// What rounding took from gradients that left in 8 bits.
  residual_book& residuals() noexcept { return residuals_; }
  /// Pre: live_on() was called.
  services::departures& departures() noexcept {
    TROUPE_EXPECT(departures_);
    return *departures_;
  }
  const device_maps& maps() const noexcept { return maps_; }
  /// Null on an actor system of the program: its nodes send each other whole messages.
  arriving_tensors* arriving() noexcept { return arriving_; }

  /// The number of a new message.
  std::uint64_t next_number() noexcept { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// To be called with the number of each message that came: next_number() then returns only higher numbers.
  void witness(std::uint64_t number) noexcept;

  /// Says that the actor is one of the node's own, for as long as the result lives: other nodes can't end it, nor send it what only
  /// the node's actors send each other (see network::own_actors).
  network::own_actors::hold guard(caf::actor_id actor, network::own_actors::kind what) const;

  /// The certificate of a node, if it is connected by one.
  std::optional<certificates::identity> certificate_of(node_id who) const;
  /// The id with which a node with this name in its certificate has introduced itself, whether it is up or not; nothing if none has.
  std::optional<node_id> proven_id_of(const std::string& name) const;
  std::optional<certificates::identity> certificate_of(const caf::node_id& who) const;
  /// Says that the node with this id becomes a member, as gate::introduced_nodes::accept() takes it. True without certificates.
  bool accept(node_id who);
  /// Whether nodes prove by certificates who they are.
  bool has_certificates() const noexcept { return !options_.certificates.empty(); }
  /// Whether the actors of this node of CAF live here.
  bool is_here(const caf::node_id& who) const;
  /// What the roles of the cluster may do here; null: nobody has said it (settings::policy).
  rights::policy_file* policy() const noexcept;

  /// Runs `run` on this network thread, after its current work, if work of this kind was short lately. False: nothing was done,
  /// and the caller has to send the work to another thread. `send_elsewhere`: called instead of `run` if the thread stays busy
  /// for too long.
  bool run_soon(std::string_view kind, std::function<void()> run, std::function<void()> send_elsewhere);

  /// The tensors of a message, detached and on the CPU, and the send that joins them to their graph.
  struct packed {
    autograd_message payload;
    std::shared_ptr<engine::send_backward> send;
    devices::staged arriving;  // has the events that say when the elements are on the CPU
  };
  /// Makes the contents of a message. Throws troupe::error for a tensor that can't travel; `what` names the message in the text
  /// of the error. `format`: in which the tensors travel if the node `to` reads it. The tensors of a message that is still `arriving` are
  /// not compressed yet: compress() does so when all elements have come.
  packed pack(context_id context, std::vector<at::Tensor> tensors, const std::string& what, node_id to,
              wire_format format = wire_format::exact);
  /// Warns in the log that a tensor has left detached (autograd_message::detached), once for each `what`, if the settings let it.
  void warn_detached(const std::string& what);
  /// Logs a warning, once, if a profiler of libtorch watches this thread, which has something for the node `to`: the profiler does not see
  /// what runs there.
  void warn_of_profiler(node_id to);
  /// Compresses tensors in travelling form, whose elements have all come, for the node `to`. Any thread may call this function.
  void compress(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, node_id to, wire_format format,
                std::uint64_t residual_stream = 0);
  /// The format for a message to the node: `wanted` if the node is another one that reads it, else exact.
  wire_format format_for(node_id to, wire_format wanted) const;

  /// Frees objects that may take long to free: on the network thread within a millisecond, or on the compute thread if freeing
  /// took longer than settings::short_work lately or if the network is CAF's own.
  void discard(contracts::garbage_ptr what);
  /// Frees the discarded objects. To be called by `tidy`.
  void free_discarded();
  /// Makes the network thread call `tidy` when it has nothing else to do, or within a millisecond. With CAF's own network the
  /// thread of deadlines() calls `tidy` within a millisecond. Without a network tidy_soon() calls `tidy` itself.
  void tidy_soon();

  /// For the node's end: returns the discarded objects. From now on discard() frees objects at once.
  std::vector<contracts::garbage_ptr> stop_discarding();
  /// To be called when all actors have ended: cancels all alarms, forgets all peers, stops recording.
  void actors_ended();
  /// To be called last, before the actor system ends: drops all handles of the system, and stops waiting for elements from
  /// devices.
  void let_go();

  /// To be called when the node's end begins: calls that have not begun are refused from now on.
  void begin_end() noexcept { is_ending_ = true; }
  bool is_ending() const noexcept { return is_ending_; }
  /// What calls and bursts run here now.
  const running_work& running() const noexcept { return running_; }

  /// Marks a thread that runs a call or a burst of the node, as long as the object lives.
  class own_thread {
   public:
    /// `kind`, `name`: for running(); have to live as long as the object.
    own_thread(node_services& of, std::string_view kind, std::string_view name = {}) noexcept;
    ~own_thread() { current_ = outer_; }
    own_thread(const own_thread&) = delete;
    own_thread& operator=(const own_thread&) = delete;
    static bool of(const node_services& which) noexcept { return current_ == &which; }

   private:
    static inline thread_local const node_services* current_ = nullptr;
    const running_work::entry entry_;
    const node_services* outer_;
  };

 private:
  void free_garbage(std::vector<contracts::garbage_ptr>& what);

  const std::int64_t started_ns_;
  const settings options_;
  const logging::node_log log_;
  const member self_;  // without the port
  std::atomic<std::uint16_t> port_{0};
  const std::function<void()> tidy_;
  support::activity counts_;
  membership::peer_directory directory_;
  const device_maps maps_;
  tracing::trace_recorder recorder_;
  std::atomic<std::uint64_t> clock_{0};
  support::deadline_clock deadlines_;
  support::work_times times_;
  network::send_credits gradient_credits_;
  tensor_memory memory_;
  residual_book residuals_;
  running_work running_;
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> has_warned_of_profiler_{false};

  std::mutex mutex_;  // guards the next three
  std::vector<contracts::garbage_ptr> discarded_;
  bool discards_at_once_ = false;
  std::set<std::string> warned_;  // see warn_detached
  std::atomic<bool> will_tidy_{false};

  caf::actor_system* system_ = nullptr;
  network::shared_multiplexer* network_ = nullptr;
  arriving_tensors* arriving_ = nullptr;
  contracts::gateway_actor gateway_;
  contracts::membership_actor membership_;
  contracts::cpu_continuation_actor continuation_;
  services::burst_threads bursts_;
  tracing::tracer_actor tracer_;
  std::atomic<engine::cpu_workers*> pass_workers_{nullptr};
  std::optional<services::departures> departures_;
};

}  // namespace troupe::services
