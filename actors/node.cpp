// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/node.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <torch/csrc/autograd/anomaly_mode.h>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/nodes/node_pages.hpp>
#include <troupe/actors/nodes/node_runtime.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/ends_by.hpp>
#include <troupe/actors/support/inner_time.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/support/thread_modes.hpp>
#include <troupe/actors/tracing/chrome_trace.hpp>
#include <troupe/actors/tracing/operator_log.hpp>
#include <troupe/devices/compressed_tensors.hpp>
#include <troupe/devices/landing.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe {

namespace {

constexpr std::chrono::seconds collect_deadline{30};

void expect_to_run(const nodes::node_services& here) {
  if (here.is_ending) throw error(errc::stopping, "node '" + here.self.name() + "' has stopped");
}

/// Asks the gateway of a node and waits for the answer. `what`: begins the text of an error.
template <class Answer, class... Question>
Answer ask(nodes::node_services& here, const contracts::gateway_actor& who, std::chrono::milliseconds deadline,
           const std::string& what, Question... question) {
  detail::continuation_scope::refuse_to_wait();
  const support::logger_release lets_go;
  caf::scoped_actor self{*here.actors.system};
  Answer result;
  const auto failed = [&](const caf::error& reason) {
    expect_to_run(here);
    if (reason == caf::sec::request_timeout)
      throw error(errc::deadline_passed, what + ": no answer within " + support::seconds_text(deadline));
    throw to_exception(reason, what);
  };
  self->request(who, deadline, std::move(question)...).receive([&](Answer& all) { result = std::move(all); }, failed);
  return result;
}

/// The gateway of a peer. `what`: begins the text of an error.
contracts::gateway_actor gateway_of(nodes::node_services& here, node_id who, const std::string& what) {
  if (auto found = here.directory.gateway(who)) return found;
  expect_to_run(here);
  throw error(errc::peer_down, what + ": it is down");
}

/// Runs `rest`, the rest of a node's constructor. If `rest` throws, the link forgets the node, because a program may still hold
/// a `peer` object from settings::prepare. The functions of that object then throw, and do not use the destroyed node.
template <class Rest>
void construct(nodes::node_link& link, Rest rest) {
  try {
    rest();
  } catch (...) {
    link.forget_node();
    throw;
  }
}

/// Makes and logs the error of a node whose end takes longer than settings::stop_limit. `running`: the work that still runs.
error late_end(const logging::node_log& log, const settings& options, const std::string& running) {
  error result(errc::deadline_passed,
               "node '" + options.name + "' has not stopped within " + support::seconds_text(options.stop_limit) + ": " +
                 (running.empty() ? "a device, a peer or an actor of the program does not answer" : "still runs " + running) +
                 ". The node's threads end when nothing of this is left.");
  log.error("nodes", [&] { return std::string(result.what()); });
  return result;
}

/// Moves the tensors of a result to their devices on this node. `memory`: null if the answer was to be exact.
void lead_back(call_reply& result, autograd_message& answer, const services::device_map_ptr& map, const std::string& label,
               const std::string& from, tensor_memory* memory) {
  if (!map && answer.devices.empty() && answer.packings.empty())
    return static_cast<void>(std::for_each(result.tensors.begin(), result.tensors.end(), devices::leave_landing));
  if (memory == nullptr && !answer.packings.empty())
    throw error(errc::malformed_message, "node '" + from + "' has compressed an answer, which was not asked for");
  const auto what = "the result of '" + label + "' from node '" + from + "'";
  if (map) answer.devices = devices::way_back(result.tensors, std::move(answer.devices), *map, what, from);
  if (memory != nullptr)
    return devices::unpack_to_devices(result.tensors, answer.packings, answer.devices, what, *memory, answer.ahead.made);
  devices::move_to_devices(result.tensors, answer.devices, what, answer.ahead.made);
}

/// Adds a call to `before`, the text about the calls that led to this call.
std::string add_call(const std::string& before, const std::string& label, const std::string& from, const std::string& to) {
  return (before.empty() ? "node '" + from + "'" : before + ", which") + " called '" + label + "' on node '" + to + "'";
}

using support::within_bounds;

}  // namespace

