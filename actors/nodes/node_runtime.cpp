// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/node_runtime.hpp>

#include <algorithm>
#include <future>
#include <system_error>
#include <utility>
#include <vector>

#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/future.hpp>
#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/logging/reopen_logs.hpp>
#include <troupe/actors/membership/member_table.hpp>
#include <troupe/actors/membership/membership.hpp>
#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/nodes/gateway_actor.hpp>
#include <troupe/actors/nodes/ties.hpp>
#include <troupe/actors/passes/cpu_continuation.hpp>
#include <troupe/actors/process_limits.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::nodes {

namespace {

// The number of burst threads of a node with device workers. As many passes may wait for devices at the same time; a further
// pass waits for a free burst thread.
constexpr std::size_t threads_for_bursts = 4;

constexpr int starting_threads = 11;  // 6 of the actor system, 2 of the network, 3 of a node without device workers

/// Throws std::system_error if the system does not let the process start `count` more threads.
void try_threads(int count) {
  std::vector<std::future<void>> held;
  std::promise<void> over;  // destroyed before `held`, which ends the threads
  const auto end = over.get_future().share();
  for (int i = 0; i < count; ++i) held.push_back(std::async(std::launch::async, [end] { end.wait(); }));
}

error no_threads(const std::string& name, const std::system_error& refused) {
  return error(errc::function_failed, "node '" + name + "' gets no thread to start with (" + refused.code().message() +
                                        "); raise the limit on the process's threads or memory: " + limits_on_threads());
}

/// Why a node can't listen at this address.
std::string why_not_at(const std::string& host, std::uint16_t port) {
  if (const auto found = support::look_up(host, port); found.failed()) return found.problem;
  return port == 0 ? "the address is not this machine's; choose another"
                   : "the port is in use or the address is not this machine's; choose another, or port 0 for any free one";
}

constexpr auto insecure_warning =
  "--insecure: nobody has to prove who they are. Whoever reaches this port can end the process and call its functions.";

/// How often the files of --certificates and --revoked are looked at.
constexpr std::chrono::seconds between_looks{1};

std::string name_of_loopback(const settings& options, const std::string& address) {
  return "the host name " + options.host + " has the address " + address +
         " on this host, which is loopback: nodes of other hosts can't reach this node; start it with --host 0.0.0.0, or with "
         "--host and an address that they reach";
}

/// The loopback address of the node's host name on this host. On other hosts the name may have another address, at which this
/// node does not listen. Empty if the name also has other addresses here, or if settings::advertise is set.
std::string misleading_loopback(const settings& options) {
  if (is_loopback(options.host) || !options.advertise.empty()) return {};
  return support::only_loopback(options.host);
}

std::string no_folder_for(const std::string& role) {
  return "the policy lets role '" + role +
         "' save checkpoints, and this node has no folder for them, so it refuses; name a folder with --data-dir";
}

settings checked(settings options) {
  check(options);
  return options;
}

}  // namespace

node_runtime::node_runtime(node& handle, settings options, caf::actor_system* host)
    : services_(&handle, checked(std::move(options)), [this] { tidy(); }),
      link_(std::make_shared<node_link>(handle, *this, services_.self.id(), services_.self.name())) {
  const support::logger_release lets_go;
  if (host != nullptr) {
    if (!host->has_middleman())
      throw error(errc::misuse,
                  "node '" + services_.self.name() +
                    "': its actor system has no middleman; load caf::io::middleman in the system's configuration");
    if (support::has_no_threads(*host)) services_.deadlines.stand_still();
    live_on(services_, *host, nullptr, nullptr);
  } else
    start_system();
  try {
    start();
  } catch (...) {
    if (begin_end()) end();
    let_go();
    throw;
  }
}

