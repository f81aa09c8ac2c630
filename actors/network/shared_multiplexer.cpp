// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/shared_multiplexer.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <future>
#include <string_view>
#include <system_error>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/doorman.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/native_socket.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/sec.hpp>

#include <troupe/actors/network/accepting.hpp>
#include <troupe/actors/network/network_threads.hpp>
#include <troupe/actors/network/tcp_scribe.hpp>
#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/actors/support/machine_address.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

namespace {

/// Reads a private member: CAF has no function that returns the epoll set of its multiplexer. C++ lets an explicit
/// instantiation name private members.
template <auto Member>
struct epoll_set {
  friend int epoll_set_of(const caf::io::network::default_multiplexer& of) { return of.*Member; }
};
int epoll_set_of(const caf::io::network::default_multiplexer& of);
template struct epoll_set<&caf::io::network::default_multiplexer::epollfd_>;

/// How long connect_soon() waits until the other end accepts the connection. The waiting thread makes the connections to all
/// hosts, so the time is short. It is longer than 1 s, because TCP sends a lost packet again after 1 s.
constexpr int patience_ms = 2000;

/// Connects a socket to the host within patience_ms. CAF's function has no deadline: if the host drops the packets, CAF's
/// function waits for two minutes.
caf::expected<support::owned_descriptor> connect_soon(const std::string& host, std::uint16_t port) {
  const auto address = support::read_address(host, port);
  if (!address) {  // a host name, which only programs give: nodes give addresses
    const auto connected = caf::io::network::new_tcp_connection(host, port);
    if (!connected) return connected.error();
    return support::owned_descriptor(*connected);
  }
  const auto& to = *address->addresses;
  support::owned_descriptor socket(::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return caf::make_error(caf::sec::cannot_open_port, std::generic_category().message(errno));
  int problem = ::connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (problem == EINPROGRESS) {
    pollfd accepted{socket.get(), POLLOUT, 0};
    socklen_t size = sizeof problem;
    if (::poll(&accepted, 1, patience_ms) <= 0)
      problem = ETIMEDOUT;
    else
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
  }
  if (problem == 0) return socket;
  return caf::make_error(caf::sec::cannot_connect_to_node, host, port, std::generic_category().message(problem));
}

gate::connection_gate gate_of(const caf::actor_system_config& config) {
  const auto* own = dynamic_cast<const gate::gate_owner*>(&config);
  return own != nullptr ? own->gate() : gate::connection_gate(gate::connection_gate::rule::same_user);
}

/// Makes the table of the nodes that introduce themselves. When a node gives up an id, the owner drops the tensors that came
/// from that id. So a node can't evade the limits of one sender by drawing new ids.
std::shared_ptr<gate::introduced_nodes> introductions_of(const caf::actor_system_config& config) {
  const auto* own = dynamic_cast<const gate::gate_owner*>(&config);
  if (own == nullptr) return std::make_shared<gate::introduced_nodes>();
  return std::make_shared<gate::introduced_nodes>([own](node_id who) { own->give_up(who); });
}

/// Lets another node listen at the port as soon as this node has ended. Accepted connections inherit this option. Without it
/// they would keep the port busy for a minute. The option is set after the port was chosen, because otherwise two nodes could
/// get the same port.
void let_successors_listen(int socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

void set_non_blocking(int socket) { ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK); }

}  // namespace

/// Accepts connections. A broker learns of a connection only if the gate lets it in. With certificates, the other end must also
/// have proven who it is.
class shared_multiplexer::doorman final : public caf::io::doorman {
 public:
  doorman(shared_multiplexer& network, caf::io::network::native_socket socket)
      : caf::io::doorman(caf::io::network::accept_hdl_from_socket(socket)),
        network_(network),
        acceptor_(network, socket, accepting([&network](int problem) {
                    network.refuse({"a connection ended at once: this process has no descriptor for it (" +
                                    std::generic_category().message(problem) + "); raise its limit (ulimit -n)"});
                  })) {
    let_successors_listen(socket);
    checked_lock lock(network_.doormen_.mutex);
    number_ = ++network_.doormen_.last;
    network_.doormen_.all.emplace(number_, this);
  }
  ~doorman() override { leave(); }

