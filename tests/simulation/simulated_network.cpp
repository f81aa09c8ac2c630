// SPDX-License-Identifier: BSD-3-Clause
#include "simulation/simulated_network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace troupe::simulation {

network_costs network_costs::one_rack() {
  // A small call between processes takes about 25 us on one machine (`small_call`): two messages, each sent and received. Between
  // hosts a call took 55 us (`tls_small_call` without TLS), of which two ways.
  return {.latency_ns = 12'000,
          .jitter_ns = 3'000,
          .bytes_per_second = 1.25e9,
          .send_ns = 5'000,
          .receive_ns = 7'000,
          .byte_ns = 0.1,
          .envelope_bytes = 64};
}

std::string network_costs::text() const {
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(),
                "latency %.1f us (up to %.1f us more), %.2f GB/s a node, %.1f us CPU to send a message, %.1f us to receive it, "
                "%.2f ns a byte, %llu bytes of envelope%s",
                static_cast<double>(latency_ns) / 1e3, static_cast<double>(jitter_ns) / 1e3, bytes_per_second / 1e9,
                static_cast<double>(send_ns) / 1e3, static_cast<double>(receive_ns) / 1e3, byte_ns,
                static_cast<unsigned long long>(envelope_bytes),
                cores == 0 ? "" : (", " + std::to_string(cores) + " cores for all nodes").c_str());
  return line.data();
}

simulated_network::simulated_network(event_queue& clock, std::size_t nodes, network_costs costs, std::uint64_t seed)
    : clock_(clock), costs_(costs), random_(seed), nodes_(nodes), core_free_ns_(costs.cores) {}

simulated_network::node_number simulated_network::add_node() {
  nodes_.emplace_back();
  return nodes_.size() - 1;
}

std::uint64_t simulated_network::connection(node_number a, node_number b) const {
  const auto found = connections_.find(pair_of(a, b));
  return found == connections_.end() ? 0 : found->second;
}

void simulated_network::connect(node_number a, node_number b) {
  auto& number = connections_[pair_of(a, b)];
  if (number == 0) number = ++last_connection_;
}

void simulated_network::disconnect(node_number a, node_number b) {
  if (connections_.erase(pair_of(a, b)) == 0) return;
  tell_lost(a, b);
  tell_lost(b, a);
}

/// The news need no connection, and never come while the way is cut.
void simulated_network::tell_lost(node_number at, node_number other) {
  if (is_cut(other, at) || !nodes_[at].is_running) return;
  clock_.in(0, [this, at, other, life = nodes_[at].life] {
    run(at, life, [this, at, other] {
      if (on_lost) on_lost(at, other);
    });
  });
}

std::int64_t simulated_network::bytes_ns(std::uint64_t bytes) const {
  return std::llround(static_cast<double>(bytes) * costs_.byte_ns);
}

std::int64_t simulated_network::on_wire_ns(std::uint64_t bytes) const {
  return costs_.bytes_per_second == 0 ? 0 : std::llround(static_cast<double>(bytes) / costs_.bytes_per_second * 1e9);
}

/// When the CPU has done `ns` of work that comes now.
std::int64_t simulated_network::on_cpu(node_number which, std::int64_t ns) {
  auto& it = nodes_[which];
  auto begin = std::max(it.cpu_free_ns, clock_.now_ns());
  if (const auto core = std::min_element(core_free_ns_.begin(), core_free_ns_.end()); core != core_free_ns_.end()) {
    begin = std::max(begin, *core);
    *core = begin + ns;
  }
  it.cpu_free_ns = begin + ns;
  it.counts.cpu_ns += ns;
  return it.cpu_free_ns;
}

void simulated_network::run(node_number which, std::uint64_t life, action what) {
  auto& it = nodes_[which];
  if (!it.is_running || it.life != life) return;
  if (it.is_frozen)
    it.late.emplace_back(life, std::move(what));
  else
    what();
}

void simulated_network::work(node_number which, std::int64_t ns, action then) {
  clock_.at(on_cpu(which, ns),
            [this, which, life = nodes_[which].life, then = std::move(then)]() mutable { run(which, life, std::move(then)); });
}

void simulated_network::compute(node_number which, std::int64_t ns, action then) {
  auto& it = nodes_[which];
  it.functions_free_ns = std::max(it.functions_free_ns, clock_.now_ns()) + ns;
  clock_.at(it.functions_free_ns,
            [this, which, life = it.life, then = std::move(then)]() mutable { run(which, life, std::move(then)); });
}

void simulated_network::after(node_number which, std::int64_t delay_ns, action then) {
  clock_.in(delay_ns,
            [this, which, life = nodes_[which].life, then = std::move(then)]() mutable { run(which, life, std::move(then)); });
}