void node_runtime::start_system() {
  try {
    try_threads(starting_threads);  // CAF crashes or waits for ever if it gets no thread
  } catch (const std::system_error& refused) {
    throw no_threads(services_.self.name(), refused);
  }
  config_.emplace(services_.options);
  if (const auto& proof = config_->gate().proof(); proof && proof->own().node != services_.self.name())
    throw error(errc::misuse, "the kit " + services_.options.certificates + " is that of node '" + proof->own().node +
                                "', and this node is '" + services_.self.name() + "'; start it with --name " +
                                proof->own().node + ", or make a kit for it: troupe certs node " + services_.self.name());
  own_system_ = std::make_unique<caf::actor_system>(*config_);
  support::close_basp_mailbox_at_exit(*own_system_);
  network_ = network::network_of(*own_system_);
  if (network_ != nullptr)
    network_->set_on_refused([&here = services_](const gate::refusal& refused) {
      ++here.counts.connections_refused;
      here.log.warn("network", [&] { return "refused a connection: " + refused.why; });
    });
  live_on(services_, *own_system_, network_, &config_->arriving());
}

void node_runtime::start() {
  const auto& options = services_.options;
  const auto& tracer = services_.actors.tracer = tracing::spawn_tracer(*services_.actors.system);
  services_.recorder = tracing::trace_recorder(tracer, options.trace);
  if (options.profile) services_.recorder.profile(true);
  start_threads();
  const auto loopback = has_own_system() ? misleading_loopback(options) : std::string();
  const auto membership = has_own_system() ? start_membership(loopback) : contracts::membership_host();
  services_.actors.gateway = spawn_gateway(services_, membership);
  const auto gateway = caf::actor_cast<caf::strong_actor_ptr>(services_.actors.gateway);
  guards_.push_back(services_.network.peers.own->add(gateway->id(), gate::own_actors::kind::gateway));
  if (membership) caf::anon_send(membership, support::subscribe_atom::value, caf::actor_cast<caf::actor>(gateway));
  if (network_ != nullptr) {
    network_->set_unordered(gateway->id());
    // add_first() marks all actors that exist as `inner`. It is called before any node connects, because CAF makes another
    // actor for each node that connects, and asks the node through this actor.
    network_->peers().own->add_first(own_system_->latest_actor_id());
  }
  if (membership) listen(loopback);
  services_.directory.add(services_.self.as_member(), gateway);
  // Other nodes may have greeted this node since it listens. The membership answers them from now on.
  if (membership) caf::anon_send(membership, support::listen_atom::value, gateway, services_.self.port());
}

/// Starts the threads of the node, even threads that are not needed yet. If the system refuses a thread now, the user gets the
/// error; later a network thread would get the error.
void node_runtime::start_threads() {
  try {
    const bool may_wait = services_.options.pass_workers > 0 && devices::accelerator_count() > 0;
    services_.actors.continuation = passes::spawn_cpu_continuation(services_);
    services_.bursts.start(may_wait ? threads_for_bursts : 1, [this] { return passes::spawn_burst_thread(services_); });
    services_.deadlines.start();
    start_pass_workers();
  } catch (const std::system_error& refused) {
    throw no_threads(services_.self.name(), refused);
  }
}

void node_runtime::start_pass_workers() {
  const auto count = services_.options.pass_workers;
  if (count == 0) return;
  try {
    pass_workers_.emplace(services_, count);
  } catch (const error& refused) {
    throw error(refused.code(), "node '" + services_.self.name() + "', pass_workers: " + refused.what());
  }
}

/// Reads the files of certificates again when they change, for as long as the node runs.
void node_runtime::watch_certificates() {
  services_.deadlines.set(between_looks, [this] {
    watch_certificates();  // sets the next alarm first, because this look may fail
    look_at_certificates();
  });
}

void node_runtime::look_at_certificates() {
  const auto& log = services_.log;
  const std::lock_guard lock(looking_);
  try {
    const auto news = config_->gate().proof()->reload();
    for (const auto& each : news.problems) log.warn("nodes", [&] { return each + "; what was read before stays in force"; });
    if (!news.warning.empty()) log.warn("nodes", [&] { return news.warning; });
    if (news.has_changed)
      log.info("nodes", [&] {
        return "read changed certificates again, and ended the connections of nodes that are refused now: " +
               std::to_string(news.cut);
      });
  } catch (const std::exception& problem) {
    log.warn("nodes", [&] { return std::string("can't look at the files of certificates now: ") + problem.what(); });
  }
}

