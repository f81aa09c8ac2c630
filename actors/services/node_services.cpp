// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/node_services.hpp>

#include <algorithm>
#include <random>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#include <caf/send.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe::services {

namespace {

constexpr std::chrono::milliseconds longest_wait_to_tidy{1};
constexpr std::uint64_t most_at_once = std::uint64_t{1} << 62;  // no node counts so far in a century
constexpr std::uint64_t longest_leap = std::uint64_t{1} << 20;
constexpr std::string_view freeing = "troupe.free";  // a kind of work in work_times

node_id draw_id() {
  std::random_device device;
  std::uint64_t high = device();
  return {(high << 32 | device()) | 1};
}

}  // namespace

node_services::node_services(settings options, std::function<void()> tidy)
    : started_ns_(support::steady_ns()),
      options_(std::move(options)),
      log_(options_.name, options_.log_level, options_.log_file, options_.log_format),
      self_{options_.name,
            draw_id(),
            options_.advertise.empty() ? options_.host : options_.advertise,
            0,
            formats_read,
            devices::present_devices()},
      tidy_(std::move(tidy)),
      maps_(options_.device_maps, self_.devices, directory_),
      times_(std::chrono::nanoseconds(options_.short_work).count()),
      gradient_credits_(options_.send_limit),
      residuals_(options_.feedback_limit) {}

void node_services::live_on(caf::actor_system& system, network::shared_multiplexer* network, arriving_tensors* arriving) {
  system_ = &system;
  network_ = network;
  arriving_ = arriving;
  departures_.emplace(system, [this](caf::actor_id courier) { return guard(courier, network::own_actors::kind::inner); });
  if (network_ == nullptr) return;
  network_->set_idle_work(tidy_);
  if (const auto& proof = network_->gate().proof()) network_->peers().introduce_self(proof->own(), id(), system.node());
}

void node_services::meet(tracing::tracer_actor tracer) {
  tracer_ = std::move(tracer);
  recorder_ = tracing::trace_recorder(tracer_, options_.trace);
  if (options_.profile) recorder_.profile(true);
}

std::int64_t node_services::uptime_ns() const noexcept { return support::steady_ns() - started_ns_; }

void node_services::witness(std::uint64_t number) noexcept {
  auto seen = clock_.load(std::memory_order_relaxed);
  const auto believed = [&] { return std::min(number, std::max(seen, most_at_once) + longest_leap); };
  while (seen < number && !clock_.compare_exchange_weak(seen, believed(), std::memory_order_relaxed)) {
  }
}

network::own_actors::hold node_services::guard(caf::actor_id actor, network::own_actors::kind what) const {
  return network_ != nullptr ? network_->peers().own->add(actor, what) : network::own_actors::hold();
}

std::optional<certificates::identity> node_services::certificate_of(node_id who) const {
  return network_ != nullptr ? network_->peers().introduced->find(who) : std::nullopt;
}

bool node_services::accept(node_id who) {
  return network_ == nullptr || !network_->gate().proof() || network_->peers().introduced->accept(who);
}

std::optional<node_id> node_services::proven_id_of(const std::string& name) const {
  return network_ != nullptr ? network_->peers().introduced->find(name) : std::nullopt;
}

std::optional<certificates::identity> node_services::certificate_of(const caf::node_id& who) const {
  return network_ != nullptr ? network_->peers().ids->find(network::bytes_of(who)) : std::nullopt;
}

bool node_services::is_here(const caf::node_id& who) const { return system_ != nullptr && system_->node() == who; }

rights::policy_file* node_services::policy() const noexcept {
  return network_ != nullptr ? network_->gate().policy().get() : nullptr;
}

bool node_services::run_soon(std::string_view kind, std::function<void()> run, std::function<void()> send_elsewhere) {
  return network_ != nullptr && times_.is_short(kind) && network_->run_soon({std::move(run), std::move(send_elsewhere)});
}

node_services::packed node_services::pack(context_id context, std::vector<at::Tensor> tensors, const std::string& what,
                                          node_id to, wire_format format) {
  packed result;
  auto& payload = result.payload;
  payload.context = context;
  payload.message = {next_number(), id()};
  if (to != id()) check_count_travels(tensors, what);
  warn_of_profiler(to);
  devices::staged staged;
  try {
    staged = departures_->stage.to_host(tensors);
  } catch (const c10::Error& failed) {
    throw error(errc::function_failed,
                what + ": its tensors could not be copied to the host: " + failed.what_without_backtrace());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined()) check_can_travel(staged.tensors[i], "tensor " + std::to_string(i) + " of " + what);
  if (context && c10::GradMode::is_enabled()) result.send = engine::attach_send(payload.message, tensors);
  payload.detached = !context && c10::GradMode::is_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const auto& x) {
    return x.defined() && x.requires_grad();
  });
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (result.send) payload.requires_grad.push_back(tensors[i].defined() && tensors[i].requires_grad());
  payload.tensors = travelling_forms(staged.tensors);
  payload.format = format;
  if (staged.events.empty()) compress(payload.tensors, payload.packings, to, format);
  payload.devices = staged.devices;
  result.arriving = std::move(staged);
  return result;
}

