// SPDX-License-Identifier: BSD-3-Clause
#include "soak.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <utility>

namespace troupe::bench {

namespace {

using membership::member_table;
using membership::peer_change;
using test::simulated_cluster;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t second = 1'000'000'000;
constexpr std::size_t most_noted = 60;
constexpr std::int64_t calm_ns = 170 * second;
constexpr std::int64_t quiet_after_ns = 150 * second;  // of a calm time: from then on nothing changes
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
  how.longest_way_ns = 2 * ms;
  how.costs.latency_ns = ms;
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

bool soak::was_in_trouble(const running_pass& which, std::int64_t since_ns) const {
  for (const auto a : which.at)
    for (const auto b : which.at)
      if (a != b && faults_.last_trouble(a, b) >= since_ns) return true;
  return false;
}

void soak::pass_ended(running_pass& which) {
  const auto& how = which.model->result();
  expect(!which.is_over, "SK-2, IN-1: a pass ends twice");
  which.is_over = true;
  report_.succeeded += how.succeeded;
  report_.by_trouble += !how.succeeded && !which.may_fail;
  report_.by_deadline += how.code == errc::deadline_passed;
  const auto what = "pass " + std::to_string(which.model->number_of_context()) + " on n" + std::to_string(which.at.front());
  note(what + (how.succeeded ? " succeeds" : " fails: " + how.error));
  expect(how.succeeded || which.may_fail || was_in_trouble(which, which.begun_ns - 10 * second),
         "SK-2: a pass fails, and none of its nodes was in trouble: " + how.error);
  expect(
    how.succeeded || how.time_ns <= which.deadline_ns + 2 * second || faults_.last_trouble(which.at.front()) >= which.begun_ns,
    "SK-2: a pass ends long after its deadline");
  for (pass_shape::number n = 0; !how.succeeded && n < which.ids.size(); ++n)
    expect(!which.model->runs_on(n) || was_in_trouble(which, which.begun_ns - 10 * second),
           "SK-2, IN-2: a pass has failed, and goes on on n" + std::to_string(which.at[n]));
  expect(how.code != errc::deadline_passed || faults_.was_frozen(which.at.front(), which.begun_ns),
         "SK-2: a pass is ended by its deadline, and no message was lost unnoticed");
  if (auto wrong = which.model->wrong(); !wrong.empty()) expect(false, wrong);
  all_.network().after(which.at.front(), static_cast<std::int64_t>(below(1000)) * ms,
                       [model = which.model] { model->release(); });
}

/// After its deadline a pass has a second for the answers to aborts. A node that was frozen does this when it is awake.
void soak::check_deadline(const std::weak_ptr<running_pass>& which) {
  const auto pass = which.lock();
  if (pass == nullptr || pass->is_over || pass->is_orphan) return;
  const auto node = pass->at.front();
  if (all_.network().is_frozen(node)) awake_since_[node] = all_.now_ns();
  const auto since = std::max(pass->begun_ns + pass->deadline_ns, awake_since_[node]);
  expect(all_.now_ns() < since + 2 * second, "SK-2: a pass does not end by its deadline");
  all_.clock().in(second / 2, [this, which] { check_deadline(which); });
}

void soak::process_ended(std::size_t node, bool says_farewell) {
  const auto id = all_.self(node).id;
  for (const auto& each : passes_)
    for (std::size_t i = 0; i < each->ids.size(); ++i) {
      if (each->ids[i] != id) continue;
      each->model->process_ended(static_cast<pass_shape::number>(i));
      each->is_orphan = each->is_orphan || i == 0;
      each->is_over = each->is_over || i == 0;
    }
  if (!says_farewell) expect_known(node, second / 5);
  expect_known(node, 15 * all_.interval_ns());
}

/// After that time the process that ends now is up for no node whose connection to it ends now, and which was not frozen since.
void soak::expect_known(std::size_t node, std::int64_t after_ns) {
  auto& network = all_.network();
  const auto hears = [&](std::size_t at) {
    const bool is_cut = network.is_cut(node, at) || network.is_cut(at, node) || faults_.is_slow(at, node);
    return at != node && network.connection(at, node) != 0 && network.is_running(at) && !is_cut;
  };
  for (std::size_t at = 0; at < all_.size(); ++at) {
    if (!hears(at)) continue;
    all_.network().after(at, after_ns, [=, this, id = all_.self(node).id, since = all_.now_ns()] {
      expect(faults_.was_frozen(at, since) || !all_.table(at).is_up(id),
             "SK-3: n" + std::to_string(at) + " still holds the ended process of n" + std::to_string(node) + " for up");
    });
  }
}

std::size_t soak::number_of(node_id id) const {
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_.self(i).id == id) return i;
  return all_.size();
}

void soak::changed(std::size_t at, const peer_change& news) {
  using kind = peer_change::kind;
  constexpr std::array names{"up", "up again", "unreachable", "gone", "known", "lost", "clash"};
  note("n" + std::to_string(at) + ": " + news.who.name + " is " + names.at(static_cast<std::size_t>(news.what)) +
       (news.reason.empty() ? "" : " (" + news.reason + ")"));
  expect(!is_calm_ || all_.now_ns() - calm_since_ns_ < quiet_after_ns, "SK-3: news about members after a long calm");
  if (const auto who = number_of(news.who.id); who < all_.size() && all_.network().is_running(who)) check_news(at, who, news);
  for (const auto& each : passes_) {
    const auto here = std::find(each->ids.begin(), each->ids.end(), all_.self(at).id);
    const auto other = std::find(each->ids.begin(), each->ids.end(), news.who.id);
    if (here == each->ids.end() || other == each->ids.end()) continue;
    const auto one = static_cast<pass_shape::number>(here - each->ids.begin());
    const auto two = static_cast<pass_shape::number>(other - each->ids.begin());
    if (news.what == kind::unreachable || news.what == kind::gone) each->model->peer_down(one, two);
    if (news.what == kind::up || news.what == kind::up_again) each->model->peer_up(one, two);
  }
}

/// News about a node whose process runs.
void soak::check_news(std::size_t at, std::size_t who, const peer_change& news) {
  using kind = peer_change::kind;
  const auto name = "n" + std::to_string(who);
  const auto forget_ns = how_.limits.forget_after.count();
  // The other node may find out late, and cut the connection while this one gets its answers again.
  const auto patience_ns = (member_table::allowed_misses + member_table::intervals_to_cut + 3) * all_.interval_ns();
  const auto now = all_.now_ns();
  if (news.what == kind::gone)
    expect(now - faults_.last_trouble(at, who) < forget_ns + patience_ns, "SK-3: " + name + " is gone without trouble");
  if (news.what == kind::unreachable)
    expect(now - faults_.last_trouble(at, who) < patience_ns, "SK-3: " + name + " is unreachable without trouble");
  if (news.what == kind::lost)
    expect(now - faults_.last_trouble(who) < forget_ns + patience_ns + member_table::intervals_of_patience * all_.interval_ns(),
           "SK-3: " + name + " is lost without trouble");
}

void soak::check_agreement() {
  for (std::size_t a = 0; a < all_.size(); ++a) {
    for (std::size_t b = 0; b < all_.size(); ++b) {
      if (a == b) continue;
      const auto pair = "n" + std::to_string(b) + " for n" + std::to_string(a);
      expect(all_.is_peer(a, b), "SK-4, ME-5: after a calm time not up: " + pair);
      expect(all_.between(a, b) == all_.between(b, a), "SK-4, MT-1: after a calm time two bonds: " + pair);
    }
    const auto members = all_.table(a).members().size();
    expect(members == all_.size() - 1, "SK-4: n" + std::to_string(a) + " knows " + std::to_string(members) +
                                         " members, expected " + std::to_string(all_.size() - 1));
  }
  for (const auto& each : passes_) {
    expect(each->is_over, "SK-2: a pass is not over after a calm time");
    for (pass_shape::number n = 0; n < each->ids.size(); ++n)
      expect(!each->model->holds_part(n) || all_.self(each->at[n]).id != each->ids[n],
             "SK-4: n" + std::to_string(each->at[n]) + " still holds a part of pass " +
               std::to_string(each->model->number_of_context()));
  }
  passes_.clear();
}

}  // namespace troupe::bench