node::node(settings options) : runtime_(std::make_shared<nodes::node_runtime>(*this, std::move(options))) {
  construct(*runtime_->link(), [this] {
    start();
    join_seeds();
    if (pages_) pages_->serves();
  });
}

node::node(settings options, caf::actor_system& host)
    : runtime_(std::make_shared<nodes::node_runtime>(*this, std::move(options), &host)) {
  construct(*runtime_->link(), [this] {
    start();
    if (pages_) pages_->serves();
  });
}

void node::start() {
  auto& services = runtime_->services();
  const auto& with = options();
  if (!with.metrics.empty()) pages_ = std::make_unique<nodes::node_pages>(*runtime_);
  if (!with.until_left.empty())
    services.news.on_left.set([&services, name = with.until_left](const std::string& who, const std::string&) {
      if (who == name) services.end.ask();
    });
  if (with.prepare) with.prepare(*this);
}

// In a call, a hook or a continuation stop() throws, because the node would have to wait for the calling thread. The exception
// leaves this destructor, so the process ends with the text of the error.
// NOLINTNEXTLINE(bugprone-exception-escape)
node::~node() {
  const auto until = std::chrono::steady_clock::now() + options().stop_limit;
  const bool has_own_system = runtime_->has_own_system();
  bool is_late = false;
  try {
    stop();
  } catch (const error& late) {
    if (late.code() != errc::deadline_passed) throw;
    is_late = true;
  }
  pages_ = nullptr;
  runtime_->link()->forget_node();
  if (!has_own_system) return;
  support::let_go_of_logger();  // this thread may have made actors of the node's system
  const auto log = runtime_->services().log;
  const auto with = options();
  if (!support::ends_by(until, [last = std::exchange(runtime_, nullptr)]() mutable { last.reset(); }) && !is_late)
    static_cast<void>(late_end(log, with, {}));
}

const std::string& node::name() const noexcept { return runtime_->services().self.name(); }

node_id node::id() const noexcept { return runtime_->services().self.id(); }

std::string node::name_of(node_id who) const { return runtime_->services().directory.name(who); }

const settings& node::options() const noexcept { return runtime_->services().options; }

std::uint16_t node::port() const noexcept { return runtime_->services().self.port(); }

std::uint16_t node::metrics_port() const noexcept { return pages_ ? pages_->port() : 0; }

std::string node::data_path(const std::string& path) const {
  const auto& data = runtime_->services().data;
  const auto bounds = support::call_scope::current_bounds();
  const bool of_itself = bounds.depth > 0 && !bounds.for_peer;
  return !data && of_itself ? path : data.path_of(path);
}

function_table& node::functions() noexcept { return runtime_->services().functions; }

caf::actor_system& node::system() noexcept { return *runtime_->services().actors.system; }

void node::publish(std::string name, const caf::strong_actor_ptr& actor) {
  if (!actor) throw error(errc::misuse, "publish: '" + name + "' is no actor but an empty handle");
  runtime_->services().published.add(std::move(name), actor);
}

objects::object_store& node::objects() noexcept { return runtime_->services().objects; }

std::string node::join(const std::string& host, std::uint16_t port, std::optional<std::chrono::milliseconds> deadline) {
  runtime_->check_running();
  detail::continuation_scope::refuse_to_wait();
  const std::chrono::nanoseconds limit = within_bounds(deadline.value_or(options().deadline));
  const support::logger_release lets_go;
  caf::scoped_actor self{*runtime_->services().actors.system};
  std::string result;
  self
    ->request(runtime_->services().actors.membership, limit + std::chrono::seconds(1), support::join_atom::value, host, port,
              static_cast<std::int64_t>(limit.count()))
    .receive([&](const member& who) { result = who.name; },
             [&](const caf::error& reason) {
               throw to_exception(reason, "joining " + host + ":" + std::to_string(port) + " from node '" + name() + "\'");
             });
  // The directory learns of nodes from the messages peer_up and peer_down, which may come after join() has returned. This
  // look-up updates the directory at once, so that the name of a restarted node means the new node.
  self->request(runtime_->services().actors.membership, limit, support::find_atom::value, result, std::int64_t{0})
    .receive(
      [&](const contracts::peer_up& found) { runtime_->services().directory.add(found.who, found.gateway, found.period); },
      [](const caf::error&) {});
  return result;
}