  bool new_connection() override {
    support::owned_descriptor socket(std::exchange(acceptor_.accepted_socket(), caf::io::network::invalid_native_socket));
    try {
      return take(std::move(socket));
    } catch (const std::exception& problem) {  // no memory, or no thread
      network_.refuse({std::string("a connection ended at once: ") + problem.what()});
      return false;
    }
  }

  bool take(support::owned_descriptor socket) {
    if (detached() || !network_.lets_in(socket.get())) return false;
    if (network_.reception_) {
      set_non_blocking(socket.get());
      network_.reception_->admit(std::move(socket), number_);
      return true;
    }
    return let_in(std::move(socket), nullptr);
  }

  bool let_in(support::owned_descriptor socket, std::unique_ptr<gate::tls_session> secured) {
    if (detached()) {
      secured.reset();  // before the socket closes, because a new connection may get the same descriptor number
      return false;
    }
    auto made = network_.make_scribe(std::move(socket), gate::end::called, std::move(secured));
    made->expect_first(network_.doormen_.silent.add(made->socket()));
    const auto handle = made->hdl();
    parent()->add_scribe(std::move(made));
    return caf::io::doorman::new_connection(&acceptor_.backend(), handle);
  }

  void launch() override { acceptor_.start(this); }
  void add_to_loop() override { acceptor_.activate(this); }
  void remove_from_loop() override { acceptor_.passivate(); }
  void graceful_shutdown() override {
    leave();
    acceptor_.graceful_shutdown();
    detach(&acceptor_.backend(), false);
  }

  std::string addr() const override {
    const auto found = caf::io::network::local_addr_of_fd(acceptor_.fd());
    return found ? *found : std::string{};
  }
  std::uint16_t port() const override {
    const auto found = caf::io::network::local_port_of_fd(acceptor_.fd());
    return found ? *found : std::uint16_t{0};
  }

 private:
  void leave() {
    checked_lock lock(network_.doormen_.mutex);
    network_.doormen_.all.erase(number_);
  }

