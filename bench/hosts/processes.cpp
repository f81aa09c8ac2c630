// SPDX-License-Identifier: BSD-3-Clause
#include "processes.hpp"

#include <malloc.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <ATen/ATen.h>

#include "../support/failing_passes.hpp"
#include "../support/peers.hpp"
#include "../support/real_cluster.hpp"
#include "../support/runs.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr auto until_next_look = std::chrono::milliseconds(2);

at::Tensor tensor_of(std::int64_t bytes) { return at::rand({bytes / 4}); }

void serve_node(const process_arguments& with) {
  node here(with.node);
  here.functions().add(
    "add", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(0)}}; });
  here.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
  here.functions().add("take", [](call_arguments&) { return call_reply{}; });
  here.functions().add("give", [tensor = tensor_of(filling_bytes)](call_arguments&) { return call_reply{{tensor}}; });
  here.functions().add("slow", [](call_arguments& arguments) {
    std::this_thread::sleep_for(std::chrono::milliseconds(get<std::int64_t>(arguments.values, "ms")));
    return call_reply{};
  });
  add_throwing_function(here);
  here.functions().add("forget_peak", [](call_arguments&) {
    forget_peak();
    return call_reply{};
  });
  here.functions().add("memory", [](call_arguments&) {
    const auto found = process_figures::of(::getpid());
    return call_reply{{}, {{"resident_kib", found.resident_kib}, {"peak_kib", found.peak_kib}}};
  });
  tell("ready", here.port());
  here.serve();
}

/// Calls "take" of the node `to` with tensors of 16 MiB, `in_flight` at a time, until `goes_on` is false. Returns the bytes that were
/// answered.
std::int64_t send_tensors(const peer& to, std::size_t in_flight, const std::function<bool()>& goes_on) {
  const auto tensor = tensor_of(filling_bytes);
  std::deque<future<call_reply>> open;
  std::int64_t answered = 0;
  while (goes_on() || !open.empty()) {
    while (goes_on() && open.size() < in_flight) open.push_back(to.call("take", {tensor}));
    if (open.empty()) break;
    open.front().get();
    open.pop_front();
    answered += filling_bytes;
  }
  return answered;
}

void send_bulk(const process_arguments& with) {
  node here(with.node);
  const auto to = here.peer("b");
  const auto x = at::ones({1});
  std::vector<double> trips;
  for (int i = 0; i < 5; ++i) {
    const auto begin = clock::now();
    to.call("add", {x}).get();
    trips.push_back(seconds_since(begin) * 1e3);
  }
  const auto in_flight = static_cast<std::size_t>(with.number("in_flight"));
  auto warm = static_cast<int>(in_flight);
  send_tensors(to, in_flight, [&] { return warm-- > 0; });  // windows have grown, and no link has credit left for a burst
  const auto begin = clock::now();
  const auto length = with.number("seconds");
  const auto bytes = send_tensors(to, in_flight, [&] { return seconds_since(begin) < length; });
  tell("mbit", megabits(static_cast<double>(bytes), seconds_since(begin)));
  tell("trip_ms", percentile(trips, 0));
}

void make_small_calls(const process_arguments& with) {
  node here(with.node);
  const auto to = here.peer("b");
  const auto x = at::ones({1});
  std::vector<double> taken;
  for (auto left = static_cast<int>(with.number("count")); left > 0; --left) {
    const auto begin = clock::now();
    to.call("add", {x}).get();
    taken.push_back(seconds_since(begin) * 1e6);
  }
  tell("p99_us", percentile(taken, 0.99));
  tell("us", percentile(std::move(taken), 0.5));
}

void flood(const process_arguments& with) {
  // Freed tensors go back to the system, so what grows is what is held. Without this, glibc keeps them, and makes a new tensor of
  // the same size elsewhere, because its posix_memalign() looks for a larger block.
  ::mallopt(M_MMAP_THRESHOLD, mebibyte / 2);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  node here(with.node);
  const auto to = here.peer("b");
  const auto ms = static_cast<std::int64_t>(with.number("ms"));
  const auto call = [&] { return to.call("slow", {tensor_of(mebibyte)}, {{"ms", ms}}); };
  for (int i = 0; i < 20; ++i) call().get();  // what grows once has grown
  forget_peak();
  to.call("forget_peak").get();
  const auto memory_there = [&](const char* what) {
    return static_cast<double>(get<std::int64_t>(to.call("memory").get().values, what));
  };
  const auto resident_here = process_figures::of(::getpid()).resident_kib;
  const auto resident_there = memory_there("resident_kib");
  std::deque<future<call_reply>> open;
  for (auto left = static_cast<int>(with.number("count")); left > 0; --left) {
    open.push_back(call());
    for (; open.front().ready() && open.size() > 1; open.pop_front()) open.front().get();
  }
  for (const auto& each : open) each.get();
  const auto peak_there = memory_there("peak_kib");
  tell("here_mib", static_cast<double>(process_figures::of(::getpid()).peak_kib - resident_here) / 1024);
  tell("there_mib", (peak_there - resident_there) / 1024);
}

/// Waits until the node knows `others` peers, for `patience` seconds at most. Returns how many it knows.
std::size_t wait_for_peers(const node& here, std::size_t others, double patience) {
  const auto begin = clock::now();
  auto known = here.peers().size();
  for (; known < others && seconds_since(begin) < patience; known = here.peers().size())
    std::this_thread::sleep_for(until_next_look);
  return known;
}