void node::join_seeds() {
  const auto& with = options();
  if (with.join.empty()) return;
  const support::logger_release lets_go;
  caf::scoped_actor self{*runtime_->services().actors.system};
  std::string seeds;
  for (const auto& each : with.join) seeds += (seeds.empty() ? "" : ", ") + each;
  self
    ->request(runtime_->services().actors.membership, caf::infinite, support::join_atom::value, with.join,
              std::int64_t{std::chrono::nanoseconds(with.join_wait).count()})
    .receive([](const member&) {},
             [&](const caf::error& reason) { throw to_exception(reason, "joining " + seeds + " from node '" + name() + "'"); });
}

troupe::peer node::peer(const std::string& name, std::optional<std::chrono::milliseconds> deadline) {
  if (name == this->name()) return self();
  runtime_->check_running();
  if (const auto known = runtime_->services().directory.find(name)) return troupe::peer(*this, name, *known);
  detail::continuation_scope::refuse_to_wait();
  const std::chrono::nanoseconds limit = within_bounds(deadline.value_or(options().deadline));
  const support::logger_release lets_go;
  caf::scoped_actor self{*runtime_->services().actors.system};
  std::optional<troupe::peer> result;
  self
    ->request(runtime_->services().actors.membership, limit + std::chrono::seconds(1), support::find_atom::value, name,
              static_cast<std::int64_t>(limit.count()))
    .receive(
      [&](const contracts::peer_up& found) {
        runtime_->services().directory.add(found.who, found.gateway, found.period);
        result.emplace(*this, found.who.name, found.who.id);
      },
      [&](const caf::error& reason) { throw to_exception(reason); });
  return *result;
}

troupe::peer node::self() { return troupe::peer(*this, name(), id()); }

node_status node::status() const {
  runtime_->check_running();
  runtime_->services().contexts.release_closed();
  auto& here = runtime_->services();
  return ask<node_status>(here, here.actors.gateway, within_bounds(options().deadline), "the status of node '" + name() + "'",
                          support::status_atom::value);
}

std::vector<std::string> node::peers() const {
  std::vector<std::string> result;
  for (const auto& each : runtime_->services().directory.members())
    if (each.id != id()) result.push_back(each.name);
  return result;
}

void node::on_peer_down(std::function<void(const std::string&, const std::string&)> notify) {
  runtime_->services().news.on_peer_down.set(std::move(notify));
}

void node::on_peer_gone(std::function<void(const std::string&, const std::string&)> notify) {
  runtime_->services().news.on_peer_gone.set(std::move(notify));
}

void node::on_peer_up(std::function<void(const std::string&)> notify) {
  if (!notify) return runtime_->services().news.on_peer_up.set(nullptr);
  runtime_->services().news.on_peer_up.set(
    [notify = std::move(notify)](const std::string& name, const std::string&) { notify(name); });
}

void node::trace(const std::string& name, const std::string& category, std::int64_t begin_ns, std::int64_t end_ns) {
  runtime_->services().recorder.record(name, category, begin_ns, end_ns);
}

void node::set_tracing(bool on) { runtime_->services().recorder.enable(on); }

void node::set_profiling(bool on) { runtime_->services().recorder.profile(on); }

