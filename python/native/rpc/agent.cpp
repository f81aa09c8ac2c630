// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/agent.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <mutex>
#include <random>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/rpc_messages/cleanup_autograd_context_resp.h>
#include <torch/csrc/distributed/rpc/utils.h>

#include <troupe/actors/calls/late_answer.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>

#include "rpc/message_form.hpp"
#include "rpc/private_members.hpp"
#include "rpc/python_callback.hpp"
#include "rpc/python_thread.hpp"
#include "rpc/sent_request.hpp"

namespace torchtroupe {

namespace rpc = torch::distributed::rpc;

namespace {

constexpr const char* name_of_message = "torch.rpc";
constexpr const char* name_of_context = "c";  // beside a message: its autograd context
constexpr const char* name_of_sender = "w";   // beside a message in a group without a fixed size: the id of its worker
constexpr const char* name_of_round = "torch.rpc.round";
constexpr const char* name_of_who = "torch.rpc.who";
constexpr std::size_t callbacks_at_once = 4;
constexpr std::chrono::hours no_limit{24 * 7};  // the longest deadline of a node
constexpr std::chrono::seconds patience_to_meet{2};
constexpr std::chrono::seconds longest_end{10};          // for callbacks of the last requests, which have all failed
constexpr std::chrono::seconds longest_step{1};          // between two looks at signals
constexpr std::chrono::milliseconds longest_keeping{1};  // of an end for a thread that sends further requests
constexpr std::chrono::nanoseconds short_end = std::chrono::microseconds(500);

/// Outside any context, with the depth of the calling thread: a request of PyTorch may take longer than the request that made
/// it.
troupe::support::call_bounds bounds_of_request() {
  auto bounds = troupe::support::call_scope::current_bounds();
  bounds.until_ns = 0;
  bounds.autocast = false;
  return bounds;
}

/// Asks `resolver` once for each type of containers that no program can define. Every message of an autograd context names the
/// type of its device map, "Dict[int, int]", and the parser of types takes nearly half of the time of the reading.
std::shared_ptr<rpc::TypeResolver> remembering(std::shared_ptr<rpc::TypeResolver> resolver) {
  struct memory {
    std::mutex mutex;
    std::unordered_map<std::string, c10::StrongTypePtr> types;
  };
  return std::make_shared<rpc::TypeResolver>(
    [resolver = std::move(resolver), known = std::make_shared<memory>()](const c10::QualifiedName& name) {
      constexpr std::size_t most = 64;
      const auto& text = name.qualifiedName();
      if (text.find("__torch__") != text.npos) return (*resolver)(name);
      {
        const std::lock_guard lock(known->mutex);
        if (const auto found = known->types.find(text); found != known->types.end()) return found->second;
      }
      auto result = (*resolver)(name);
      const std::lock_guard lock(known->mutex);
      if (known->types.size() < most) known->types.emplace(text, result);
      return result;
    });
}

std::string text_of_timeout(std::chrono::milliseconds timeout) {
  return rpc::makeRPCError(
    "RPC ran for more than set timeout (" + std::to_string(timeout.count()) + " ms) and will now be marked with an error",
    rpc::RPCErrorType::TIMEOUT);
}

troupe::call_reply reply_of(c10::intrusive_ptr<rpc::Message> message, bool to_itself) {
  auto form = to_form(*message, to_itself);
  return {std::move(form.tensors), std::move(form.values)};
}

/// `by`: the worker whose function is done. Errors name it as those that the function itself has raised do.
troupe::call_reply reply_of(const rpc::JitFuture& done, bool to_itself, const rpc::WorkerInfo& by, early_deletions& deletions) {
  const auto failed = [&](const std::string& why) {
    const std::string begin = "On WorkerInfo(";
    const auto name = begin + "id=" + std::to_string(by.id_) + ", name=" + by.name_ + "):\n";
    return reply_of(rpc::createExceptionResponse(why.starts_with(begin) ? why : name + why, -1), to_itself);
  };
  if (done.hasError()) return failed(done.tryRetrieveErrorMessage());
  try {
    auto answer = done.constValue().toCustomClass<rpc::Message>();
    deletions.carry_out(*answer);
    return reply_of(std::move(answer), to_itself);
  } catch (const std::exception& why) {
    return failed(why.what());
  }
}

/// Contexts, messages and RRefs that an earlier process of this worker has left on other workers keep their ids.
void begin_new_ids(rpc::worker_id_t worker) {
  const auto first = std::int64_t{std::random_device()()} << 15;  // of 48 bits
  auto& of_autograd = torch::distributed::autograd::DistAutogradContainer::getInstance();
  for (auto* const next : {&(of_autograd.*member_of(next_context{})), &(of_autograd.*member_of(next_message{}))})
    *next = std::max(next->load(), (std::int64_t{worker} << 48) + first);
  auto& references = *member_of(next_reference{});
  references = std::max(references.load(), first);
}

bool is_plain(const troupe::future<troupe::call_reply>& done) try {
  return is_plain_result(done.get().values);
} catch (const troupe::error&) {
  return true;
}

std::chrono::milliseconds milliseconds_of(float seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * rpc::kSecToMsConversion));
}

}  // namespace