void be_a_member(const process_arguments& with) {
  auto options = with.node;
  const auto addresses = std::exchange(options.join, {});
  node here(std::move(options));
  const auto begin = clock::now();
  for (const auto& address : addresses) {
    const auto [host, port] = parse_address(address);
    here.join(host, port);
  }
  tell("joined_s", seconds_since(begin));
  tell("ready", here.port());
  const auto known = wait_for_peers(here, static_cast<std::size_t>(with.number("others")), with.number("patience"));
  tell("complete_s", seconds_since(begin));
  tell("known", static_cast<double>(known));
  here.serve();
}

void be_many_members(const process_arguments& with) {
  const auto count = static_cast<std::size_t>(with.number("count"));
  const auto patience = with.number("patience");
  std::vector<std::unique_ptr<node>> all;
  double joined = 0;
  clock::time_point begin;
  for (std::size_t i = 1; i <= count; ++i) {
    auto options = with.node;
    options.name = "n" + std::to_string(i);
    auto& made = all.emplace_back(std::make_unique<node>(options));
    begin = clock::now();
    if (i > 1) made->join("127.0.0.1", all.front()->port());
    joined = seconds_since(begin);
  }
  const auto known_by_last = wait_for_peers(*all.back(), count - 1, patience);
  const auto complete = seconds_since(begin);
  auto fewest = known_by_last;
  for (const auto& each : all) fewest = std::min(fewest, wait_for_peers(*each, count - 1, patience - seconds_since(begin)));
  std::this_thread::sleep_for(std::chrono::duration<double>(with.number("settle")));
  const auto before = process_figures::of(::getpid());
  const auto length = with.number("seconds");
  std::this_thread::sleep_for(std::chrono::duration<double>(length));
  const auto after = process_figures::of(::getpid());
  const auto nodes = static_cast<double>(count);
  for (const auto& each : all) fewest = std::min(fewest, each->peers().size());
  tell("joined_s", joined);
  tell("complete_s", complete);
  tell("known", static_cast<double>(fewest));
  tell("cpu", (after.cpu_seconds - before.cpu_seconds) / length / nodes * 100);
  tell("threads", static_cast<double>(after.threads) / nodes);
  tell("descriptors", static_cast<double>(after.descriptors) / nodes);
}

void serve_shapes(const process_arguments& with) {
  auto own = with.node;
  own.workers = 64;
  real_cluster::serve(
    std::move(own), [](std::uint16_t port) { tell("ready", port); }, [](node& here) { here.serve(); });
}

void pass_over_shape(const process_arguments& with) {
  const auto count = static_cast<std::size_t>(with.number("nodes"));
  std::vector<std::string> others;
  for (std::size_t i = 1; i < count; ++i) others.push_back("h" + std::to_string(i) + ":" + with.text("port"));
  real_cluster cluster(with.node, others);
  std::vector<double> taken;
  const std::chrono::microseconds function(static_cast<std::int64_t>(with.number("us")));
  for (int i = -2; i < static_cast<int>(with.number("runs")); ++i) {
    const auto ms = cluster.pass_ms(with.text("shape"), count, function);
    if (i >= 0) taken.push_back(ms);
  }
  for (const auto& [name, share] : {std::pair{"low", 0.25}, {"ms", 0.5}, {"high", 0.75}}) tell(name, percentile(taken, share));
}

void echo(const process_arguments& with) {
  serve_echo([](std::uint16_t port) { tell("ready", port); }, with.text("listen"));
}

void measure_floor(const process_arguments& with) {
  tcp_floor floor(static_cast<std::uint16_t>(with.number("port")), with.text("address"));
  const auto bytes = static_cast<std::size_t>(with.number("bytes"));
  const auto answer = static_cast<std::size_t>(with.number("answer"));
  floor.seconds(2, bytes, answer);
  std::vector<double> taken;
  double all = 0;
  for (auto left = static_cast<int>(with.number("runs")); left > 0; --left) {
    taken.push_back(floor.seconds(1, bytes, answer) * 1e6);
    all += taken.back() / 1e6;
  }
  tell("mbit", megabits(static_cast<double>(bytes) * static_cast<double>(taken.size()), all));
  tell("us", percentile(std::move(taken), 0.5));
}

}  // namespace

void tell(const std::string& name, double value) {
  std::printf("figure %s %.9g\n", name.c_str(), value);
  std::fflush(stdout);
}

double process_arguments::number(const std::string& name) const { return std::stod(text(name)); }

const std::string& process_arguments::text(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) throw std::runtime_error("expected the value '" + name + "'");
  return found->second;
}

processes_by_name host_processes() {
  processes_by_name all{{"node", serve_node},     {"bulk", send_bulk},          {"calls", make_small_calls},
                        {"shapes", serve_shapes}, {"pass", pass_over_shape},    {"flood", flood},
                        {"member", be_a_member},  {"members", be_many_members}, {"relay", relay},
                        {"echo", echo},           {"floor", measure_floor}};
  for (auto more : {message_processes(), security_processes(), wire_processes()}) all.merge(more);
  return all;
}

}  // namespace troupe::bench
