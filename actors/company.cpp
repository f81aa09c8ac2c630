// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/company.hpp>

#include <algorithm>
#include <future>
#include <random>
#include <system_error>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/broker_mailbox.hpp>
#include <troupe/actors/builtin_functions.hpp>
#include <troupe/actors/exception_text.hpp>
#include <troupe/actors/host_lookup.hpp>
#include <troupe/actors/shared_multiplexer.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds longest_closing{1};
constexpr std::string_view freeing = "troupe.free";  // a kind of work
constexpr int starting_threads = 10;                 // of the actor system 6, of the network 2, of the node 2

node_id draw_id() {
  std::random_device device;
  std::uint64_t high = device();
  return {(high << 32 | device()) | 1};
}

/// Throws std::system_error where the process does not get so many threads more.
void try_threads(int count) {
  std::vector<std::future<void>> held;
  std::promise<void> over;  // ends first, which lets the threads end
  const auto end = over.get_future().share();
  for (int i = 0; i < count; ++i) held.push_back(std::async(std::launch::async, [end] { end.wait(); }));
}

error no_threads(const std::string& name, const std::system_error& refused) {
  return error(errc::function_failed, "node '" + name + "' gets no thread to start with (" + refused.code().message() +
                                        "); raise the limit on the process's threads or memory");
}

/// Why a node can't listen there.
std::string why_not_at(const std::string& host, std::uint16_t port) {
  if (const auto found = look_up(host, port); found.failed()) return found.problem;
  return port == 0 ? "the address is not this machine's; choose another"
                   : "the port is in use or the address is not this machine's; choose another, or port 0 for any free one";
}

}  // namespace

error not_copied(const std::exception_ptr& failure) {
  errc code = errc::function_failed;
  try {
    std::rethrow_exception(failure);
  } catch (const error& known) {
    code = known.code();
  } catch (...) {
  }
  return error(code, "its tensors could not be copied from their device: " + text_of(failure));
}