agent::agent(const std::string& name, worker_id id, std::size_t world, std::chrono::milliseconds timeout)
    : RpcAgent(worker_info(name, id), make_python_callback(), timeout),
      world_(world),
      callbacks_(callbacks_at_once),
      settlement_(world),
      times_(short_end.count()) {}

std::shared_ptr<agent> agent::open(troupe::settings options, const std::string& name, worker_id id, std::size_t world,
                                   std::chrono::milliseconds timeout) {
  const auto made = std::make_shared<agent>(name, id, world, timeout);
  if (world == 0) begin_new_ids(id);
  made->start_node(std::move(options));
  return made;
}

// The functions hold the agent until close(). A function that does not end keeps it for longer.
void agent::start_node(troupe::settings options) {
  const auto self = shared_from_this();
  options.warn_detached = false;
  options.deadline = no_limit;
  options.prepare = [self](troupe::node& node) {
    troupe::services_of(node).network.takes_turns = true;  // for the interpreter's lock
    node.functions().add(name_of_message, [self](troupe::call_arguments& call) { return self->serve(call); });
    node.functions().add(name_of_round, [self](troupe::call_arguments& call) { return self->settle(call); });
    node.functions().add(name_of_lead, [self](troupe::call_arguments& call) { return self->lead(call); });
    node.functions().add(name_of_who, [self](troupe::call_arguments&) {
      return troupe::call_reply({}, {{"id", std::int64_t{self->workerInfo_.id_}}});
    });
    if (add_functions != nullptr) add_functions(self, node);
    node.on_peer_down([self](const std::string& peer, const std::string& why) {
      if (self->is_worker(peer)) self->settlement_.lost(peer, why);
    });
    node.on_peer_up([self, &directory = troupe::services_of(node).directory](const std::string& peer) {
      if (self->is_worker(peer, directory.find(peer))) self->settlement_.found(peer);
    });
  };
  node_ = std::make_unique<troupe::node>(std::move(options));
  auto& services = troupe::services_of(*node_);
  network_ = &services.network;
  // An end holds the agent. The node rings or drops its alarms before it ends.
  other_way_ = {[this](auto end) { run(std::move(end)); },
                [&services](std::shared_ptr<void> kept) {
                  services.deadlines.set(longest_keeping, [kept = std::move(kept)]() mutable { kept.reset(); });
                }};
  contexts_ = std::make_shared<autograd_contexts>(*node_, workerInfo_.id_, [this](worker_id which) { return peer_of(which); });
  keep(workerInfo_.name_, workerInfo_.id_, node_->self());
}

agent::~agent() { close(); }

void agent::add(const std::string& name, worker_id id, std::chrono::milliseconds patience) {
  if (id == workerInfo_.id_) return;
  auto peer = with_node([&](troupe::node& node) { return node.peer(name, patience); });
  keep(name, id, std::move(peer));
}

const agent::worker& agent::keep(const std::string& name, worker_id id, troupe::peer peer) const {
  const troupe::checked_lock lock(mutex_);
  for (auto each = workers_.begin(); each != workers_.end();) {
    const auto next = std::next(each);
    if ((each->first == id) != (each->second.info.name_ == name)) former_.push_back(workers_.extract(each));
    each = next;
  }
  auto& kept = workers_.try_emplace(id, worker{worker_info(name, id), peer}).first->second;
  kept.peer = std::move(peer);
  return kept;
}

void agent::startImpl() {
  if (auto resolver = getTypeResolver()) setTypeResolver(remembering(std::move(resolver)));
  const troupe::checked_lock lock(counting_);
  started_ = true;
  counted_.notify_all();
}

