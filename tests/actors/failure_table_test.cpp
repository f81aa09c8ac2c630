// SPDX-License-Identifier: BSD-3-Clause
// Every combination of a fault, the phase of forward or backward in which the fault happens, and the node that has the fault.
// Each node is a process. The driver calls node "b", and "b" calls node "c".
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <unistd.h>

#include <torch/torch.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/troupe.hpp>

#include "actors/process_cluster.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(failure_table)

namespace {

using troupe::test::be_node;
using troupe::test::shared_signal;
using steady = std::chrono::steady_clock;

constexpr auto heartbeat = 80ms;
constexpr auto detection = 4 * heartbeat;  // three missed heartbeats, and up to one interval before the first of them
constexpr auto busy_machine = 600ms;       // shorter than an abort that gets no answer

enum class fault { killed, frozen, cut_off, cut_off_from_its_caller };
enum class victim { a_peer_of_the_driver, a_peer_of_another_node };
enum class phase {
  while_a_call_runs_on_it,
  between_forward_and_backward,
  before_its_part_of_backward,
  while_its_function_runs_in_backward
};

struct cell {
  fault what;
  victim whom;
  phase when;

  std::string text() const {
    constexpr const char* faults[] = {"killed", "frozen", "cut_off", "cut_off_from_its_caller"};
    constexpr const char* victims[] = {"a_peer_of_the_driver", "a_peer_of_another_node"};
    constexpr const char* phases[] = {"while_a_call_runs_on_it", "between_forward_and_backward", "before_its_part_of_backward",
                                      "while_its_function_runs_in_backward"};
    return std::string(victims[static_cast<int>(whom)]) + "_" + faults[static_cast<int>(what)] + "_" +
           phases[static_cast<int>(when)];
  }
  bool direct() const { return whom == victim::a_peer_of_the_driver; }
  std::string name() const { return direct() ? "b" : "c"; }
  std::string caller() const { return direct() ? "driver" : "b"; }
  std::string bystander() const { return direct() ? "c" : "b"; }
  bool lives_on() const { return what != fault::killed; }
  /// Whether the nodes may have met again before backward needs the connection.
  bool may_succeed() const {
    return when == phase::between_forward_and_backward && (what == fault::cut_off || what == fault::cut_off_from_its_caller);
  }
};

troupe::settings settings_of(const std::string& name) {
  troupe::settings result;
  result.name = name;
  result.heartbeat = heartbeat;
  result.workers = 2;
  result.deadline = 20s;  // so long that no deadline ends a pass before the fault is noticed
  return result;
}

/// Asks another process to cut its connections. The other process runs serve().
class remote_scissors {
 public:
  remote_scissors() {
    if (!ends_.read) throw std::runtime_error("remote_scissors: no pipe");
  }

  /// Cuts the connections to the process that listens at `port`, or all connections if `port` is 0. Returns when they are cut.
  void cut(std::uint16_t port) {
    BOOST_REQUIRE(write(ends_.write.get(), &port, sizeof port) == sizeof port);
    BOOST_REQUIRE(done_.take_within(10s));
  }
  void serve() {
    for (std::uint16_t port = 0; read(ends_.read.get(), &port, sizeof port) == sizeof port; done_.give())
      port == 0 ? troupe::test::cut_connections() : troupe::test::cut_connections_to(port);
  }

 private:
  troupe::support::pipe_ends ends_ = troupe::support::make_pipe();
  shared_signal done_;
};

/// The signals and functions that the three processes share. A global fixture, because the nursery has to be forked before this
/// process starts a second thread.
struct three_nodes {
  three_nodes() { here = this; }

  /// Waits, in a call or a backward hook, until the test lets it go on.
  void hold() {
    reached.give();
    opened.take();
  }

  void add_functions(troupe::node& node) {
    node.functions().add("go", [this](troupe::call_arguments& arguments) {
      auto values = arguments.values;
      const auto holds = [&](const char* when) {
        return troupe::get<std::string>(values, "where") == arguments.here.name() &&
               troupe::get<std::string>(values, "when") == when;
      };
      auto y = arguments.tensors.at(0) * torch::full({2}, 2.0);
      if (const auto next = troupe::get<std::string>(values, "next"); !next.empty()) {
        values["next"] = std::string{};
        y = arguments.here.peer(next).call("go", {y}, values).get().tensors.at(0);
      }
      if (holds("forward")) hold();
      y = y * torch::full({2}, 2.0);
      if (holds("backward")) y.register_hook([this](const at::Tensor&) { hold(); });
      return troupe::call_reply{{y}};
    });
  }