std::int64_t steady_ns() noexcept { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

company::company(node& handle, settings options, caf::actor_system* host)
    : handle_(handle), options_(std::move(options)), id_(draw_id()), system_(host) {
  check(options_);
  objects_ = std::make_unique<object_store>(id_, options_.name);
  if (system_ == nullptr) {
    try {
      try_threads(starting_threads);  // of one that an actor system does not get CAF crashes, or waits for ever
    } catch (const std::system_error& refused) {
      throw no_threads(name(), refused);
    }
    config_.emplace(options_);
    own_system_ = std::make_unique<caf::actor_system>(*config_);
    system_ = own_system_.get();
    close_basp_mailbox_at_exit(*system_);
    network_ = dynamic_cast<shared_multiplexer*>(&system_->middleman().backend());
    if (network_ != nullptr) network_->set_idle_work([this] { tidy(); });
  }
  try {
    start();
  } catch (...) {
    stop();
    throw;
  }
}

/// Here, where the user hears of a refusal; later the network thread would.
void company::start_threads() {
  try {
    continuation_ = spawn_cpu_continuation(*this);
    if (networked()) deadlines_.start();
  } catch (const std::system_error& refused) {
    throw no_threads(name(), refused);
  }
}

void company::start() {
  tracer_ = spawn_tracer(*system_);
  recorder_ = trace_recorder(tracer_, options_.trace);
  if (options_.profile) recorder_.profile(true);
  start_threads();
  face_ = spawn_peer(*this);
  if (networked())
    listen();
  else
    directory_.add({options_.name, id_, options_.host, port_}, caf::actor_cast<caf::strong_actor_ptr>(face_));
}

void company::listen() {
  auto face = caf::actor_cast<caf::strong_actor_ptr>(face_);
  // Connections of a node that ended keep its port busy for a minute; `reuse` lets a node listen there at once. Two nodes still can't
  // listen at one port. With port 0 `reuse` stays off: the system could give two nodes the same port.
  const bool reuse = options_.port != 0;
  auto published = system_->middleman().publish(face_, options_.port, options_.host.c_str(), reuse);
  if (!published)
    throw error(errc::misuse, "node '" + options_.name + "' can't listen on " + options_.host + ":" +
                                std::to_string(options_.port) + ": " + why_not_at(options_.host, options_.port));
  port_ = *published;
  directory_.add({options_.name, id_, options_.host, port_}, face);
  membership_options how;
  how.self = {options_.name, id_, options_.host, port_};
  how.face = face;
  how.heartbeat = options_.heartbeat;
  auto host = spawn_membership(*system_, std::move(how));
  membership_ = host;
  caf::anon_send(face_, membership_);
  caf::anon_send(membership_, subscribe_atom::value, caf::actor_cast<caf::actor>(face_));
}

company::~company() { stop(); }

/// Libraries that libtorch calls know for each thread how many threads an operation may use. As in libtorch's engine, a thread has
/// the number that the process had when it computed for the first time.
company::own_thread::own_thread(const company& of) noexcept : outer_(std::exchange(current_, &of)) {
  thread_local bool known = false;
  if (!std::exchange(known, true)) at::init_num_threads();
}

void company::stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    detail::continuation_scope::refuse_to_wait();
    if (own_thread::of(*this))
      throw error(errc::misuse, "stop: this thread runs a call or a backward pass of node '" + name() +
                                  "', which would wait for itself; let another thread stop the node");
    if (network_ != nullptr && network_->lead_here())
      throw error(errc::misuse, "stop: this thread brings the messages of node '" + name() +
                                  "' and would wait for itself; let another thread stop or destroy the node");
    stopped_ = true;
    notify_ = nullptr;
  }
  close_now();
  const auto garbage = take_discarded();  // nobody adds more; it ends last
  objects_->close();
  transfers_.finish(std::chrono::steady_clock::now() + device_patience);
  caf::scoped_actor self{*system_};
  if (membership_)
    self
      ->request(caf::actor_cast<caf::actor>(membership_), std::chrono::seconds(1), leave_atom::value,
                std::string("its node stopped"))
      .receive([] {}, [](const caf::error&) {});
  if (face_ && port_ != 0) system_->middleman().unpublish(face_, port_);
  std::vector<caf::actor> all;
  auto end = [&all](const auto& actor) {
    if (actor) all.push_back(caf::actor_cast<caf::actor>(actor));
  };
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, context] : std::exchange(open_contexts_, {})) end(context.actor);
    for (const auto& worker : std::exchange(workers_, {})) end(worker);
    end(std::exchange(memory_reader_, {}));
    for (const auto& [name, actor] : std::exchange(published_, {})) end(actor);
  }
  end(membership_);
  end(face_);
  end(continuation_);
  end(tracer_);
  for (const auto& actor : all) self->send_exit(actor, caf::exit_reason::user_shutdown);
  if (networked()) self->wait_for(all);
  if (network_ != nullptr) network_->finish_jobs();
  deadlines_.stop();
  directory_.clear();
  recorder_ = {};
}

void company::check_running() const {
  std::lock_guard lock(mutex_);
  if (stopped_) throw error(errc::stopping, "node '" + name() + "' has stopped");
}

bool company::run_soon(std::string_view kind, std::function<void()> run, std::function<void()> send_elsewhere) {
  return network_ != nullptr && times_.is_short(kind) && network_->run_soon({std::move(run), std::move(send_elsewhere)});
}