void agent::await_start() {
  troupe::checked_unique_lock lock(counting_);
  counted_.wait(lock, [this]() TROUPE_REQUIRES(counting_) { return started_ || closed_; });
  if (closed_) throw troupe::error(troupe::errc::stopping, "worker '" + workerInfo_.name_ + "' is shutting down");
}

void agent::close() {
  {
    const troupe::checked_lock lock(counting_);
    if (std::exchange(closed_, true)) return;
    counted_.notify_all();
  }
  settlement_.wait();  // the end of the last round has woken this worker, perhaps before the others
  answers_->close({troupe::errc::stopping, "worker '" + workerInfo_.name_ + "' has shut down"});
  if (!node_) return;  // did not start
  try {
    node_->stop();
  } catch (const troupe::error& late) {
    if (late.code() != troupe::errc::deadline_passed) throw;  // the log says what still runs
  }
  contexts_->release_all();
  {
    troupe::checked_unique_lock lock(counting_);
    counted_.wait_for(lock, longest_end, [this]() TROUPE_REQUIRES(counting_) { return open_ == 0; });
  }
  callbacks_.stop();
  const std::unique_lock alone(ending_);  // stop() has woken those who wait at the node
  node_.reset();
}

agent::future_ptr agent::send(const worker_info& to, c10::intrusive_ptr<rpc::Message> message, float timeout_s,
                              const rpc::DeviceMap&) {
  TORCH_CHECK(message->isRequest(), "torchtroupe: an agent sends requests, got a message of type ", message->type());
  TORCH_CHECK(rpcAgentRunning_.load(), "Node ", workerInfo_.id_, " tried to send() a message of type ", message->type(),
              " but RPC is no longer running on this node.");
  const auto timeout = timeout_s == rpc::kUnsetRpcTimeout ? getRpcTimeout() : milliseconds_of(timeout_s);
  auto future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get(), devices_);
  if (message->type() == rpc::MessageType::CLEANUP_AUTOGRAD_CONTEXT_REQ) {  // nothing is to be sent (UX-3)
    future->markCompleted(torch::distributed::autograd::CleanupAutogradContextResp().toMessage());
    return future;
  }
  // Python's garbage collector may send a deletion between a request of the thread and its wait.
  const bool is_deletion = message->type() == rpc::MessageType::RREF_USER_DELETE;
  const auto sent = is_deletion ? nullptr : sent_request::of_this_thread();
  began();
  std::optional<std::int64_t> joined;  // the autograd context that counts this request
  std::function<void()> resume;
  try {
    meet_if_unknown(to.id_);
    const auto peer = peer_of(to.id_);
    if (!peer) throw std::runtime_error("worker '" + to.name_ + "' is unknown, or this worker has shut down");
    auto form = to_form(*message, to.id_ == workerInfo_.id_);
    std::optional<std::int64_t> context;
    using autograd = torch::distributed::autograd::DistAutogradContainer;
    if (message->type() == rpc::MessageType::FORWARD_AUTOGRAD_REQ ||
        (message->type() == rpc::MessageType::RUN_WITH_PROFILING_REQ && autograd::getInstance().hasValidContext()))
      context = autograd::currentContextId();
    if (context) form.values.emplace(name_of_context, *context);
    if (world_ == 0) form.values.emplace(name_of_sender, std::int64_t{workerInfo_.id_});
    const auto scope = scope_of(context);
    joined = context;
    resume = waiting_thread::request();
    auto reply = peer->call(name_of_message, std::move(form.tensors), std::move(form.values), {},
                            timeout.count() > 0 ? std::optional(timeout) : std::nullopt);
    const auto self = shared_from_this();  // an end may run after close()
    reply.then([self, future, timeout, context, resume, sent](const auto& done) {
      std::function<void()> end = [self, future, timeout, context, resume, done]() noexcept {
        self->complete(future, done, timeout);
        if (resume) resume();
        if (context) self->contexts_->ended(*context);
        self->ended();
      };
      if (sent)
        sent->run(std::move(end), !context && is_plain(done), self->other_way_);
      else
        self->run(std::move(end));
    });
  } catch (const std::exception& why) {
    // A send is asynchronous: its errors are those of the future.
    if (sent) sent->not_sent();
    future->setErrorIfNeeded(std::make_exception_ptr(std::runtime_error(why.what())));
    if (joined) contexts_->ended(*joined);
    if (resume) resume();
    ended();
  }
  if (!is_deletion && std::exchange(sent_request::is_awaited_at_once(), false))
    while (!sent_request::wait(longest_step))
      if (!python_thread::handle_signals()) throw std::runtime_error("a signal has ended the wait");
  return future;
}

