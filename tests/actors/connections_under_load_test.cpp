// SPDX-License-Identifier: BSD-3-Clause
// Many calls at once over a connection between two processes: on loopback by shared memory and by TCP, and between two network
// namespaces. Also: after a process was killed, its port can be used again.
#include <boost/test/unit_test.hpp>

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_behavior.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/process_cluster.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(connections_under_load)

namespace {

using troupe::test::becomes_true;
using troupe::test::loopback_settings;

constexpr int calls = 200;
constexpr std::int64_t call_bytes = 300 << 10;
constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// The two ends of a wire between two network namespaces. The near end is in the namespace of the tests. Its name and the
/// addresses depend on the id of this process, so that several test processes may run at once. Forked processes get a copy.
struct wire_ends {
  std::string near_name = "tr" + std::to_string(::getpid());
  std::string near_address = address(1);
  std::string far_address = address(2);

  static std::string address(int end) {
    const int pid = ::getpid();
    return "10." + std::to_string(213 + (pid >> 14) % 8) + "." + std::to_string((pid >> 6) % 256) + "." +
           std::to_string(pid % 64 * 4 + end);
  }
};
const wire_ends wire;

/// The bytes that the C library has given to this process and that were not freed.
std::size_t memory_in_use() {
  const auto all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}

troupe::settings settings_of(const std::string& name) {
  auto result = loopback_settings(name);
  result.shared_memory = name != "by_tcp";
  return result;
}

troupe::settings everywhere(const std::string& name) {
  auto result = settings_of(name);
  result.host = "0.0.0.0";
  result.insecure = true;
  return result;
}

struct far_signals {
  troupe::test::shared_signal is_apart;
  troupe::test::shared_signal may_go_on;
};
far_signals* far_side = nullptr;

void add_functions(troupe::node& here) {
  here.functions().add("size", [](troupe::call_arguments& arguments) {
    return troupe::call_reply{{}, {{"bytes", static_cast<std::int64_t>(arguments.tensors.at(0).nbytes())}}};
  });
  here.functions().add("echo", [](troupe::call_arguments& arguments) { return troupe::call_reply{arguments.tensors}; });
  here.functions().add("held", [](troupe::call_arguments& arguments) {  // the first call waits until the driver lets it go on
    static std::once_flag once;
    std::call_once(once, [] { far_side->may_go_on.take(); });
    return troupe::call_reply{{}, {{"bytes", static_cast<std::int64_t>(arguments.tensors.at(0).nbytes())}}};
  });
  here.functions().add("memory", [](troupe::call_arguments&) {
    return troupe::call_reply{{}, {{"bytes", static_cast<std::int64_t>(memory_in_use())}}};
  });
}

using store_actor = caf::typed_actor<caf::replies_to<std::string>::with<std::uint64_t>>;

/// Publishes two actors that answer with the size of what they get.
void add_actors(troupe::node& here) {
  for (const auto* name : {"store", "other store"}) {
    const store_actor made = here.system().spawn(
      [] { return store_actor::behavior_type{[](const std::string& what) { return std::uint64_t{what.size()}; }}; });
    here.publish(name, caf::actor_cast<caf::strong_actor_ptr>(made));
  }
}

/// Makes small calls until the large call is answered. Returns how long nine tenths of the small calls took at most.
std::chrono::milliseconds small_calls_beside(troupe::future<troupe::call_reply>& large, troupe::peer& there) {
  std::vector<std::chrono::milliseconds> took;
  while (!large.ready()) {
    const auto begin = std::chrono::steady_clock::now();
    there.call("memory").get();
    took.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin));
  }
  large.get();
  BOOST_TEST_REQUIRE(took.size() >= 10u);
  std::sort(took.begin(), took.end());
  return took[took.size() * 9 / 10];
}

bool run_command(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

/// Runs the node of the far process, in a network namespace of its own. A wire connects this namespace with the namespace of
/// the driver. The wire is gone when the process ends.
void be_far_process(const std::string& name, std::uint16_t port) {
  if (::unshare(CLONE_NEWNET) != 0) return;
  far_side->is_apart.give();
  far_side->may_go_on.take();
  if (!run_command("ip link set lo up && ip addr add " + wire.far_address + "/30 dev tr_far && ip link set tr_far up")) return;
  try {
    auto options = settings_of(name);
    options.host = wire.far_address;
    options.insecure = true;
    troupe::node here(std::move(options));
    add_functions(here);
    add_actors(here);
    here.join(wire.near_address, port, 10s);
    troupe::test::wait_to_be_killed();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "connections under load: process %s: %s\n", name.c_str(), problem.what());
  }
}

/// The signals of a listener process. The process gives `listens` when its node listens at the port. The process gives
/// `is_refused` if the node can't listen at the port.
struct listener_signals {
  troupe::test::shared_signal listens;
  troupe::test::shared_signal is_refused;
};
listener_signals* listening = nullptr;

