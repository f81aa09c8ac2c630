// SPDX-License-Identifier: BSD-3-Clause
// Rows of what it costs to prove who one is, and of strangers.
#include "rows.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include <cstdio>
#include <memory>

#include <troupe/actors/gate/tls_session.hpp>

#include "../support/other_process.hpp"
#include "host_process.hpp"
#include "host_ways.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;
using steady = std::chrono::steady_clock;

const std::string port_text = std::to_string(port_of_nodes);

/// The figures of small calls of a node on h2 to the node b on h1, which both have kits.
figures_by_name calls_with_kit(const testbed& all, const kits& proofs, const std::string& name, const std::string& count) {
  host_process driver(all["h2"], "calls", proofs.options(name, 0, {"h1:" + port_text}), {{"count", count}});
  return driver.figures();
}

/// The seconds that a small call takes on one machine, in turns without and with the gate. Both ends share memory.
row gate_small_call(bool quick) {
  const testbed all({"h1"});
  // The two sides of a turn follow each other, in changing order: what slows the machine for longer slows both.
  std::vector<double> ratios;
  std::vector<double> taken[2];
  for (int turn = 0; turn < (quick ? 1 : 21); ++turn) {
    for (const bool gate : {turn % 2 != 0, turn % 2 == 0}) {
      std::vector<std::string> of_node{"--name=b", "--port=" + port_text};
      std::vector<std::string> of_driver{"--name=a", "--join=127.0.0.1:" + port_text};
      if (!gate)
        for (auto* each : {&of_node, &of_driver}) each->emplace_back("--insecure");
      host_process node(all["h1"], "node", of_node, {});
      node.ready();
      host_process driver(all["h1"], "calls", of_driver, {{"count", quick ? "20" : "10000"}});
      taken[gate ? 1 : 0].push_back(driver.figures().at("us"));
    }
    ratios.push_back(taken[0].back() / taken[1].back());
  }
  return {{middle(taken[0]), middle(taken[1]), 0}, middle(ratios)};
}

/// A process on h1 that asks the node of h2, by plain TCP or, with kits, by TLS. Returns this figure of the process.
double figure_between(const testbed& all, const kits* proofs, const std::string& process, const values_by_name& values,
                      const std::string& figure) {
  return way::of_troupe("", role::troupe, proofs).figures(all, process, values).at(figure);
}

row tls_small_call(bool quick) {
  const kits proofs;
  const testbed all({"h1", "h2"});
  std::vector<double> taken[2];
  for (int turn = 0; turn < (quick ? 1 : 21); ++turn)
    for (const bool tls : {false, true})
      taken[tls ? 1 : 0].push_back(
        figure_between(all, tls ? &proofs : nullptr, "calls", {{"count", quick ? "20" : "5000"}}, "us"));
  const auto plain = middle(taken[0]);
  const auto secured = middle(taken[1]);
  return {{plain, secured, 0}, plain / secured};
}

/// What `openssl speed` gives for the cipher on one core, in Mbit/s.
double rate_of_cipher(int length_s) {
  const auto command =
    "openssl speed -elapsed -seconds " + std::to_string(length_s) + " -bytes 16384 -evp aes-128-gcm 2>/dev/null";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(::popen(command.c_str(), "r"), &::pclose);
  std::array<char, 512> line{};
  double kilobytes = 0;
  while (output && std::fgets(line.data(), line.size(), output.get()) != nullptr)
    if (std::string(line.data()).starts_with("AES-128-GCM")) std::sscanf(line.data(), "%*s %lfk", &kilobytes);
  if (kilobytes <= 0) throw std::runtime_error("expected a figure of `openssl speed`; is the program openssl installed?");
  return kilobytes * 1000 * 8 / 1e6;
}

/// The rate of two loops that do nothing but send and receive, without a node, in Mbit/s.
double bare_rate(const testbed& all, const std::string& kit_of_h1, const std::string& kit_of_h2, const std::string& length_s) {
  host_process drain(all["h2"], "drain", {}, {{"listen", port_text}, {"kit", kit_of_h2}});
  drain.ready();
  host_process pour(all["h1"], "pour", {},
                    {{"address", all["h2"].ipv4()}, {"port", port_text}, {"kit", kit_of_h1}, {"seconds", length_s}});
  return drain.figures().at("mbit");
}

