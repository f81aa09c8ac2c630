// SPDX-License-Identifier: BSD-3-Clause
#include "processes.hpp"

#include <unistd.h>
#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <ATen/ATen.h>

#include "../support/background.hpp"
#include "../support/failing_passes.hpp"
#include "../support/peers.hpp"
#include "../support/runs.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t filling_in_flight = 4;
constexpr std::size_t small_bytes = 200;  // those of a small call, with its header
constexpr auto pause_between = std::chrono::milliseconds(5);
constexpr auto glance = std::chrono::milliseconds(2);
constexpr auto longest_begin = std::chrono::seconds(60);

/// Numbers in a text, "64,1024".
std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::vector<std::int64_t> all;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) all.push_back(std::stoll(word));
  return all;
}

std::uint16_t port_in(const process_arguments& with) { return static_cast<std::uint16_t>(with.number("port")); }

/// `prepare(size)` returns what sends so many bytes and waits for the answer.
template <class Prepare>
void tell_sizes(const process_arguments& with, Prepare prepare) {
  for (const auto size : numbers_in(with.text("sizes"))) {
    const auto exchange = prepare(size);
    const auto runs = runs_of_size(size, static_cast<std::int64_t>(with.number("bytes")));
    for (const auto& [name, value] : figures_of_size(size, times_of(runs, exchange))) tell(name, value);
  }
}

/// `exchange(at_once)` sends so many messages and waits for all answers.
template <class Exchange>
void tell_rates(const process_arguments& with, Exchange exchange) {
  for (const auto at_once : numbers_in(with.text("at_once"))) {
    const auto number = std::to_string(at_once);
    auto rates = times_of(std::max(3, static_cast<int>(with.number("count") / static_cast<double>(at_once))),
                          [&] { exchange(static_cast<std::size_t>(at_once)); });
    for (auto& each : rates) each = static_cast<double>(at_once) * 1e6 / each;
    for (const auto& [name, share] : {std::pair{"per_s_", 0.5}, {"low_", 0.25}, {"high_", 0.75}})
      tell(name + number, percentile(rates, share));
  }
}

/// Fills a link while the object lives. `step`: moves some bytes and returns how many.
class full_link {
 public:
  /// Waits until the link is full. Throws std::runtime_error if it is not full within a minute, and what `step` throws.
  explicit full_link(std::function<std::int64_t()> step) : sender_([this, step = std::move(step)] { bytes_ += step(); }) {
    // Windows have grown then, and the link has no credit left for a burst.
    constexpr auto enough = static_cast<std::int64_t>(filling_in_flight) * filling_bytes;
    for (const auto until = clock::now() + longest_begin; bytes_ < enough; std::this_thread::sleep_for(glance)) {
      sender_.check();
      if (clock::now() > until) throw std::runtime_error("expected a full link within a minute, but too little was sent");
    }
    begin();
  }
  /// From now on rate() counts.
  void begin() {
    begin_ = clock::now();
    before_ = bytes_;
  }
  /// Megabits per second since begin(). Throws what `step` threw.
  double rate() const {
    sender_.check();
    return megabits(static_cast<double>(bytes_ - before_), std::chrono::duration<double>(clock::now() - begin_).count());
  }

 private:
  std::atomic<std::int64_t> bytes_{0};
  std::int64_t before_ = 0;
  clock::time_point begin_;
  background sender_;
};

/// Runs `ask`, which returns microseconds, so many times with pauses, and tells the figures "late".
void tell_late(const process_arguments& with, const std::function<double()>& ask) {
  std::vector<double> taken;
  for (int left = static_cast<int>(with.number("count")); left > 0; --left) {
    taken.push_back(ask());
    std::this_thread::sleep_for(pause_between);
  }
  for (const auto& [name, share] : {std::pair{"us", 0.5}, {"tenth", 0.9}, {"late", 0.99}}) tell(name, percentile(taken, share));
}

}  // namespace