void simulated_network::send(node_number from, node_number to, std::uint64_t bytes, action arrived) {
  if (from == to) return work(to, 0, std::move(arrived));
  bytes += costs_.envelope_bytes;
  auto& sender = nodes_[from];
  ++sender.counts.sent;
  sender.counts.bytes_sent += bytes;
  const auto ready = on_cpu(from, costs_.send_ns + bytes_ns(bytes));
  const auto over = connection(from, to);
  if (over == 0 || (loses_ && is_cut(from, to)) || (lost_of_ != 0 && below(lost_of_) == 0)) return;
  sender.out_free_ns = std::max(sender.out_free_ns, ready) + on_wire_ns(bytes);
  auto way_ns = costs_.latency_ns;
  if (costs_.jitter_ns > 0) way_ns += static_cast<std::int64_t>(below(static_cast<std::uint64_t>(costs_.jitter_ns)));
  if (!slow_.empty())
    if (const auto found = slow_.find(pair_of(from, to)); found != slow_.end()) way_ns *= found->second;
  travel_later(sender.out_free_ns + way_ns,
               std::make_shared<message>(message{from, to, bytes, over, nodes_[to].life, std::move(arrived)}));
}

void simulated_network::travel_later(std::int64_t at_ns, message_ptr what) {
  clock_.at(at_ns, [this, what = std::move(what)] { travel(what); });
}

bool simulated_network::stands(const message& what) const {
  return connection(what.from, what.to) == what.connection && nodes_[what.to].is_running && nodes_[what.to].life == what.life;
}

/// The message has come to the interface of the receiver, unless its way is cut.
void simulated_network::travel(const message_ptr& what) {
  if (!stands(*what)) return;
  if (!loses_ && is_cut(what->from, what->to)) {
    held_.push_back(what);
    return;
  }
  if (const auto mended = mended_.find(way_of(what->from, what->to)); mended != mended_.end()) {
    if (clock_.now_ns() >= mended->second)
      mended_.erase(mended);
    else if (!what->was_held)
      return travel_later(mended->second, what);  // behind what was held
  }
  auto& receiver = nodes_[what->to];
  receiver.in_free_ns = std::max(receiver.in_free_ns + on_wire_ns(what->bytes), clock_.now_ns());
  if (receiver.in_free_ns == clock_.now_ns()) return land(*what);
  clock_.at(receiver.in_free_ns, [this, what] {
    if (stands(*what)) land(*what);
  });
}

/// The receiver reads what has come, also if the connection ends now.
void simulated_network::land(message& what) {
  auto& receiver = nodes_[what.to];
  ++receiver.counts.received;
  receiver.counts.bytes_received += what.bytes;
  const auto cost = costs_.receive_ns + bytes_ns(what.bytes);
  if (cost > 0 || receiver.cpu_free_ns > clock_.now_ns()) return work(what.to, cost, std::move(what.arrived));
  run(what.to, what.life, std::move(what.arrived));
}

bool simulated_network::is_cut(node_number from, node_number to) const {
  return (parted_ != 0 && (from < parted_) != (to < parted_)) || (!cut_.empty() && cut_.contains(way_of(from, to)));
}

void simulated_network::mend_way(node_number from, node_number to) {
  if (cut_.erase(way_of(from, to)) != 0) release_held();
}

void simulated_network::separate(std::size_t first) {
  parted_ = first;
  release_held();
}

void simulated_network::slow(node_number a, node_number b, std::int64_t factor) {
  if (factor == 1)
    slow_.erase(pair_of(a, b));
  else
    slow_[pair_of(a, b)] = factor;
}

void simulated_network::mend_all() {
  cut_.clear();
  slow_.clear();
  separate(0);
}

/// TCP sends again what got no answer.
void simulated_network::release_held() {
  for (auto& each : std::exchange(held_, {})) {
    if (is_cut(each->from, each->to)) {
      held_.push_back(std::move(each));
      continue;
    }
    each->was_held = true;
    const auto arrives_ns = mended_[way_of(each->from, each->to)] = clock_.now_ns() + costs_.latency_ns;
    travel_later(arrives_ns, std::move(each));
  }
}

void simulated_network::thaw(node_number which) {
  auto& it = nodes_[which];
  if (!std::exchange(it.is_frozen, false)) return;
  for (auto& [life, what] : std::exchange(it.late, {}))
    clock_.in(0, [this, which, life = life, what = std::move(what)]() mutable { run(which, life, std::move(what)); });
}

void simulated_network::end(node_number which) {
  nodes_[which].is_running = false;
  for (node_number other = 0; other < nodes_.size(); ++other)
    if (other != which) disconnect(which, other);
  end_quietly(which);
}

void simulated_network::end_quietly(node_number which) {
  auto& it = nodes_[which];
  it.is_running = false;
  it.is_frozen = false;
  it.late.clear();
}

void simulated_network::start(node_number which) {
  auto& it = nodes_[which];
  it.is_running = true;
  it.is_frozen = false;
  it.late.clear();
  ++it.life;
  it.cpu_free_ns = it.functions_free_ns = it.out_free_ns = it.in_free_ns = clock_.now_ns();
}

void simulated_network::forget_counts() {
  for (auto& each : nodes_) each.counts = {};
}

}  // namespace troupe::simulation