  void be_process(const std::string& name, std::uint16_t port) {
    be_node(
      "failure table", settings_of(name), port, [this](troupe::node& node) { add_functions(node); },
      [&] { scissors.at(name).serve(); });
  }

  static inline three_nodes* here = nullptr;
  shared_signal reached;
  shared_signal opened;
  std::map<std::string, remote_scissors> scissors = [] {
    std::map<std::string, remote_scissors> both;
    both["b"];
    both["c"];
    return both;
  }();
  troupe::test::nursery processes{[this](const std::string& name, std::uint16_t port) { be_process(name, port); }};
};

/// Runs the cells of the table one after another. A cell is one combination of fault, phase and node. At the start of a cell
/// the three nodes know each other. At its end the two nodes without a fault still run.
class table {
 public:
  table() { at::set_num_threads(1); }

  void play(const cell& now) {
    shared.reached.reset();
    shared.opened.reset();
    const auto missing = cluster.meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
    const auto before = driver.status();
    bool succeeded = false;
    {
      troupe::context first(driver);
      const auto end = fail(first, now);
      succeeded = now.may_succeed() && !end;
      if (succeeded)
        BOOST_TEST(at::equal(first.gradient(x), torch::full({2}, 16.0)));
      else
        check_rest_of_pass(now, first, end);
    }
    {
      troupe::context next(driver);
      check_pass(next, now.bystander());
    }
    check_rest(now);
    const auto after = driver.status();
    BOOST_TEST(after.passes_failed - before.passes_failed ==
               (now.when == phase::while_a_call_runs_on_it || succeeded ? 0u : 1u));
    BOOST_TEST(after.passes_completed - before.passes_completed == 2u);
    cluster.replace(now.name());
  }

 private:
  /// Runs forward and backward through "b" and "c", one of which has the fault. Returns the error with which the run ends.
  std::optional<troupe::error> fail(troupe::context& context, const cell& now) {
    const bool early = now.when == phase::before_its_part_of_backward;
    const bool holds = now.when != phase::between_forward_and_backward && !(early && now.direct());
    const std::string when = now.when == phase::while_a_call_runs_on_it ? "forward" : "backward";
    const auto where = !holds ? std::string{} : early ? now.caller() : now.name();
    std::optional<troupe::error> end;
    try {
      auto reply = driver.peer("b").call("go", {x}, {{"next", "c"}, {"where", where}, {"when", when}});
      if (now.when == phase::while_a_call_runs_on_it) strike_when_reached(now, reply);
      auto y = reply.get().tensors.at(0);
      if (now.when == phase::between_forward_and_backward) strike(now);
      if (early && now.direct()) y.register_hook([&](const at::Tensor&) { strike(now); });
      auto pass = context.backward({y.sum()});
      if (holds) strike_when_reached(now, pass);
      if (holds && early) shared.opened.give();
      pass.get();
    } catch (const troupe::error& problem) {
      end = problem;
    }
    over = steady::now();
    return end;
  }

  /// Causes the fault when a node has reached the phase of the cell. `running`: the call or pass that brings the node there.
  template <class T>
  void strike_when_reached(const cell& now, const troupe::future<T>& running) {
    if (!shared.reached.take_within(10s)) {
      if (running.ready()) running.get();  // throws the error with which `running` ended too early
      BOOST_FAIL("the fault's moment is not reached within 10 s");
    }
    strike(now);
  }

  void strike(const cell& now) {
    switch (now.what) {
      case fault::killed:
        cluster.signal(now.name(), SIGKILL);
        break;
      case fault::frozen:
        troupe::test::freeze(cluster.pid(now.name()));
        break;
      case fault::cut_off:
        shared.scissors.at(now.name()).cut(0);
        break;
      case fault::cut_off_from_its_caller: {
        const auto first_cut = steady::now();
        cut(now.name(), now.caller());
        cut(now.caller(), now.name());
        struck = steady::now();
        wait_until_noticed(now, first_cut);
        shared.opened.give();  // the node goes on with its work, until it is told to abort
        return;
      }
    }
    struck = steady::now();
  }