company::packed company::pack(context_id context, std::vector<at::Tensor> tensors, const std::string& what) {
  packed result;
  auto& payload = result.payload;
  payload.context = context;
  payload.message = {next_number(), id_};
  auto staged = transfers_.stage.to_host(tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined()) check_can_travel(staged.tensors[i], "tensor " + std::to_string(i) + " of " + what);
  if (context && c10::GradMode::is_enabled()) result.send = engine::attach_send(payload.message, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (result.send) payload.requires_grad.push_back(tensors[i].defined() && tensors[i].requires_grad());
  payload.tensors = travelling_forms(staged.tensors);
  payload.devices = staged.devices;
  result.arriving = std::move(staged);
  return result;
}

company::open_context company::make_context() {
  open_context made{std::make_shared<context_record>(context_id{id_, contexts_opened_.fetch_add(1) + 1}, id_, counts_), {}};
  made.actor = spawn_context(*this, made.record);
  know_context(made.record, made.actor);
  return made;
}

void company::know_context(const context_record_ptr& record, const context_actor& actor) {
  std::lock_guard lock(mutex_);
  open_contexts_.emplace(record->id(), open_context{record, actor});
}

void company::forget_context(const context_id& id) {
  std::lock_guard lock(mutex_);
  open_contexts_.erase(id);
}

company::open_context company::find_context(const context_id& id) const {
  std::lock_guard lock(mutex_);
  auto found = open_contexts_.find(id);
  return found == open_contexts_.end() ? open_context{} : found->second;
}

std::vector<company::open_context> company::all_contexts() const {
  std::lock_guard lock(mutex_);
  std::vector<open_context> result;
  for (const auto& [id, each] : open_contexts_) result.push_back(each);
  return result;
}

error company::no_context(const context_id& id) const {
  return error(errc::unknown_context, "node '" + name() + "' does not know " + to_string(id) +
                                        ": it was released, or its node is down or was never met");
}

void company::close_context(const context_id& id) {
  {
    std::lock_guard lock(mutex_);
    const auto found = open_contexts_.find(id);
    if (found == open_contexts_.end()) return;
    if (!stopped_) closing_.emplace_back(id, std::move(found->second.actor));  // else it ends with the face
    open_contexts_.erase(found);
  }
  tidy_soon();
}

void company::discard(garbage_ptr what) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    discarded_.push_back(std::move(what));
  }
  tidy_soon();
}

void company::tidy_soon() {
  if (!networked()) return tidy();
  if (network_ != nullptr) return network_->ask_for_idle_work();
  if (!will_tidy_.exchange(true))
    deadlines_.set(longest_closing, [this] {
      will_tidy_ = false;
      tidy();
    });
}

void company::tidy() {
  close_now();
  auto all = take_discarded();
  if (all.empty()) return;
  auto garbage = std::make_shared<std::vector<garbage_ptr>>(std::move(all));
  if (network_ == nullptr) return caf::anon_send(continuation_, garbage_ptr{garbage});
  auto free_it = [this, garbage] { free_garbage(*garbage); };
  auto free_elsewhere = [this, free_it] { caf::anon_send(continuation_, garbage_ptr{nullptr, [=](void*) { free_it(); }}); };
  if (!run_soon(freeing, free_it, free_elsewhere)) free_elsewhere();
}

void company::free_garbage(std::vector<garbage_ptr>& what) {
  const own_thread own(*this);
  const auto begin = steady_ns();
  what.clear();
  times_.note(freeing, steady_ns() - begin);
}

std::vector<garbage_ptr> company::take_discarded() {
  std::lock_guard lock(mutex_);
  return std::exchange(discarded_, {});
}

void company::close_now() {
  std::vector<std::pair<context_id, context_actor>> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(closing_);
  }
  for (auto& [id, actor] : all) caf::anon_send(face_, close_atom::value, id, std::move(actor));
}

void company::send_call(outgoing_call_ptr job, devices::staged arriving) {
  job->begin_ns = steady_ns();
  ++counts_.calls_made;
  ++counts_.calls_waiting;
  if (job->request.span != 0 && !job->spans) {
    std::lock_guard lock(mutex_);
    while (!slots_.insert(++job->slot).second) {
    }
  }
  if (auto id = job->request.payload.context) {
    if (!directory_.face(job->to)) return fail_call(*job, error(errc::peer_down, "it is down"));
    job->record = find_context(id).record;
    if (!job->record || !job->record->add({std::move(job->send), 0}, job->to)) return fail_call(*job, no_context(id));
    job->record->brief(job->request);
  }
  directory_.sent(job->to, job->request.payload.tensors);
  if (arriving.events.empty()) return caf::anon_send(face_, std::move(job));
  job->late = true;
  caf::anon_send(face_, job);  // it fails the call in time
  transfers_.post(std::move(arriving), [face = face_, job = std::move(job)](std::exception_ptr failure) {
    if (failure) job->not_copied = not_copied(failure);
    caf::anon_send(face, arrived_atom::value, job);
  });
}

void company::add_joint(outgoing_joint_ptr joint) {
  if (auto mine = find_context(joint->context).record)
    mine->add(std::move(joint->send), joint->to, std::move(joint->recordings));
  else
    caf::anon_send(face_, std::move(joint));
}

void company::publish(std::string name, caf::strong_actor_ptr actor) {
  std::lock_guard lock(mutex_);
  published_.insert_or_assign(std::move(name), std::move(actor));
}