/// Runs the end of a request: on this network thread if such ends were short lately, else on a thread of the agent.
void agent::run(std::function<void()> end) {
  auto timed = [self = shared_from_this(), end = std::move(end)] {
    python_thread::keep();
    const auto began = troupe::support::steady_ns();
    end();
    self->times_.note(name_of_message, troupe::support::steady_ns() - began);
  };
  auto here = [timed] {
    const waiting_thread told;
    timed();
  };
  auto elsewhere = [this, timed] { callbacks_.run(timed); };
  if (!network_->run_soon(times_, name_of_message, here, elsewhere)) elsewhere();
}

std::optional<troupe::peer> agent::peer_of(worker_id id) const {
  const troupe::checked_lock lock(mutex_);
  const auto found = workers_.find(id);
  return found == workers_.end() ? std::nullopt : std::optional(found->second.peer);
}

/// The scope in which a message leaves: that of its autograd context, or one outside any context.
std::unique_ptr<troupe::support::call_scope> agent::scope_of(std::optional<std::int64_t> context) {
  using scope = troupe::support::call_scope;
  auto bounds = bounds_of_request();
  if (context) return contexts_->scope(*context, bounds);
  const troupe::node_id nowhere;
  return std::make_unique<scope>(nowhere, troupe::context_id{}, troupe::program_place{}, std::string(), bounds);
}

// Callbacks of the future run here, and PyTorch's may throw: nobody would catch that.
void agent::complete(const future_ptr& future, const troupe::future<troupe::call_reply>& done,
                     std::chrono::milliseconds timeout) noexcept try {
  const at::ThreadLocalStateGuard usual_modes(modes_);  // not those of a thread that waits
  std::string failure;
  c10::intrusive_ptr<rpc::Message> message;
  try {
    auto reply = done.get();
    message = from_form(std::move(reply.tensors), reply.values);
    if (message->type() == rpc::MessageType::EXCEPTION) failure.assign(message->payload().begin(), message->payload().end());
  } catch (const troupe::error& why) {
    failure = why.code() == troupe::errc::deadline_passed ? text_of_timeout(timeout) : why.what();
  } catch (const std::exception& why) {
    failure = why.what();
  }
  if (!failure.empty() || !message) return future->setErrorIfNeeded(std::make_exception_ptr(std::runtime_error(failure)));
  auto storages = message->getStorages();
  future->markCompleted(std::move(message), std::move(storages));
} catch (const std::exception& why) {
  LOG(ERROR) << "a callback of a request failed: " << why.what();
} catch (...) {
  LOG(ERROR) << "a callback of a request failed";
}

void agent::began() {
  const troupe::checked_lock lock(counting_);
  ++open_;
  ++begun_;
}

void agent::ended() {
  const troupe::checked_lock lock(counting_);
  --open_;
  counted_.notify_all();
}

troupe::call_reply agent::serve(troupe::call_arguments& call) {
  await_start();
  python_thread::keep();
  const bool to_itself = call.caller == call.here.id();
  if (world_ == 0) note_caller(call);
  auto message = from_form(std::move(call.tensors), call.values);
  ++serving_;
  const bool joins = call.context && call.values.contains(name_of_context);
  const auto context = joins ? troupe::get<std::int64_t>(call.values, name_of_context) : 0;
  if (joins) contexts_->joined(context, call.context);
  const c10::InferenceMode computes(false);
  const c10::AutoGradMode records(true);
  const waiting_thread told;  // the worker of this call is free while the call waits
  future_ptr result;
  try {
    deletions_->note(*message);
    result = (*cb_)(*message, {});
  } catch (const std::exception&) {
    result = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get());
    result->setError(std::current_exception());
  }
  if (joins) contexts_->tidy(context);
  if (call.context) contexts_->note_recorded(call.context);
  if (result->completed()) {
    --serving_;
    return reply_of(*result, to_itself, workerInfo_, *deletions_);
  }
  late_answers::future later;
  const auto number = answers_->add(later);
  troupe::calls::answer_later(later);
  result->addCallback([answers = answers_, number, to_itself, by = workerInfo_, deletions = deletions_](rpc::JitFuture& done) {
    answers->answer(number, reply_of(done, to_itself, by, *deletions));
  });
  --serving_;
  return {};
}