std::string node::collect_trace(const std::vector<std::string>& peers) {
  runtime_->check_running();
  detail::continuation_scope::refuse_to_wait();
  const support::logger_release lets_go;
  caf::scoped_actor self{*runtime_->services().actors.system};
  std::vector<tracing::node_trace> nodes{{name(), 0, {}}};
  self->request(runtime_->services().actors.tracer, collect_deadline, support::collect_atom::value)
    .receive([&](tracing::trace_log& log) { nodes.front().spans = std::move(log.spans); },
             [&](const caf::error& reason) { throw to_exception(reason, "collecting this node's trace"); });
  for (const auto& each : peers) {
    auto who = peer(each);
    auto spans =
      tracing::unpack(get<std::string>(who.ask_for(requests::trace{}).get().values, "spans"), tracing::most_of_node).spans;
    std::int64_t offset = 0;
    self->request(runtime_->services().actors.membership, collect_deadline, support::clock_atom::value, who.id())
      .receive([&](std::int64_t ns) { offset = ns; },
               [&](const caf::error& reason) { throw to_exception(reason, "the clock of node '" + each + "'"); });
    nodes.push_back({each, offset, std::move(spans)});
  }
  return tracing::chrome_trace(nodes);
}

void node::introduce(node& other) { runtime_->introduce(*other.runtime_); }

void node::reload() {
  runtime_->check_running();
  if (const auto problem = runtime_->reload(); !problem.empty()) throw error(errc::misuse, problem);
}

void node::serve() {
  runtime_->services().end.wait([this] { static_cast<void>(runtime_->reload()); });
  stop();
}

void node::stop() {
  if (pages_) pages_->stops();
  bool is_first = false;
  try {
    is_first = runtime_->begin_end();
  } catch (...) {
    if (pages_) pages_->serves();
    throw;
  }
  bool has_ended = true;
  if (!runtime_->has_own_system()) {
    if (is_first) runtime_->end();  // on the caller's system: without a limit of time
  } else if (is_first) {
    has_ended = support::ends_by(std::chrono::steady_clock::now() + options().stop_limit, [which = runtime_] { which->end(); });
  }
  if (pages_) pages_->end();
  std::optional<error> late;
  auto& here = runtime_->services();
  if (!has_ended) late = late_end(here.log, here.options, here.running.text(support::steady_ns()));
  runtime_->services().end.ask();  // ends the waiting in serve(), whose thread may then destroy the node
  if (late) throw *late;
}

peer::peer(node& here, std::string name, node_id id) : here_(here.runtime_->link()), name_(std::move(name)), id_(id) {}

node& peer::here() const { return here_->here(); }

troupe::peer peer::with_devices(device_map map) const {
  auto result = *this;
  result.devices_ = std::make_shared<const device_map>(std::move(map));
  return result;
}

node_status peer::status(std::optional<std::chrono::milliseconds> deadline) const {
  const nodes::visit inside(*here_);
  auto& here = inside->services();
  const auto what = "the status of node '" + name_ + "'";
  const auto limit = within_bounds(deadline.value_or(here.options.deadline));
  return ask<node_status>(here, gateway_of(here, id_, what), limit, what, support::status_atom::value);
}

caf::strong_actor_ptr peer::actor(const std::string& name) const {
  const nodes::visit inside(*here_);
  auto& here = inside->services();
  const auto what = "looking for the actor '" + name + "' of node '" + name_ + "'";
  return ask<caf::strong_actor_ptr>(here, gateway_of(here, id_, what), within_bounds(here.options.deadline), what,
                                    support::find_atom::value, name);
}

future<done> peer::send_capacity(std::optional<std::chrono::milliseconds> deadline) const {
  const nodes::visit inside(*here_);
  if (!inside) return future<done>::failed(here_->has_ended());
  auto& here = inside->services();
  auto wish = std::make_shared<contracts::capacity_wish>();
  wish->to = id_;
  const std::chrono::nanoseconds patience = within_bounds(deadline.value_or(here.options.deadline));
  wish->until_ns = support::steady_ns() + patience.count();
  auto result = wish->result;
  caf::anon_send(here.actors.gateway, support::capacity_atom::value, std::move(wish));
  return result;
}