void be_listener(const std::string& name, std::uint16_t port) {
  try {
    auto options = name == "everywhere" ? everywhere(name) : settings_of(name);
    options.port = port;
    troupe::node here(std::move(options));
    add_functions(here);
    listening->listens.give();
    troupe::test::wait_to_be_killed();
  } catch (const troupe::error& problem) {
    if (troupe::test::contains(problem.what(), "can't listen")) listening->is_refused.give();
    troupe::test::wait_to_be_killed();
  }
}

void be_process(const std::string& name, std::uint16_t port) {
  if (name == "far") return be_far_process(name, port);
  if (name == "listener" || name == "everywhere") return be_listener(name, port);
  troupe::test::be_node("connections under load", settings_of(name), port, add_functions);
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct shared_nursery {
  shared_nursery() {
    far_side = &far;
    listening = &ports;
    processes = std::make_unique<troupe::test::nursery>(be_process);
  }
  ~shared_nursery() { processes.reset(); }
  far_signals far;
  listener_signals ports;
  static inline std::unique_ptr<troupe::test::nursery> processes;
};

/// Calls of the driver to the node `other` that are not answered yet. `news` has the nodes that went down, as the driver
/// reports them.
struct burst {
  troupe::node& driver;
  std::string other;
  std::mutex mutex;
  std::string news;
  std::vector<troupe::future<troupe::call_reply>> under_way;

  burst(troupe::node& from, std::string to) : driver(from), other(std::move(to)) {
    driver.on_peer_down([this](const std::string& name, const std::string& reason) {
      std::lock_guard lock(mutex);
      news += name + ": " + reason + "; ";
    });
  }
  ~burst() { driver.on_peer_down({}); }

  void call(const std::string& function, int times = calls) {
    const auto x = at::ones({call_bytes}, at::kByte);
    auto there = driver.peer(other);
    for (int i = 0; i < times; ++i) under_way.push_back(there.call(function, {x}));
  }
  /// Waits until every call has ended. Returns how many were answered.
  int finish() {
    int answered = 0;
    for (auto& each : under_way) try {
        each.get();
        ++answered;
      } catch (const troupe::error& failed) {
        if (answered == 0) BOOST_TEST_MESSAGE(failed.what());
      }
    under_way.clear();
    return answered;
  }
  std::string heard() {
    std::lock_guard lock(mutex);
    return news;
  }
  void check_that_nobody_goes_down() {
    for (const auto* function : {"size", "echo"}) {
      const auto begin = std::chrono::steady_clock::now();
      call(function);
      BOOST_TEST(finish() == calls);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      BOOST_TEST_MESSAGE(calls << " calls of '" << function << "' took " << took.count() << " s");
    }
    BOOST_TEST(heard() == "");
  }
  std::int64_t memory_there() { return troupe::get<std::int64_t>(driver.peer(other).call("memory").get().values, "bytes"); }
};

struct pair : troupe::test::process_cluster {
  explicit pair(const std::string& name, const troupe::settings& driver = settings_of("driver"))
      : process_cluster(*shared_nursery::processes, driver, {name}) {
    const auto missing = meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
  }
};

/// A process in a network namespace of its own, and a wire to that namespace.
class far_process {
 public:
  explicit far_process(troupe::node& driver) : pid_(shared_nursery::processes->start("far", driver.port())) {
    BOOST_REQUIRE(far_side->is_apart.take_within(20s));
    const auto pid = std::to_string(pid_);
    BOOST_REQUIRE(run_command("ip link add " + wire.near_name + " type veth peer name tr_far netns " + pid));
    BOOST_REQUIRE(run_command("ip addr add " + wire.near_address + "/30 dev " + wire.near_name + " && ip link set " +
                              wire.near_name + " up"));
  }
  ~far_process() {
    ::kill(pid_, SIGKILL);
    run_command("ip link del " + wire.near_name);
  }
  void slow_down(const std::string& rate) const {
    BOOST_REQUIRE(run_command("tc qdisc add dev " + wire.near_name + " root tbf burst 512k limit 4m rate " + rate));
  }
  far_process(const far_process&) = delete;
  far_process& operator=(const far_process&) = delete;

 private:
  pid_t pid_;
};

boost::test_tools::assertion_result can_do(const char* command, const char* what) {
  boost::test_tools::assertion_result result(run_command(std::string("unshare --net sh -c '") + command + "'"));
  if (!result) {
    result.message() << what;
    std::printf("SKIPPED: %s\n", what);
  }
  return result;
}

/// Whether this user may make network namespaces and wires between them.
boost::test_tools::assertion_result makes_namespaces(boost::unit_test::test_unit_id) {
  return can_do("ip link add tr_near type veth peer name tr_far",
                "no network namespaces here; that takes root and the program ip (Debian's package iproute2)");
}

boost::test_tools::assertion_result makes_slow_wires(boost::unit_test::test_unit_id) {
  return can_do(
    "ip link add tr_near type veth peer name tr_far && tc qdisc add dev tr_near root tbf burst 512k limit 4m rate 300mbit",
    "no slow wires here; that takes network namespaces and the kernel's token bucket filter");
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

BOOST_AUTO_TEST_CASE(many_calls_under_way_by_shared_memory_take_nobody_down) {
  pair cluster("by_memory");
  burst(cluster.driver(), "by_memory").check_that_nobody_goes_down();
}

BOOST_AUTO_TEST_CASE(many_calls_under_way_by_tcp_take_nobody_down) {
  pair cluster("by_tcp");
  burst(cluster.driver(), "by_tcp").check_that_nobody_goes_down();
}

BOOST_AUTO_TEST_CASE(many_calls_under_way_between_two_network_namespaces_take_nobody_down,
                     *boost::unit_test::label("namespaces") * boost::unit_test::precondition(makes_namespaces)) {
  troupe::node driver(everywhere("driver"));
  const far_process far(driver);
  far_side->may_go_on.give();
  driver.peer("far", 20s);
  burst(driver, "far").check_that_nobody_goes_down();
}

BOOST_AUTO_TEST_CASE(many_calls_under_way_on_a_slow_wire_take_nobody_down,
                     *boost::unit_test::label("slow_wires") * boost::unit_test::precondition(makes_slow_wires)) {
  troupe::node driver(everywhere("driver"));
  const far_process far(driver);
  far.slow_down("300mbit");  // 1.6 s for the calls, longer than three heartbeats
  far_side->may_go_on.give();
  driver.peer("far", 20s);
  burst(driver, "far").check_that_nobody_goes_down();
}

// TS-8: at 100 Mbit/s each of the two large messages is under way for more than two seconds.
BOOST_AUTO_TEST_CASE(small_messages_get_through_between_the_fragments_of_large_ones,
                     *boost::unit_test::label("slow_wires") * boost::unit_test::precondition(makes_slow_wires)) {
  troupe::node driver(everywhere("driver"));
  const far_process far(driver);
  far.slow_down("100mbit");
  far_side->may_go_on.give();
  auto there = driver.peer("far", 20s);

  // Tensors that leave in pieces, and those of a message. Without small pieces on a slow way a small call would take 84 ms.
  for (const auto& [each, limit] : {std::pair{call_bytes, 60ms}, std::pair{std::int64_t{32} << 10, 400ms}}) {
    std::vector<at::Tensor> many;
    for (std::int64_t bytes = 0; bytes < 30 << 20; bytes += each) many.push_back(at::ones({each}, at::kByte));
    auto large_call = there.call("size", many);
    const auto took = small_calls_beside(large_call, there);
    BOOST_TEST_MESSAGE("beside tensors of " << each << " bytes: " << took.count() << " ms");
    BOOST_TEST((took <= limit), took.count() << " ms beside tensors of " << each << " bytes");
  }

  caf::scoped_actor self{driver.system()};
  const auto store = caf::actor_cast<store_actor>(there.actor("store"));
  const auto other = caf::actor_cast<store_actor>(there.actor("other store"));
  auto request = self->request(store, 20s, std::string(std::size_t{30} << 20, 'x'));
  for (int i = 0; i < 10; ++i)
    self->request(other, 500ms, std::string("x"))
      .receive([](std::uint64_t size) { BOOST_TEST(size == 1U); },
               [](const caf::error& why) { BOOST_ERROR(troupe::to_exception(why).what()); });
  request.receive([](std::uint64_t size) { BOOST_TEST(size == std::uint64_t{30} << 20); },
                  [](const caf::error& why) { BOOST_ERROR(troupe::to_exception(why).what()); });
}

BOOST_AUTO_TEST_CASE(after_a_burst_both_ends_give_the_memory_of_their_buffers_back) {
  for (const auto* name : {"by_memory", "by_tcp"}) {
    pair cluster(name);
    burst calls_of(cluster.driver(), name);
    calls_of.call("echo", 1);
    BOOST_TEST(calls_of.finish() == 1);
    const auto here = memory_in_use();
    const auto there = calls_of.memory_there();
    calls_of.call("echo");
    BOOST_TEST(calls_of.finish() == calls);
    auto peer = cluster.driver().peer(name);
    for (int i = 0; i < 100; ++i) peer.call("memory").get();
    BOOST_TEST(memory_in_use() < here + 2 * mebibyte, name << ": " << here << " before, " << memory_in_use() << " after");
    const auto there_after = calls_of.memory_there();
    BOOST_TEST(there_after < there + static_cast<std::int64_t>(2 * mebibyte),
               name << ": " << there << " there before, " << there_after << " after");
  }
}

// OG-2: 64 calls of 1 MiB to a node that answers none, with a limit of 16 MiB.
BOOST_AUTO_TEST_CASE(a_peer_that_does_not_keep_up_slows_who_calls_it) {
  constexpr std::size_t limit = 16 * mebibyte;
  for (const auto* name : {"by_memory", "by_tcp"}) {
    auto options = settings_of("driver");
    options.send_limit = limit;
    pair cluster(name, options);
    auto& driver = cluster.driver();
    auto peer = driver.peer(name);
    const auto here = memory_in_use();
    const auto there = troupe::get<std::int64_t>(peer.call("memory").get().values, "bytes");
    const auto x = at::ones({1 << 20}, at::kByte);
    auto all = std::async(std::launch::async, [&] {
      std::vector<troupe::future<troupe::call_reply>> replies;
      for (int i = 0; i < 64; ++i) replies.push_back(peer.call("held", {x}));
      return replies;
    });
    const auto is_full = [&] { return driver.status().calls_waiting == 16; };  // 15 are under way, and one waits to leave
    BOOST_TEST(becomes_true(is_full, 20s));
    try {
      peer.call("held", {x}, {}, {}, 1ms).get();
      BOOST_ERROR("a call beyond the limit was answered");
    } catch (const troupe::error& busy) {
      BOOST_TEST((busy.code() == troupe::errc::busy));
      BOOST_TEST(troupe::test::contains(busy.what(), "did not keep up within 0.001 s"), busy.what());
      BOOST_TEST(troupe::test::contains(busy.what(), "settings::send_limit is 16777216"), busy.what());
    }
    BOOST_TEST(is_full());
    BOOST_TEST(memory_in_use() < here + 2 * limit);
    far_side->may_go_on.give();
    for (const auto& each : all.get()) each.get();
    const auto there_after = troupe::get<std::int64_t>(peer.call("memory").get().values, "bytes");
    BOOST_TEST(there_after < there + static_cast<std::int64_t>(2 * limit));
  }
}

BOOST_AUTO_TEST_CASE(what_was_to_leave_for_a_peer_goes_with_it) {
  for (const auto* name : {"by_memory", "by_tcp"}) {
    pair cluster(name);
    burst calls_of(cluster.driver(), name);
    calls_of.call("size", 1);
    BOOST_TEST(calls_of.finish() == 1);
    const auto before = memory_in_use();
    troupe::test::freeze(cluster.pid(name));
    const auto begin = std::chrono::steady_clock::now();
    calls_of.call("size");
    BOOST_TEST(calls_of.finish() == 0);
    BOOST_TEST(becomes_true([&] { return calls_of.heard() != ""; }, 5s));  // the news may come after the errors of the calls
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    BOOST_TEST_MESSAGE("the frozen peer is down after " << waited.count() << " s");
    BOOST_TEST(waited.count() < 5);
    BOOST_TEST(becomes_true([&] { return memory_in_use() < before + 4 * mebibyte; }, 20s),
               name << ": " << before << " before, " << memory_in_use() << " after");
  }
}

BOOST_AUTO_TEST_CASE(a_port_is_free_again_as_soon_as_its_node_was_killed) {
  std::uint16_t port = 0;
  {
    troupe::node finder(loopback_settings("finder"));  // the system chooses a free port
    port = finder.port();
  }
  pid_t pid = shared_nursery::processes->start("listener", port);
  BOOST_REQUIRE(listening->listens.take_within(20s));
  for (int round = 0; round < 3; ++round) {
    troupe::node caller(loopback_settings("caller"));
    caller.join("127.0.0.1", port, 10s);
    caller.peer("listener").call("memory").get();
    ::kill(pid, round == 1 ? SIGTERM : SIGKILL);
    BOOST_TEST(becomes_true([&] { return ::kill(pid, 0) != 0; }, 20s));
    pid = shared_nursery::processes->start("listener", port);  // while the caller's connection ends
    BOOST_TEST(listening->listens.take_within(20s));
  }
  ::kill(pid, SIGKILL);
}

BOOST_AUTO_TEST_CASE(a_port_where_somebody_listens_is_taken) {
  troupe::node first(loopback_settings("first"));
  for (const auto* name : {"listener", "everywhere"}) {
    const pid_t pid = shared_nursery::processes->start(name, first.port());
    BOOST_TEST(listening->is_refused.take_within(20s), name);
    ::kill(pid, SIGKILL);
  }
  troupe::node wide(everywhere("wide"));
  const pid_t pid = shared_nursery::processes->start("listener", wide.port());
  BOOST_TEST(listening->is_refused.take_within(20s));
  ::kill(pid, SIGKILL);
}

BOOST_AUTO_TEST_SUITE_END()