  shared_multiplexer& network_;
  patient_acceptor acceptor_;
  std::uint64_t number_ = 0;
};

shared_multiplexer::shared_multiplexer(caf::actor_system* system)
    : default_multiplexer(system),
      gate_(gate_of(system->config())),
      peers_{.introduced = introductions_of(system->config()), .policy = gate_.policy()},
      threads_(network_threads::of_process()) {
  if (gate_.proof())
    reception_.emplace(
      gate_.proof(),
      gate::reception::receivers{[this](gate::proven_connection arrived, std::uint64_t listener) {
                                   post([this, listener, one = std::make_shared<gate::proven_connection>(std::move(arrived))] {
                                     admit(std::move(*one), listener);
                                   });
                                 },
                                 [this](const gate::refusal& why) { refuse(why); }});
}

shared_multiplexer::~shared_multiplexer() {
  reception_.reset();
  scribes_.behind.clear();
  scribes_.reading_on.clear();
  for (auto* all : {&posts_.all, &posts_.own})
    while (!all->empty()) {  // the release of one resumable may post another
      auto* last = all->back();
      all->pop_back();
      caf::scheduler::abstract_coordinator::cleanup_and_release(last);
    }
}

void shared_multiplexer::exec_later(caf::resumable* what) {
  // CAF's own exec_later() writes posted functions to a pipe, which the thread of the brokers reads. A broker that posts more
  // functions than the pipe takes would wait for its own thread for ever.
  const auto kind = what->subtype();
  if (kind != caf::resumable::io_actor && kind != caf::resumable::function_object) return default_multiplexer::exec_later(what);
  if (posts_.are_served && threads_->lead_here()) {
    posts_.own.push_back(what);
    if (posts_.own.size() == 1) threads_->note(*this);
    return;
  }
  checked_lock lock(posts_.mutex);
  posts_.all.push_back(what);
  if (posts_.are_served && posts_.all.size() == 1) threads_->note(*this);
}

void shared_multiplexer::run() {
  thread_id({});  // no thread has this id, so CAF posts all work instead of doing it in the calling thread
  std::future<void> gone;
  {
    checked_lock lock(posts_.mutex);  // exec_later() and left() wait until posts_.are_served is set
    gone = threads_->serve(*this);
    posts_.are_served = true;
  }
  gone.wait();
}

void shared_multiplexer::left() {
  for (int round = 0; round < network_threads::most_rounds && handle_posts(); ++round) {
  }
  checked_lock lock(posts_.mutex);
  posts_.are_served = false;
}

caf::io::scribe_ptr shared_multiplexer::new_scribe(caf::io::network::native_socket socket) {
  return make_scribe(support::owned_descriptor(socket), gate::end::called, nullptr);
}

caf::intrusive_ptr<tcp_scribe> shared_multiplexer::make_scribe(support::owned_descriptor&& socket, gate::end which,
                                                               std::unique_ptr<gate::tls_session> secured) {
  if (secured && peers_.ids->own().empty()) peers_.ids->set_own(gate::bytes_of(system().node()));  // CAF has made the id by now
  caf::io::network::keepalive(socket.get(), true);
  facts_.begin(socket.get());
  return caf::make_counted<tcp_scribe>(*this, static_cast<connection_host&>(*this), std::move(socket), which,
                                       std::move(secured));
}

/// Lets in a connection whose other end has proven who it is.
void shared_multiplexer::admit(gate::proven_connection arrived, std::uint64_t listener) {
  doorman* found = nullptr;
  {
    checked_lock lock(doormen_.mutex);
    if (const auto at = doormen_.all.find(listener); at != doormen_.all.end()) found = at->second;
  }
  // `found` is valid: only the leader thread ends a doorman, and this is the leader thread.
  if (found == nullptr) return;
  try {
    found->let_in(std::move(arrived.socket), std::move(arrived.session));
  } catch (const std::exception& problem) {  // no memory
    refuse({std::string("a connection ended at once: ") + problem.what()});
  }
}

void shared_multiplexer::set_on_refused(std::function<void(const gate::refusal&)> on_refused) {
  const checked_lock lock(doormen_.mutex);
  TROUPE_EXPECT(doormen_.all.empty());
  on_refused_ = std::move(on_refused);
}

void shared_multiplexer::refuse(const gate::refusal& why) const {
  if (!why.has_ended && on_refused_) on_refused_(why);
}

caf::io::doorman_ptr shared_multiplexer::new_doorman(caf::io::network::native_socket socket) {
  return caf::make_counted<doorman>(*this, socket);
}

caf::expected<caf::io::doorman_ptr> shared_multiplexer::new_tcp_doorman(std::uint16_t port, const char* in, bool reuse) {
  const auto scoped =
    in != nullptr && std::string_view(in).find('%') != std::string_view::npos ? support::read_address(in, port) : std::nullopt;
  if (!scoped) return default_multiplexer::new_tcp_doorman(port, in, reuse);
  const auto& to = *scoped->addresses;
  support::owned_descriptor socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuse ? 1 : 0;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), to.ai_addr, to.ai_addrlen) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return caf::make_error(caf::sec::cannot_open_port, std::generic_category().message(errno));
  return new_doorman(socket.release());
}

/// Connects to an address for which no connection is stored (outgoing_connections). With certificates this function only
/// begins the handshake of TLS, and the scribe has to go on with it.
caf::expected<gate::proven_connection> shared_multiplexer::begin_call(const std::string& host, std::uint16_t port) const {
  auto connected = connect_soon(host, port);
  if (!connected) return connected.error();
  gate::proven_connection result{std::move(*connected), nullptr};
  if (const auto refused = gate_.check(result.socket.get(), gate::end::calling)) return make_error(errc::refused, refused->why);
  if (!gate_.proof()) return result;
  const auto there = support::other_end_of(result.socket.get());
  set_non_blocking(result.socket.get());
  result.session = std::make_unique<gate::tls_session>(gate_.proof(), result.socket.get(), gate::end::calling, there);
  // This thread may be the leader, and must not wait.
  if (result.session->shake_hands() == gate::tls_session::progress::failed)
    return make_error(errc::refused, "the program at " + there + ": " + result.session->problem().why);
  return result;
}

/// Makes a scribe for the calling end of a connection: one that is stored for the address, or a new one.
caf::expected<caf::io::scribe_ptr> shared_multiplexer::new_tcp_scribe(const std::string& host, std::uint16_t port) {
  auto call = calls_.take(host, port);
  if (!call) {
    auto called = begin_call(host, port);
    if (!called) return called.error();
    call = std::move(*called);
  }
  auto made = make_scribe(std::move(call->socket), gate::end::calling, std::move(call->session));
  made->expect_channel();
  made->expect_first(calls_.expect_first(host, port, made->socket()));
  return caf::io::scribe_ptr(std::move(made));
}