std::string node_runtime::reload() noexcept {
  logging::reopen_logs();
  if (network_ != nullptr && network_->gate().proof()) look_at_certificates();
  const auto policy = network_ != nullptr ? network_->gate().policy() : nullptr;
  if (!policy) return {};
  const auto& log = services_.log;
  try {
    const bool has_changed = policy->read_again();
    log.info("nodes", [&] { return std::string("read the policy again") + (has_changed ? "" : ", which has not changed"); });
    if (has_changed) warn_of_roles_that_save();
    return {};
  } catch (const std::exception& problem) {
    auto why = std::string("--policy: ") + problem.what() + "; what was read before stays in force";
    log.warn("nodes", [&] { return why; });
    return why;
  }
}

void node_runtime::warn_of_roles_that_save() {
  const auto& policy = services_.network.peers.policy;
  if (policy == nullptr || !services_.options.data_dir.empty()) return;
  for (const auto& role : policy->now().roles_that_save()) services_.log.warn("nodes", [&] { return no_folder_for(role); });
}

/// Starts the membership. It greets nobody and joins nobody before the node listens.
contracts::membership_host node_runtime::start_membership(const std::string& loopback) {
  const auto& options = services_.options;
  membership::membership_options how;
  how.self = services_.self.as_member();
  if (!loopback.empty()) how.self.host = loopback;
  how.heartbeat = options.heartbeat;
  how.forget_after = options.forget_after;
  how.log = services_.log;
  how.shares = [services = &services_](node_id who) {
    return services->directory.traffic.is_used(who, [&] { return share_context_or_object(*services, who); });
  };
  if (network_ != nullptr && network_->gate().proof())
    how.accept = [known = services_.network.peers.introduced](node_id who) { return known->accept(who); };
  if (services_.network.peers.policy != nullptr)
    how.believes = [services = &services_](node_id who) { return services->rights.of(who).members; };
  how.guard = [own = services_.network.peers.own](caf::actor_id who) { return own->add(who, gate::own_actors::kind::inner); };
  auto result = membership::spawn_membership(*services_.actors.system, how);
  services_.actors.membership = result;
  guards_.push_back(services_.network.peers.own->add(result.id(), gate::own_actors::kind::inner));
  return result;
}

void node_runtime::listen(const std::string& loopback) {
  const auto& options = services_.options;
  // After a node has ended, its connections keep the port busy for a minute. With `reuse` (SO_REUSEADDR) a new node can listen
  // at this port at once; two living nodes still can't. For port 0 `reuse` is false here, because the system could give two
  // nodes the same port. shared_multiplexer sets SO_REUSEADDR after the system has chosen the port.
  const bool reuse = options.port != 0;
  auto& middleman = services_.actors.system->middleman();
  const auto published = middleman.publish(services_.actors.gateway, options.port, options.host.c_str(), reuse);
  if (!published)
    throw error(errc::misuse, "node '" + options.name + "' can't listen on " + options.host + ":" +
                                std::to_string(options.port) + ": " + why_not_at(options.host, options.port));
  services_.self.listens_at(*published);
  const auto& log = services_.log;
  log.info("nodes", [&] { return "listens at " + membership::address_text(options.host, *published); });
  if (options.insecure) log.warn("nodes", [] { return insecure_warning; });
  if (network_ != nullptr && network_->gate().proof()) watch_certificates();
  warn_of_roles_that_save();
  if (!loopback.empty()) log.warn("nodes", [&] { return name_of_loopback(options, loopback); });
}

// In a call, a burst or a continuation begin_end() throws, because the node would have to wait for the calling thread. The
// exception leaves this destructor, so the process ends with the text of the error.
// NOLINTNEXTLINE(bugprone-exception-escape)
node_runtime::~node_runtime() {
  if (begin_end()) end();
  link_->drain();
  let_go();
}