/// The caller's tensors and RRefs name workers by their ids.
void agent::note_caller(const troupe::call_arguments& call) {
  const auto told = call.values.find(name_of_sender);
  if (told == call.values.end()) return;
  const auto id = static_cast<worker_id>(troupe::get<std::int64_t>(call.values, name_of_sender));
  {
    const troupe::checked_lock lock(mutex_);
    const auto known = workers_.find(id);
    if (id == workerInfo_.id_ || (known != workers_.end() && known->second.peer.id() == call.caller)) return;
  }
  const auto name = call.here.name_of(call.caller);
  if (troupe::services_of(call.here).directory.find(name) != call.caller) return;  // was started again meanwhile
  keep(name, id, troupe::peer(call.here, name, call.caller));
}

template <class Value, class Reply>
void agent::answer_later(const troupe::future<Value>& with, Reply reply) {
  late_answers::future later;
  const auto number = answers_->add(later);
  troupe::calls::answer_later(later);
  with.then([answers = answers_, number, reply](const auto& done) {
    try {
      answers->answer(number, reply(done.get()));
    } catch (const troupe::error& why) {
      answers->fail(number, why);
    }
  });
}

troupe::call_reply agent::settle(troupe::call_arguments& call) {
  const auto round = static_cast<std::uint64_t>(troupe::get<std::int64_t>(call.values, "round"));
  const auto worker = troupe::get<std::string>(call.values, "worker");
  const auto begun = static_cast<std::uint64_t>(troupe::get<std::int64_t>(call.values, "begun"));
  const settlement::outcome told;
  answer_later(told, [](std::uint64_t sum) { return troupe::call_reply({}, {{"sum", sum}}); });
  settlement_.enter(round, worker, begun, told);
  return {};
}

troupe::call_reply agent::lead(troupe::call_arguments& call) {
  const troupe::message_id root{static_cast<std::uint64_t>(troupe::get<std::int64_t>(call.values, "root")), call.caller};
  const auto pass = contexts_->lead(troupe::get<std::int64_t>(call.values, "context"), root, std::move(call.tensors),
                                    troupe::get<bool>(call.values, "keep"));
  answer_later(pass, [](troupe::done) { return troupe::call_reply(); });
  return {};
}

void agent::join(bool, float timeout_s) {
  const auto until = timeout_s > 0 ? std::chrono::steady_clock::now() + milliseconds_of(timeout_s)
                                   : std::chrono::steady_clock::time_point::max();
  std::optional<troupe::peer> first;
  if (world_ > 0) {
    const troupe::checked_lock lock(mutex_);
    if (!workers_.empty()) first = workers_.begin()->second.peer;
  }
  for (std::int64_t round = 1;; ++round) {
    troupe::checked_unique_lock lock(counting_);
    if (!counted_.wait_until(lock, until, [this]() TROUPE_REQUIRES(counting_) { return open_ == 0; }))
      throw std::runtime_error("shutdown: " + std::to_string(open_) + " requests of worker '" + workerInfo_.name_ +
                               "' have no response after " + std::to_string(timeout_s) + " s");
    const auto begun = std::exchange(begun_, 0);
    lock.unlock();
    if (!first) return;
    const auto left =
      timeout_s > 0
        ? std::optional(std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(
                                                                 until - std::chrono::steady_clock::now())))
        : std::nullopt;
    const auto sum =
      first->call(name_of_round, {}, {{"round", round}, {"worker", workerInfo_.name_}, {"begun", begun}}, {}, left).get();
    if (troupe::get<std::int64_t>(sum.values, "sum") == 0) return;
  }
}

const agent::worker* agent::find(const std::string& name) const {
  const auto found =
    std::find_if(workers_.begin(), workers_.end(), [&](const auto& each) { return each.second.info.name_ == name; });
  return found == workers_.end() ? nullptr : &found->second;
}

bool agent::is_worker(const std::string& name) const {
  const troupe::checked_lock lock(mutex_);
  return find(name) != nullptr;
}

/// Whether the node is that of the worker of this name, and not a later one of the same name.
bool agent::is_worker(const std::string& name, std::optional<troupe::node_id> node) const {
  const troupe::checked_lock lock(mutex_);
  const auto* known = find(name);
  return known != nullptr && node == known->peer.id();
}