future<call_reply> peer::call(std::string function, std::vector<at::Tensor> tensors, attributes values, object_id target,
                              std::optional<std::chrono::milliseconds> deadline, std::optional<wire_format> chosen) const {
  return ask_for(requests::function{std::move(function)}, std::move(tensors), std::move(values), target, deadline, chosen);
}

future<call_reply> peer::ask_for(request asked, std::vector<at::Tensor> tensors, attributes values, object_id target,
                                 std::optional<std::chrono::milliseconds> deadline, std::optional<wire_format> chosen) const {
  auto label = label_of(asked);
  const nodes::visit inside(*here_);
  if (!inside)
    return future<call_reply>::failed(
      {errc::stopping, "call of '" + label + "' on node '" + name_ + "' failed: " + here_->has_ended().what()});
  auto& here = inside->services();
  const auto format = calls::format_of(asked, chosen.value_or(support::call_scope::format()));
  auto context = support::call_scope::context();
  const auto what = "the call of '" + label + "' on node '" + name_ + "'";
  if (id_ != here.self.id()) check_can_travel(values, what);
  if (id_ != here.self.id()) check_can_travel(asked, what);
  const auto map = here.maps.to(name_, devices_);
  const bool is_mapped = map && !(tensors.empty() && !calls::is_of_user(asked));
  auto mapped_to = is_mapped ? here.maps.destinations(*map, tensors, what, name_, id_) : std::vector<c10::Device>();
  auto packed = here.outbox.pack(context, std::move(tensors), what, id_, format);
  const auto bounds = support::call_scope::current_bounds();
  if (calls::is_of_graph(asked)) {
    packed.payload.modes = support::modes_of_thread(bounds.autocast || here.options.carry_autocast);
    if (packed.payload.detached) here.outbox.warn_detached(what);
  }
  const bool records = !packed.payload.modes.no_grad;
  if (is_mapped) packed.payload.devices = std::move(mapped_to);
  auto job = std::make_shared<contracts::outgoing_call>();
  job->to = id_;
  job->send = std::move(packed.send);
  job->deadline = within_bounds(deadline.value_or(here.options.deadline));
  job->request.what = std::move(asked);
  job->request.target = target;
  job->request.values = std::move(values);
  job->request.payload = std::move(packed.payload);
  if (context) job->request.payload.place = support::call_scope::next_place();  // after pack() has recorded the send
  engine::way_back back{format, 0};
  if (context && format != wire_format::exact)
    back.call_key = call_key_of(label, target.number, job->request.payload.place, true);
  job->request.depth = static_cast<std::uint32_t>(bounds.depth);
  job->request.from_itself = id_ == here.self.id() && !bounds.for_peer;
  if (context && torch::autograd::AnomalyMode::is_enabled())
    job->request.calls = add_call(support::call_scope::calls(), label, here.self.name(), name_);
  job->label = label;
  job->request.deadline_ns = std::chrono::nanoseconds(job->deadline).count();
  job->spans = tracing::operator_log::current();
  if (job->spans || here.recorder.profiling()) job->request.span = 1;
  auto answer = std::make_shared<autograd_message>();
  job->answer = answer;
  auto reply = job->reply;
  // The thread that calls get() runs the function of set_finish(). So the recv_backward of the result has a place in the
  // program of that thread.
  std::optional<tensor_memory> memory;
  if (format != wire_format::exact) memory = here.outbox.memory;  // the answer is compressed only if the call is
  reply.set_finish([answer, map, label = std::move(label), who = name_, back, memory = std::move(memory),
                    records](call_reply& result) mutable {
    lead_back(result, *answer, map, label, who, memory ? &*memory : nullptr);
    if (records && answer->context && !answer->requires_grad.empty())
      result.tensors = engine::attach_recv(answer->context, answer->message, result.tensors, answer->requires_grad, back);
  });
  inside->services().calls.send(std::move(job), std::move(packed.arriving));
  return reply;
}

}  // namespace troupe