  /// Waits until the caller has known that the node is gone. An answer that reaches shared memory before that is still valid. The
  /// two may meet again between two looks, or even before both ends are cut: then the node has been up since after `first_cut`.
  void wait_until_noticed(const cell& now, steady::time_point first_cut) {
    const auto gone = cluster.address(now.name()).id;
    while (steady::now() - struck < detection && !has_noticed(now.caller(), gone, first_cut)) std::this_thread::yield();
  }

  bool has_noticed(const std::string& at, troupe::node_id gone, steady::time_point first_cut) {
    const auto cut_for = steady::now() - first_cut;
    const auto status = at == "driver" ? driver.status() : driver.peer(at).status(1s);
    for (const auto& each : status.peers)
      if (each.who.id == gone) return !each.up || std::chrono::nanoseconds(each.since_ns) < cut_for;
    return true;
  }

  void cut(const std::string& one, const std::string& other) {
    const auto port = other == "driver" ? driver.port() : cluster.address(other).port;
    one == "driver" ? troupe::test::cut_connections_to(port) : shared.scissors.at(one).cut(port);
  }

  void check_error(const cell& now, const std::optional<troupe::error>& end) {
    BOOST_REQUIRE(end.has_value());
    const std::string text = end->what();
    const bool link = now.what == fault::cut_off_from_its_caller;  // the error may name either end
    const bool named =
      text.find("'" + now.name() + "'") != text.npos || (link && text.find("'" + now.caller() + "'") != text.npos);
    BOOST_TEST((end->code() == troupe::errc::peer_down && named), text);
    // A node that dies or is cut off is down at once, before a heartbeat can tell.
    const auto most = now.what == fault::frozen ? detection + busy_machine : 3 * heartbeat;
    BOOST_TEST((over - struck < most), (over - struck) / 1ms << " ms: " << text);
  }

  void check_rest_of_pass(const cell& now, troupe::context& context, const std::optional<troupe::error>& end) {
    check_error(now, end);
    BOOST_TEST(drops_its_tasks(driver));
    BOOST_TEST(drops_its_tasks(driver.peer(now.bystander())));
    check_pass(context, now.bystander());
  }

  template <class Node>
  bool drops_its_tasks(const Node& who) {
    const auto until = steady::now() + busy_machine;
    while (who.status().graph_tasks > 0)
      if (steady::now() > until) return false;
    return true;
  }

  void check_pass(troupe::context& context, const std::string& through) {
    auto y = driver.peer(through).call("go", {x}, {{"next", ""}, {"where", ""}, {"when", ""}}).get().tensors.at(0);
    context.backward({y.sum()}).get();
    BOOST_TEST(at::equal(context.gradient(x), torch::full({2}, 4.0)));
  }

  /// Checks that nothing is left of contexts, passes and calls: on the driver, on the node without a fault, and on the node
  /// with the fault if its process still lives.
  void check_rest(const cell& now) {
    if (now.what == fault::frozen) cluster.signal(now.name(), SIGCONT);
    shared.opened.give();
    BOOST_TEST(cluster.left_on_driver() == "");
    BOOST_TEST(cluster.left_on(now.bystander()) == "");
    if (now.lives_on()) BOOST_TEST(cluster.left_on(now.name()) == "");
  }

  three_nodes& shared = *three_nodes::here;
  troupe::test::process_cluster cluster{shared.processes, settings_of("driver"), {"b", "c"}};
  troupe::node& driver = cluster.driver();
  at::Tensor x = torch::ones({2}, torch::requires_grad());
  steady::time_point struck;
  steady::time_point over;
};

std::unique_ptr<table> playing;

struct with_table {
  with_table() { playing = std::make_unique<table>(); }
  ~with_table() { playing = nullptr; }
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(three_nodes);

BOOST_AUTO_TEST_SUITE(cells, *boost::unit_test::fixture<with_table>())

namespace {

// Each cell is a test case with the name of the cell.
const bool cells_are_known = [] {
  auto& suite = boost::unit_test::framework::current_auto_test_suite();
  for (const auto what : {fault::killed, fault::frozen, fault::cut_off, fault::cut_off_from_its_caller})
    for (const auto whom : {victim::a_peer_of_the_driver, victim::a_peer_of_another_node})
      for (const auto when : {phase::while_a_call_runs_on_it, phase::between_forward_and_backward,
                              phase::before_its_part_of_backward, phase::while_its_function_runs_in_backward}) {
        const cell now{what, whom, when};
        suite.add(boost::unit_test::make_test_case([now] { playing->play(now); }, now.text(), __FILE__, __LINE__));
      }
  return true;
}();

}  // namespace

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