/// Tensors by TLS beside two loops by the same session of TLS, on the cores of this machine. Plain TCP takes part in the turns too, for
/// the note.
row tls_bulk(bool quick) {
  const auto cipher = rate_of_cipher(quick ? 1 : 3);
  const kits proofs;
  const testbed all({"h1", "h2"});
  const std::string length_s = quick ? "0.3" : "3";
  const values_by_name values{{"in_flight", "2"}, {"seconds", length_s}};
  std::vector<double> loops;
  std::vector<double> nodes;
  std::vector<double> ratios;
  std::vector<double> plain_loops;
  std::vector<double> plain_nodes;
  for (int turn = 0; turn < (quick ? 1 : 5); ++turn) {
    loops.push_back(bare_rate(all, proofs.file("a"), proofs.file("b"), length_s));
    nodes.push_back(figure_between(all, &proofs, "bulk", values, "mbit"));
    ratios.push_back(nodes.back() / loops.back());
    plain_loops.push_back(bare_rate(all, "", "", length_s));
    plain_nodes.push_back(figure_between(all, nullptr, "bulk", values, "mbit"));
  }
  const auto peer = middle(loops);
  const auto ours = middle(nodes);
  const auto ratio = middle(ratios);
  std::array<char, 128> note{};
  std::snprintf(note.data(), note.size(), "plain TCP: nodes %.0f, loops %.0f; floor: the cipher alone on one core",
                middle(plain_nodes), middle(plain_loops));
  return {.value = {peer, ours, cipher},
          .ratio = ratio,
          .note = note.data(),
          .spreads = {spread_of(loops, peer), spread_of(nodes, ours), {}, spread_of(ratios, ratio)}};
}

/// Keeps this thread on one core while the object lives.
class one_core {
 public:
  one_core() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0)
      throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
  }
  ~one_core() { ::sched_setaffinity(0, sizeof before_, &before_); }
  one_core(const one_core&) = delete;
  one_core& operator=(const one_core&) = delete;

 private:
  cpu_set_t before_{};
};

/// Handshakes a second, both ends on this thread. `whom`: sessions with the same text resume.
double rate_of_handshakes(const std::shared_ptr<gate::credentials>& a, const std::shared_ptr<gate::credentials>& b,
                          bool resumes, double length) {
  using gate::tls_session;
  const auto begin = steady::now();
  const auto passed = [&] { return std::chrono::duration<double>(steady::now() - begin).count(); };
  int count = 0;
  while (passed() < length) {
    int both[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) != 0)
      throw std::system_error(errno, std::generic_category(), "socketpair");
    const support::owned_descriptor calling(both[0]);
    const support::owned_descriptor called(both[1]);
    tls_session caller(a, calling.get(), gate::end::calling, resumes ? "b" : "b" + std::to_string(count));
    tls_session answering(b, called.get(), gate::end::called);
    for (int i = 0; i < 10 && !(caller.is_proven() && answering.is_proven()); ++i) {
      caller.shake_hands();
      answering.shake_hands();
    }
    if (!answering.is_proven()) throw std::runtime_error("a handshake failed: " + answering.problem().why);
    char byte = 'x';
    answering.write(&byte, 1, false);  // with the session's ticket
    caller.read({&byte, 1}, {});
    ++count;
  }
  return count / passed();
}

row handshakes(bool quick) {
  const kits proofs;
  const auto a = std::make_shared<gate::credentials>(proofs.file("a"));
  const auto b = std::make_shared<gate::credentials>(proofs.file("b"));
  const one_core here;
  const auto length = quick ? 0.2 : 5.0;
  const auto full = rate_of_handshakes(a, b, false, length);
  const auto resumed = rate_of_handshakes(a, b, true, length);
  return {{0, full, 0}, full, "both ends on one core; resumed " + short_number(resumed)};
}