/// Drops all handles of actors of the system, and stops waiting for elements from devices.
void node_runtime::let_go() {
  services_.departures.reset();
  services_.actors = {services_.actors.system};
}

bool node_runtime::begin_end() {
  {
    checked_lock lock(mutex_);
    if (stopped_) return false;
    const auto& name = services_.self.name();
    detail::continuation_scope::refuse_to_wait();
    if (services::own_thread::of(services_.running) || support::call_scope::runs_pass_of(services_.self.id()))
      throw error(errc::misuse, "stop: this thread runs a call or a backward pass of node '" + name +
                                  "', which would wait for itself; let another thread stop the node");
    if (network_ != nullptr && network_->lead_here())
      throw error(errc::misuse, "stop: this thread brings the messages of node '" + name +
                                  "' and would wait for itself; let another thread stop or destroy the node");
    stopped_ = true;
  }
  link_->close();
  services_.news.on_peer_down.set(nullptr);
  services_.news.on_peer_gone.set(nullptr);
  services_.news.on_peer_up.set(nullptr);
  services_.news.on_left.set(nullptr);
  services_.is_ending = true;
  return true;
}

void node_runtime::end() noexcept {
  TROUPE_EXPECT(services_.is_ending);
  const auto garbage = services_.garbage.stop();  // destroyed last
  end_actors();
  if (network_ != nullptr) network_->finish_jobs();
  services_.deadlines.stop();
  services_.directory.clear();
  services_.recorder = {};
  if (services_.self.port() != 0) services_.log.info("nodes", [] { return "stopped"; });  // otherwise the node never listened
}

void node_runtime::end_actors() {
  services_.contexts.release_closed();
  services_.calls.stop();
  services_.gradient_credits.stop();
  services_.departures->finish(std::chrono::steady_clock::now() + device_patience);
  const support::logger_release lets_go;
  caf::scoped_actor self{*services_.actors.system};
  const auto& membership = services_.actors.membership;
  if (membership)
    self
      ->request(caf::actor_cast<caf::actor>(membership), std::chrono::seconds(1), support::leave_atom::value,
                std::string("its node stopped"))
      .receive([] {}, [](const caf::error&) {});
  const auto& gateway = services_.actors.gateway;
  if (const auto port = services_.self.port(); gateway && port != 0)
    services_.actors.system->middleman().unpublish(gateway, port);
  std::vector<caf::actor> all;
  auto end = [&all](const auto& actor) {
    if (actor) all.push_back(caf::actor_cast<caf::actor>(actor));
  };
  for (const auto& context : services_.contexts.stop()) end(context);
  for (const auto& worker : services_.workers.stop()) end(worker);
  for (const auto& each : services_.memory_readers.stop()) end(each);
  for (const auto& actor : services_.published.stop()) end(actor);
  end(membership);
  end(gateway);
  for (const auto& thread : services_.bursts.stop()) end(thread);
  end(services_.actors.continuation);
  end(services_.actors.tracer);
  for (const auto& actor : all) self->send_exit(actor, caf::exit_reason::user_shutdown);
  if (!support::has_no_threads(*services_.actors.system)) self->wait_for(all);
  pass_workers_.reset();  // no burst runs any more
}

void node_runtime::check_running() const {
  checked_lock lock(mutex_);
  if (stopped_) throw link_->has_ended();
}

void node_runtime::tidy() {
  services_.contexts.release_closed();
  services_.garbage.free_all();
}

void node_runtime::introduce(node_runtime& other) {
  const auto gateway = caf::actor_cast<caf::strong_actor_ptr>(other.services_.actors.gateway);
  services_.directory.add(other.services_.self.as_member(), gateway);
  caf::anon_send(services_.actors.gateway, contracts::peer_up{other.services_.self.as_member(), gateway});
}

}  // namespace troupe::nodes