void node_services::warn_detached(const std::string& what) {
  constexpr std::size_t most_places = 1000;
  if (!options_.warn_detached || !log_.is_on(severity::warn)) return;
  {
    std::lock_guard lock(mutex_);
    if (warned_.size() >= most_places || !warned_.insert(what).second) return;
  }
  log_.warn(
    "calls",
    [&] {
      return what +
             ": a tensor that requires grad left outside any context and was detached, so no gradient comes back by it. Open a "
             "troupe::context around it (on another thread of the same program: a context::scope). If this is meant: a "
             "torch::NoGradGuard around it, or settings::warn_detached = false (--no-detached-warning)";
    },
    [&] { return std::hash<std::string>()(what); });
}

void node_services::warn_of_profiler(node_id to) {
  if (to == id() || !torch::profiler::impl::profilerEnabled() || recorder_.profiling() ||
      has_warned_of_profiler_.exchange(true))
    return;
  log_.warn("tracing", [] {
    return "libtorch's profiler is on: it sees what runs on this thread, and nothing of what other nodes run for it. "
           "node::set_profiling(true) brings their spans into the trace of this node (node::collect_trace)";
  });
}

void node_services::compress(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, node_id to, wire_format format,
                             std::uint64_t residual_stream) {
  if (format == wire_format::exact) return;
  residual_line residuals;
  if (residual_stream != 0) residuals = {&residuals_, to, residual_stream};
  pack_all(tensors, packings, format_for(to, format), memory_, residuals);
}

wire_format node_services::format_for(node_id to, wire_format wanted) const {
  return wanted != wire_format::exact && to != id() && reads(directory_.formats(to), wanted) ? wanted : wire_format::exact;
}

void node_services::discard(contracts::garbage_ptr what) {
  {
    std::lock_guard lock(mutex_);
    if (discards_at_once_) return;
    discarded_.push_back(std::move(what));
  }
  tidy_soon();
}

void node_services::tidy_soon() {
  if (arriving_ == nullptr) return tidy_();
  if (network_ != nullptr) return network_->ask_for_idle_work();
  if (!will_tidy_.exchange(true))
    deadlines_.set(longest_wait_to_tidy, [this] {
      will_tidy_ = false;
      tidy_();
    });
}

void node_services::free_discarded() {
  std::vector<contracts::garbage_ptr> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(discarded_);
  }
  if (all.empty()) return;
  auto garbage = std::make_shared<std::vector<contracts::garbage_ptr>>(std::move(all));
  if (network_ == nullptr) return caf::anon_send(continuation_, contracts::garbage_ptr{std::move(garbage)});
  auto free_it = [this, garbage] { free_garbage(*garbage); };
  auto free_elsewhere = [this, free_it] {
    caf::anon_send(continuation_, contracts::garbage_ptr{nullptr, [=](void*) { free_it(); }});
  };
  if (!run_soon(freeing, free_it, free_elsewhere)) free_elsewhere();
}

void node_services::free_garbage(std::vector<contracts::garbage_ptr>& what) {
  const own_thread own(*this, "freeing of graphs and tensors");
  const auto begin = support::steady_ns();
  what.clear();
  times_.note(freeing, support::steady_ns() - begin);
}

std::vector<contracts::garbage_ptr> node_services::stop_discarding() {
  std::lock_guard lock(mutex_);
  discards_at_once_ = true;
  return std::exchange(discarded_, {});
}

void node_services::actors_ended() {
  if (network_ != nullptr) network_->finish_jobs();
  deadlines_.stop();
  directory_.clear();
  recorder_ = {};
}

void node_services::let_go() {
  departures_.reset();
  tracer_ = tracing::tracer_actor{};
  membership_ = contracts::membership_actor{};
  continuation_ = contracts::cpu_continuation_actor{};
  gateway_ = contracts::gateway_actor{};
}

/// Libraries that libtorch uses keep a number of threads for each thread. As in libtorch's engine, the first computation of a
/// thread sets this number to that of the process.
node_services::own_thread::own_thread(node_services& of, std::string_view kind, std::string_view name) noexcept
    : entry_(of.running_, kind, name, support::steady_ns()), outer_(std::exchange(current_, &of)) {
  thread_local bool known = false;
  if (!std::exchange(known, true)) at::init_num_threads();
}

}  // namespace troupe::services