caf::strong_actor_ptr company::published(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto found = published_.find(name);
  return found == published_.end() ? nullptr : found->second;
}

void company::finish_call(outgoing_call& job, call_result& result) {
  directory_.received(job.to, result.payload.tensors);
  if (std::exchange(job.ended, true)) return;
  --counts_.calls_waiting;
  witness(result.payload.message.number);
  if (job.request.span == 0)
    recorder_.record(job.label, "request", job.begin_ns, steady_ns());
  else
    take_spans(job, result.spans);
  call_reply reply{std::move(result.payload.tensors), std::move(result.values)};
  result.payload.tensors.clear();
  *job.answer = std::move(result.payload);
  job.reply.set_value(std::move(reply));
}

/// The call's own span and those that came with its answer, for the call that made it or for this node's trace.
void company::take_spans(outgoing_call& job, const std::string& from_callee) {
  std::vector<trace_span> spans;
  try {
    if (!from_callee.empty()) spans = unpack(from_callee).spans;
  } catch (const error&) {
    // an answer without a picture is an answer
  }
  const auto end_ns = steady_ns();
  place_within(spans, job.begin_ns, end_ns);
  spans.insert(spans.begin(), {job.label, "request", job.begin_ns, end_ns, {}});
  const auto lane = job.slot == 0 ? std::string() : "calls " + std::to_string(job.slot);
  for (auto& span : spans) {
    span.lane = lane;
    job.spans ? job.spans->add(std::move(span)) : recorder_.record(std::move(span));
  }
  std::lock_guard lock(mutex_);
  slots_.erase(job.slot);
}

void company::fail_call(outgoing_call& job, const error& reason) {
  if (std::exchange(job.ended, true)) return;
  --counts_.calls_waiting;
  ++counts_.calls_failed;
  if (job.request.span != 0) take_spans(job, {});
  auto text = std::string(reason.what());
  if (reason.code() == errc::deadline_passed) text = "no answer within " + seconds_text(job.deadline);
  job.reply.set_error(
    error(reason.code(), "call of '" + job.label + "' on node '" + directory_.name(job.to) + "' failed: " + text));
}

call_worker_actor company::spawn_call_worker() {
  try {
    std::lock_guard lock(mutex_);
    if (stopped_) throw error(errc::stopping, "node '" + name() + "' is stopping");  // nobody would tell the worker to end
    return workers_.emplace_back(make_call_worker(*this));
  } catch (const std::system_error& refused) {
    std::lock_guard lock(mutex_);
    throw error(errc::function_failed, "node '" + name() + "' gets no thread for it beside the " +
                                         std::to_string(workers_.size()) + " that run calls (" + refused.code().message() +
                                         "); nest fewer calls that wait for each other, or raise the limit on the process's "
                                         "threads or memory");
  }
}

void company::let_go(const call_worker_actor& worker) {
  {
    std::lock_guard lock(mutex_);
    std::erase(workers_, worker);
  }
  caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
}

memory_reader_actor company::memory_reader() {
  std::lock_guard lock(mutex_);
  if (!stopped_ && !memory_reader_) memory_reader_ = spawn_memory_reader(*this);
  return memory_reader_;
}

void company::witness(std::uint64_t number) noexcept {
  auto seen = clock_.load(std::memory_order_relaxed);
  while (seen < number && !clock_.compare_exchange_weak(seen, number, std::memory_order_relaxed)) {
  }
}

void company::introduce(company& other) {
  member who{other.name(), other.id(), other.options().host, other.port()};
  auto face = caf::actor_cast<caf::strong_actor_ptr>(other.face());
  directory_.add(who, face);
  caf::anon_send(face_, peer_up{who, face});
}

void company::on_peer_down(std::function<void(const std::string&, const std::string&)> notify) {
  std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

void company::tell_peer_down(const peer_down& news) {
  std::function<void(const std::string&, const std::string&)> notify;
  {
    std::lock_guard lock(mutex_);
    notify = notify_;
  }
  if (!notify) return;
  const detail::continuation_scope no_waiting;
  try {
    notify(news.who.name, news.reason);
  } catch (const std::exception& problem) {
    detail::report_lost_exception("the handler of on_peer_down", problem.what());
  }
}

}  // namespace troupe