/// How much a node's process grows while connections stall in the handshake.
row stalled_memory(bool quick) {
  const kits proofs;
  const testbed all({"h1", "h2"});
  host_process node(all["h1"], "node", proofs.options("b", port_of_nodes), {});
  node.ready();
  const auto before = process_figures::of(node.pid()).resident_kib;
  host_process stall(all["h2"], "stall", {},
                     {{"address", all["h1"].ipv4()}, {"port", port_text}, {"count", quick ? "50" : "1000"}});
  stall.ready();
  auto most = before;
  const auto until = steady::now() + std::chrono::milliseconds(quick ? 500 : 12'000);
  while (steady::now() < until) {
    most = std::max(most, process_figures::of(node.pid()).resident_kib);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto mib = static_cast<double>(most - before) / 1024;
  // The node still lets in who proves who he is.
  calls_with_kit(all, proofs, "a", "20");
  return {{0, mib, 0}, mib};
}

/// Measures the 99th percentile of a small call between two nodes of the cluster, without and with a program beside them that
/// sends wrong bytes.
row hostile_disturbance(bool quick) {
  const kits proofs;
  const testbed all({"h1", "h2", "h3"});
  host_process node(all["h1"], "node", proofs.options("b", port_of_nodes), {});
  node.ready();
  std::vector<double> taken[2];
  const std::string rate = "500";
  for (int turn = 0; turn < (quick ? 1 : 5); ++turn)
    for (const bool disturbs : {false, true}) {
      std::unique_ptr<host_process> stranger;
      if (disturbs) {
        stranger =
          std::make_unique<host_process>(all["h3"], "strangers", std::vector<std::string>{},
                                         values_by_name{{"address", all["h1"].ipv4()}, {"port", port_text}, {"rate", rate}});
        stranger->ready();
      }
      const auto name = "a" + std::to_string(2 * turn + (disturbs ? 1 : 0));
      taken[disturbs ? 1 : 0].push_back(calls_with_kit(all, proofs, name, quick ? "50" : "10000").at("p99_us"));
    }
  const auto quiet = middle(taken[0]);
  const auto disturbed = middle(taken[1]);
  return {{quiet, disturbed, 0}, disturbed / quiet, rate + " hostile connections a second"};
}

/// Crashes, leaks and lost nodes while a stranger and a node that lies play what no node would send.
row hostile_inputs(bool quick) {
  constexpr int rounds = 10;
  constexpr std::int64_t most_grown_kib = 64 << 10;
  const kits proofs;
  const testbed all({"h1", "h2", "h3"});
  auto of_node = proofs.options("b", port_of_nodes);
  of_node.emplace_back("--log-level=off");
  host_process node(all["h1"], "node", of_node, {});
  node.ready();
  const std::string count = quick ? "2000" : "1000000";
  host_process stranger(all["h3"], "hostile", {},
                        {{"address", all["h1"].ipv4()},
                         {"port", port_text},
                         {"kit", proofs.file("mallory")},
                         {"count", count},
                         {"rounds", std::to_string(rounds)}});
  int faults = 0;
  std::int64_t before = 0;
  double connections = 0;
  for (int round = 1; round <= rounds; ++round) {
    connections = stranger.figure("played_" + std::to_string(round));
    try {
      calls_with_kit(all, proofs, "a" + std::to_string(round), "20");
      const auto now = process_figures::of(node.pid()).resident_kib;  // throws if the process has ended
      if (round == 1) before = now;
      faults += now - before > most_grown_kib ? 1 : 0;
    } catch (const std::runtime_error& fault) {
      std::fprintf(stderr, "hostile_inputs: %s\n", fault.what());
      ++faults;
    }
  }
  const auto messages = stranger.figure("messages");
  if (messages < std::stod(count) / 2)
    throw std::runtime_error("hostile_inputs: expected that at least half of " + count + " inputs come after a proof, got " +
                             short_number(messages));
  const auto grown = static_cast<double>(process_figures::of(node.pid()).resident_kib - before) / 1024;
  return {{std::stod(count), static_cast<double>(faults), 0},
          static_cast<double>(faults),
          short_number(connections) + " connections, " + short_number(messages) + " inputs after a proof; the node grew by " +
            short_number(grown) + " MiB"};
}

}  // namespace

std::vector<row_definition> security_rows() {
  return {
    {"gate_small_call", "us", at_least(0.95),
     "A small call with certificates through shared memory; peer: without certificates.", gate_small_call},
    {"tls_small_call", "us", at_least(0.7), "A small call between hosts by TLS; peer: plain TCP.", tls_small_call},
    {"tls_bulk", "Mbit/s", at_least(0.92),
     "Large tensors between hosts by TLS; peer: two bare loops by the same session of TLS.", tls_bulk},
    {"handshakes", "1/s", at_least(500), "Connections that prove both ends, each second, with both ends on one core.",
     handshakes},
    {"stalled_memory", "MiB more", at_most(64), "Memory that connections take which stall in the handshake; ratio in MiB.",
     stalled_memory},
    {"hostile_disturbance", "us p99", at_most(1.8),
     "99th percentile of a small call while a stranger sends what no node sends; peer: without the stranger.",
     hostile_disturbance},
    {"hostile_inputs", "faults", at_most(0),
     "Crashes, leaks and lost nodes while a hostile client plays its inputs; peer: the count of inputs.", hostile_inputs},
  };
}

}  // namespace troupe::bench
