// SPDX-License-Identifier: BSD-3-Clause
#include "soak.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

namespace troupe::simulation {

namespace {

using membership::member_table;
using membership::peer_change;
using test::simulated_cluster;

constexpr std::size_t most_noted = 60;
constexpr std::size_t most_passes = 4;
constexpr std::uint64_t most_events = 100'000;  // in a second

simulated_cluster::settings draw_settings(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  simulated_cluster::settings how;
  how.count = 3 + random() % 5;
  how.seed = seed;
  // A real node's heartbeat is 250 ms. With longer ones an hour has fewer events, of which most tell nothing.
  how.limits.heartbeat = std::chrono::milliseconds(random() % 8 == 0 ? 250 : 1000);
  how.limits.forget_after = std::chrono::seconds(30);
  how.longest_way_ns = 2 * simulated_cluster::ms;
  how.costs.latency_ns = simulated_cluster::ms;
  how.share_work = false;
  how.loses_what_is_cut = false;
  return how;
}

}  // namespace

soak_report& soak_report::operator+=(const soak_report& other) {
  hours += other.hours;
  events += other.events;
  faults += other.faults;
  passes += other.passes;
  succeeded += other.succeeded;
  by_trouble += other.by_trouble;
  by_deadline += other.by_deadline;
  splits += other.splits;
  return *this;
}

std::string soak_report::text() const {
  if (wrong.empty()) {
    std::array<char, 256> line;
    std::snprintf(line.data(), line.size(),
                  "%.0f simulated hours, %llu events, %llu faults, %llu passes of which %llu succeeded, %llu failed by faults, "
                  "%llu of them by their deadline; %llu splits",
                  hours, static_cast<unsigned long long>(events), static_cast<unsigned long long>(faults),
                  static_cast<unsigned long long>(passes), static_cast<unsigned long long>(succeeded),
                  static_cast<unsigned long long>(by_trouble), static_cast<unsigned long long>(by_deadline),
                  static_cast<unsigned long long>(splits));
    return line.data();
  }
  auto result = "seed " + std::to_string(seed) + ", event " + std::to_string(events) + ": " + wrong;
  for (const auto& each : last) result += "\n  " + each;
  return result;
}

soak::soak(std::uint64_t seed)
    : seed_(seed), random_(seed), how_(draw_settings(seed)), all_(how_), faults_(all_, random_), awake_since_(how_.count) {
  faults_.on_end = [this](std::size_t node, bool says_farewell) { process_ended(node, says_farewell); };
  faults_.on_fault = [this](const std::string& what) { note(what); };
  all_.on_change = [this](std::size_t at, const peer_change& news) { changed(at, news); };
  all_.shares = [this](std::size_t at, node_id with) {
    return std::any_of(passes_.begin(), passes_.end(), [&](const auto& each) {
      return !each->is_over && std::find(each->at.begin(), each->at.end(), at) != each->at.end() &&
             std::find(each->ids.begin(), each->ids.end(), with) != each->ids.end();
    });
  };
}

soak::~soak() = default;

std::int64_t soak::seconds(std::size_t least, std::size_t most) {
  return static_cast<std::int64_t>(least * 1000 + below((most - least) * 1000)) * ms;
}

void soak::note(std::string what) {
  std::array<char, 48> when;
  std::snprintf(when.data(), when.size(), "%.3f s, event %llu: ", static_cast<double>(all_.now_ns()) / 1e9,
                static_cast<unsigned long long>(all_.clock().happened()));
  last_.push_back(when.data() + std::move(what));
  if (last_.size() > most_noted) last_.pop_front();
}

void soak::expect(bool holds, const std::string& promise) {
  if (!holds && report_.wrong.empty()) report_.wrong = promise;
}

soak_report soak::run(double hours, std::uint64_t until_event) {
  until_event_ = until_event;
  report_ = {};
  report_.seed = seed_;
  const auto end = all_.now_ns() + static_cast<std::int64_t>(hours * 3600e9);
  start_passes();
  try {
    bool goes_on = let_pass(all_.now_ns() + calm_ns);
    while (goes_on && all_.now_ns() < end) {
      is_calm_ = false;
      const auto until = all_.now_ns() + seconds(10, 90);
      while (goes_on && all_.now_ns() < until) {
        if (below(2) == 0) {  // a pass is under way when the fault begins
          start_pass();
          goes_on = let_pass(all_.now_ns() + seconds(0, 1));
        }
        faults_.go_wrong();
        goes_on = goes_on && let_pass(all_.now_ns() + seconds(0, 12));
      }
      if (!goes_on) break;
      faults_.heal();
      goes_on = settle();
    }
  } catch (const std::exception& broken) {
    expect(false, broken.what());
  }
  report_.hours = static_cast<double>(all_.now_ns()) / 3600e9;
  report_.events = all_.clock().happened();
  report_.faults = faults_.begun();
  report_.last.assign(last_.begin(), last_.end());
  return report_;
}

/// A calm time, after which all have to agree. Returns false if the run is over.
bool soak::settle() {
  is_calm_ = true;
  calm_since_ns_ = all_.now_ns();
  bool goes_on = let_pass(calm_since_ns_ + calm_ns - 60 * second);
  starts_passes_ = false;
  goes_on = goes_on && let_pass(calm_since_ns_ + calm_ns);
  starts_passes_ = true;
  if (!goes_on) return false;
  if (is_split()) {
    ++report_.splits;
    note("a part of the cluster knows no address of the rest: all join again");
    for (std::size_t node = 0; node < all_.size(); ++node) all_.join_again(node);
    calm_since_ns_ = all_.now_ns();
    if (!let_pass(calm_since_ns_ + calm_ns)) return false;
  }
  check_agreement();
  return report_.wrong.empty();
}

/// Whether the node may dial the other one without being told of it again.
bool soak::knows(std::size_t at, std::size_t who) const {
  const auto id = all_.self(who).id;
  const auto& table = all_.table(at);
  return table.find(id) != nullptr || table.heard_of().find(id) != nullptr;
}

bool soak::is_split() const {
  std::vector<std::size_t> reached{0};
  std::vector<bool> is_reached(all_.size());
  is_reached[0] = true;
  for (std::size_t done = 0; done < reached.size(); ++done)
    for (std::size_t other = 0; other < all_.size(); ++other)
      if (!is_reached[other] && (knows(reached[done], other) || knows(other, reached[done]))) {
        is_reached[other] = true;
        reached.push_back(other);
      }
  return reached.size() < all_.size();
}

bool soak::let_pass(std::int64_t until_ns) {
  auto& clock = all_.clock();
  while (clock.step(until_ns)) {
    check();
    if (!report_.wrong.empty() || clock.happened() == until_event_) return false;
  }
  clock.run_until(until_ns);
  return true;
}

void soak::check() {
  if (const auto now = all_.now_ns() / second; now != second_) {
    second_ = now;
    before_second_ = all_.clock().happened();
  }
  expect(all_.clock().happened() - before_second_ < most_events,
         "SK-3: a second has more than " + std::to_string(most_events) + " events");
  for (const auto& each : passes_)
    if (!each->is_over)
      if (auto wrong = each->model->wrong(); !wrong.empty()) expect(false, wrong);
}

void soak::start_passes() {
  all_.clock().in(seconds(1, 25), [this] {
    if (starts_passes_) start_pass();
    start_passes();
  });
}

bool soak::are_peers(std::size_t a, std::size_t b) const {
  return all_.table(a).find_up(all_.self(b).id) != nullptr && all_.table(b).find_up(all_.self(a).id) != nullptr;
}

/// Starts a pass on a node that runs, over it and some of its peers that are also peers of each other.
void soak::start_pass() {
  auto& network = all_.network();
  const auto running = std::count_if(passes_.begin(), passes_.end(), [](const auto& each) { return !each->is_over; });
  const auto first = below(all_.size());
  if (running >= static_cast<std::ptrdiff_t>(most_passes) || !network.is_running(first) || network.is_frozen(first)) return;
  const auto most = 1 + below(all_.size());
  std::vector<std::size_t> at{first};
  for (std::size_t i = 1; i < all_.size() && at.size() < most; ++i) {
    const auto other = (first + i) % all_.size();
    if (network.is_running(other) && std::all_of(at.begin(), at.end(), [&](auto each) { return are_peers(each, other); }))
      at.push_back(other);
  }
  if (at.size() < 2) return;
  const auto nodes = static_cast<pass_shape::number>(at.size());
  const auto functions = static_cast<pass_shape::number>(4 + below(12));
  auto shape = below(2) == 0 ? draw_shape(random_, nodes, functions, below(2) == 0 ? 0 : 6)
                             : shape_of(shape_names().at(below(shape_names().size())), nodes);
  pass_model::terms how;
  how.at = at;
  for (const auto each : at) how.ids.push_back(all_.self(each).id);
  how.context = {how.ids.front(), ++report_.passes};
  how.costs.function_ns = (std::int64_t{1} << below(10)) * ms / 2;
  how.deadline_ns = seconds(25, 50);  // all functions of four passes on one node take 23 s at most
  how.fast = below(6) == 0;
  how.knows_all = below(3) != 0;
  if (below(10) == 0) how.throwing = static_cast<pass_shape::number>(below(shape.home.size()));
  how.checks_weight = true;
  auto pass = std::make_shared<running_pass>();
  how.reaches = [this, at, ids = how.ids](auto from, auto to) {
    return all_.self(at[from]).id == ids[from] && all_.table(at[from]).find_up(ids[to]) != nullptr;
  };
  pass->at = at;
  pass->ids = how.ids;
  pass->begun_ns = all_.now_ns();
  pass->deadline_ns = how.deadline_ns;
  pass->may_fail = how.throwing != pass_shape::none || (how.fast && shape.has_unused());
  note("pass " + std::to_string(report_.passes) + " over " + shape.name + " of " + std::to_string(nodes) + " begins on n" +
       std::to_string(first));
  pass->model = std::make_shared<pass_model>(network, std::make_shared<const pass_shape>(std::move(shape)), std::move(how));
  passes_.push_back(pass);
  all_.clock().in(pass->deadline_ns, [this, weak = std::weak_ptr(pass)] { check_deadline(weak); });
  if (is_spoilt_ && is_spoilt_(*pass->model)) pass->model->take_weight();
  pass->model->start([this, raw = pass.get()](const pass_result&) { pass_ended(*raw); });
}

}  // namespace troupe::simulation