int runs_of_size(std::int64_t size, std::int64_t bytes) {
  return static_cast<int>(std::clamp(bytes / (size + 1), std::int64_t{5}, std::int64_t{2'000}));
}

std::map<std::string, double> figures_of_size(std::int64_t size, const std::vector<double>& times) {
  std::map<std::string, double> found;
  for (const auto& [name, share] :
       {std::pair{"us_", 0.5}, {"low_", 0.25}, {"high_", 0.75}, {"tenth_", 0.9}, {"late_", 0.99}, {"last_", 0.999}})
    found[name + std::to_string(size)] = percentile(times, share);
  return found;
}

namespace {

void echo_sizes(const process_arguments& with) {
  node here(with.node);
  tell_sizes(with, [to = here.peer("b")](std::int64_t size) {
    return [=, x = at::ones({size}, at::kByte)] { to.call("echo", {x}).get(); };
  });
}

void call_at_once(const process_arguments& with) {
  node here(with.node);
  tell_rates(with, [to = here.peer("b"), x = at::ones({1})](std::size_t at_once) {
    std::vector<future<call_reply>> asked;
    for (std::size_t i = 0; i < at_once; ++i) asked.push_back(to.call("echo", {x}));
    for (const auto& each : asked) each.get();
  });
}

void ask_beside_tensors(const process_arguments& with) {
  const auto& load = with.text("load");
  const auto& what = with.text("what");
  if (load != "none" && load != "there" && load != "both_ways")
    throw std::runtime_error("expected 'none', 'there' or 'both_ways' as load, got '" + load + "'");
  if (what != "heartbeat" && what != "error") throw std::runtime_error("expected 'heartbeat' or 'error', got '" + what + "'");
  std::atomic<int> downs{0};
  node here(with.node);
  here.on_peer_down([&](const std::string&, const std::string&) { ++downs; });
  const auto to = here.peer("b");
  const auto fill = [&](const char* function, const std::vector<at::Tensor>& tensors) {
    return [=, open = std::deque<future<call_reply>>{}]() mutable {
      while (open.size() < filling_in_flight) open.push_back(to.call(function, tensors));
      open.front().get();
      open.pop_front();
      return filling_bytes;
    };
  };
  std::optional<full_link> there;
  std::optional<full_link> back;
  if (load != "none") there.emplace(fill("take", {at::rand({filling_bytes / 4})}));
  if (load == "both_ways") back.emplace(fill("give", {}));
  if (there) there->begin();
  tell_late(with, [&] {
    if (what == "error") return microseconds_until_error(here, to);
    const auto begin = clock::now();
    to.status();
    return microseconds_since(begin);
  });
  tell("mbit", there ? there->rate() : 0);
  tell("mbit_back", back ? back->rate() : 0);
  tell("downs", downs);
}

void serve_requests_of_caf(const process_arguments& with) {
  serve_caf_echo(
    with.text("listen"), [](std::uint16_t port) { tell("ready", port); }, [] { ::pause(); });
}

void echo_sizes_by_caf(const process_arguments& with) {
  caf_link link(with.text("address"), port_in(with));
  caf_asker asker(link);
  tell_sizes(with, [&](std::int64_t size) {
    return [&asker, text = std::string(static_cast<std::size_t>(size), 'x')] { asker.ask(text); };
  });
}

void request_at_once_of_caf(const process_arguments& with) {
  caf_link link(with.text("address"), port_in(with));
  caf_asker asker(link);
  const std::string text(small_bytes, 'x');
  tell_rates(with, [&](std::size_t at_once) {
    while (asker.in_flight() < at_once) asker.send(text);
    while (asker.in_flight() > 0) asker.wait();
  });
}

void request_beside_texts_of_caf(const process_arguments& with) {
  caf_link link(with.text("address"), port_in(with));
  caf_asker asker(link);
  const std::string small(small_bytes, 'x');
  caf_asker filler(link);
  const full_link beside([&filler, text = std::string(static_cast<std::size_t>(filling_bytes), 'x')] {
    while (filler.in_flight() < filling_in_flight) filler.send(text);
    filler.wait();
    return filling_bytes;
  });
  tell_late(with, [&] {
    const auto begin = clock::now();
    asker.ask(small);
    return microseconds_since(begin);
  });
  tell("mbit", beside.rate());
}

void echo_sizes_by_tcp(const process_arguments& with) {
  tcp_floor floor(port_in(with), with.text("address"));
  tell_sizes(with, [&](std::int64_t size) {
    // Nothing travels with 0 bytes.
    return [&floor, bytes = static_cast<std::size_t>(std::max<std::int64_t>(size, 1))] { floor.seconds(1, bytes); };
  });
}

}  // namespace

processes_by_name message_processes() {
  return {{"sizes", echo_sizes},
          {"rates", call_at_once},
          {"late", ask_beside_tensors},
          {"caf_echo", serve_requests_of_caf},
          {"caf_sizes", echo_sizes_by_caf},
          {"caf_rates", request_at_once_of_caf},
          {"caf_late", request_beside_texts_of_caf},
          {"tcp_sizes", echo_sizes_by_tcp}};
}

}  // namespace troupe::bench