void shared_multiplexer::give_up_calls_to(const std::string& host, std::uint16_t port) {
  post([this, host, port] { calls_.give_up(host, port); });
}

/// Returns whether the gate lets an accepted connection in. Reports a refusal.
bool shared_multiplexer::lets_in(int socket) {
  const auto refused = gate_.check(socket, gate::end::called);
  if (refused) refuse(*refused);
  return !refused;
}

void shared_multiplexer::catch_up_soon(tcp_scribe* connection) { scribes_.behind.emplace_back(connection); }

void shared_multiplexer::read_on_later(tcp_scribe* connection) {
  scribes_.reading_on.emplace_back(connection);
  if (scribes_.reading_on.size() == 1) threads_->note_later(*this);
}

void shared_multiplexer::rest_for_large() { threads_->rest_for_large(); }

void shared_multiplexer::go_on() {
  const auto due = std::exchange(scribes_.reading_on, {});
  for (const auto& each : due) each->read_on();
  handle_internal_events();
  catch_up();
}

void shared_multiplexer::note_wrong(const std::string& address, const std::string& what) {
  refuse({"the program at " + address + " sent " + what});
}

shared_multiplexer* network_of(caf::actor_system& system) {
  return system.has_middleman() ? dynamic_cast<shared_multiplexer*>(&system.middleman().backend()) : nullptr;
}

gate::connection_gate gate_of(caf::actor_system& system) {
  const auto* network = network_of(system);
  return network != nullptr ? network->gate() : gate::connection_gate(gate::connection_gate::rule::anyone);
}

bool shared_multiplexer::shares_memory() const { return caf::get_or(system().config(), "troupe.shared-memory", true); }

void shared_multiplexer::watch(tcp_scribe* connection) {
  if (lead_here()) threads_->watched().add(*this, connection);
}

void shared_multiplexer::forget(tcp_scribe* connection) {
  if (lead_here()) threads_->watched().forget(connection);
}

void shared_multiplexer::meet(tcp_scribe* connection, const std::string& channel) {
  if (lead_here()) threads_->watched().meet(*this, connection, channel);
}

bool shared_multiplexer::ring(tcp_scribe* connection) { return lead_here() && threads_->watched().ring(connection); }

bool shared_multiplexer::lead_here() const noexcept { return threads_->lead_here(); }

bool shared_multiplexer::run_soon(network_job work) { return threads_->run_soon(*this, std::move(work)); }

void shared_multiplexer::finish_jobs() { threads_->finish_jobs(*this); }

void shared_multiplexer::ask_for_idle_work() {
  TROUPE_EXPECT(idle_work_);
  threads_->ask_for_idle_work(*this);
}

int shared_multiplexer::poll_handle() const { return epoll_set_of(*this); }

void shared_multiplexer::handle_events() {
  poll_once(false);
  catch_up();
}

void shared_multiplexer::settle() {
  catch_up();
  handle_internal_events();
}

bool shared_multiplexer::handle_posts() {
  {
    checked_lock lock(posts_.mutex);
    posts_.due.swap(posts_.all);
  }
  posts_.due.insert(posts_.due.end(), posts_.own.begin(), posts_.own.end());
  posts_.own.clear();
  if (posts_.due.empty()) return false;
  for (auto* each : posts_.due) {
    resume_some(each);
    catch_up();
  }
  posts_.due.clear();
  handle_internal_events();
  return true;
}

/// Resumes a broker for `most_messages` messages. A broker with more messages goes on after the other brokers.
void shared_multiplexer::resume_some(caf::resumable* what) {
  caf::intrusive_ptr<caf::resumable> one(what, false);
  switch (one->resume(this, most_messages)) {
    case caf::resumable::resume_later:
      posts_.own.push_back(one.release());
      if (posts_.own.size() == 1) threads_->note(*this);
      break;
    case caf::resumable::shutdown_execution_unit:
      one.release();
      break;
    default:
      break;
  }
}

void shared_multiplexer::catch_up() {
  if (scribes_.behind.empty()) return;
  while (!scribes_.behind.empty()) {
    scribes_.catching_up.swap(scribes_.behind);
    for (const auto& each : scribes_.catching_up) each->catch_up();
    handle_internal_events();
    scribes_.catching_up.clear();  // may destroy connections
  }
}

}  // namespace troupe::network