/// The worker of this name; null if there is none. In a group without a fixed size, a worker that was started again is another
/// node.
const agent::worker* agent::look_up(const std::string& name) const {
  std::optional<troupe::node_id> up;
  if (world_ == 0) {
    const std::shared_lock lock(ending_);
    if (node_) up = troupe::services_of(*node_).directory.find(name);
  }
  {
    const troupe::checked_lock lock(mutex_);
    const auto* known = find(name);
    if (world_ > 0 || (known != nullptr && (!up || *up == known->peer.id()))) return known;
  }
  return meet(name);
}

/// Asks a node for the id of its worker. Null if there is no node of this name within the patience.
const agent::worker* agent::meet(const std::string& name) const try {
  auto peer = with_node([&](troupe::node& node) { return node.peer(name, patience_to_meet); });
  const auto told = peer.call(name_of_who, {}, {}, {}, patience_to_meet).get();
  const auto id = static_cast<worker_id>(troupe::get<std::int64_t>(told.values, "id"));
  if (id == workerInfo_.id_ && name != workerInfo_.name_) return nullptr;
  return &keep(name, id, std::move(peer));
} catch (const troupe::error&) {
  return nullptr;
}

const agent::worker_info& agent::getWorkerInfo(const std::string& name) const {
  const auto* const found = look_up(name);
  TORCH_CHECK(found != nullptr, "could not find destination ", name, ": worker '", workerInfo_.name_,
              "' knows no worker of this name");
  return found->info;
}

const agent::worker_info& agent::getWorkerInfo(worker_id id) const {
  meet_if_unknown(id);
  const troupe::checked_lock lock(mutex_);
  const auto found = workers_.find(id);
  TORCH_CHECK(found != workers_.end(), "could not find destination ", id, ": worker '", workerInfo_.name_,
              "' knows no worker of this id");
  return found->second.info;
}

std::vector<std::string> agent::peers() const {
  const std::shared_lock lock(ending_);
  return node_ ? node_->peers() : std::vector<std::string>();
}

/// Asks all peers who they are, in a group without a fixed size.
void agent::meet_all() const {
  if (world_ > 0) return;
  for (const auto& name : peers()) look_up(name);
}

void agent::meet_if_unknown(worker_id id) const {
  if (autograd_contexts::releases_here()) return;  // a network thread, perhaps
  {
    const troupe::checked_lock lock(mutex_);
    if (workers_.contains(id)) return;
  }
  meet_all();
}

std::vector<agent::worker_info> agent::getWorkerInfos() const {
  meet_all();
  const auto up = peers();
  const troupe::checked_lock lock(mutex_);
  std::vector<worker_info> all;
  for (const auto& [id, each] : workers_)
    if (world_ > 0 || id == workerInfo_.id_ || std::find(up.begin(), up.end(), each.info.name_) != up.end())
      all.push_back(each.info);
  return all;
}

std::unordered_map<std::string, std::string> agent::getMetrics() {
  std::unordered_map<std::string, std::string> all;
  all["agent.thread_pool_size"] = std::to_string(callbacks_.size());
  all["agent.num_idle_threads"] = std::to_string(callbacks_.idle());
  all["agent.server_active_calls"] = std::to_string(static_cast<std::size_t>(serving_.load()) + answers_->size());
  all["agent.server_active_async_calls"] = std::to_string(answers_->size());
  {
    const troupe::checked_lock lock(counting_);
    all["agent.client_active_calls"] = std::to_string(open_);
  }
  if (isGILProfilingEnabled()) {
    const auto waits = gil_waits_.load();
    all["agent.gil_average_wait_time_us"] =
      std::to_string(waits == 0 ? 0.0 : static_cast<double>(gil_wait_us_.load()) / static_cast<double>(waits));
  }
  return all;
}

void agent::addGilWaitTime(std::chrono::microseconds time) {
  gil_wait_us_ += time.count();
  ++gil_waits_;
}

rpc::DeviceMap agent::getDeviceMap(const worker_info& to) const {
  rpc::DeviceMap result;
  const auto maps = with_node([](troupe::node& node) { return node.options().device_maps; });
  if (const auto found = maps.find(to.name_); found != maps.end())
    for (const auto& [here, there] : found->second) result.emplace(c10::Device(here), c10::Device(there));
  return result;
}

}  // namespace torchtroupe
