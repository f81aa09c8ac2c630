// SPDX-License-Identifier: BSD-3-Clause
// Runs passes over processes that are killed, stopped or cut off at random moments. A longer run, started by hand:
//   actors_chaos_test -- --passes 2000 --seed 7
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <torch/torch.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "actors/process_cluster.hpp"

using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

constexpr auto heartbeat = 60ms;
constexpr auto detection = 4 * heartbeat;      // three missed heartbeats, and up to one interval before the first of them
constexpr auto most_after_detection = 2500ms;  // one second for an abort without an answer, the rest for a busy machine
constexpr auto hang = 15s;
const std::vector<std::string> workers{"w1", "w2", "w3"};

troupe::settings chaos_settings(const std::string& name) {
  troupe::settings result;
  result.name = name;
  result.heartbeat = heartbeat;
  result.deadline = 2 * hang;  // so long that no deadline ends a pass that hangs
  return result;
}

/// A chain of calls through nodes and back. Each node doubles the tensor. The result of the chain may go unused.
struct route {
  std::vector<std::string> nodes;
  bool used = true;
};

std::string text_of(const std::vector<std::string>& nodes) {
  std::string result;
  for (const auto& each : nodes) result += (result.empty() ? "" : " ") + each;
  return result;
}

std::vector<std::string> nodes_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

troupe::future<troupe::call_reply> go(troupe::node& here, const at::Tensor& x, std::vector<std::string> way) {
  const auto first = way.front();
  way.erase(way.begin());
  return here.peer(first, detection).call("go", {x}, {{"way", text_of(way)}});
}

/// Runs calls, nested calls and a backward pass from node `here`. Throws the error of a call or of the pass, and
/// std::logic_error for wrong gradients.
void run_pass(troupe::node& here, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<route> routes(1 + random() % 3);
  for (auto& each : routes) {
    each.used = &each == routes.data() || random() % 4 != 0;
    for (auto hops = 1 + random() % 3; hops > 0; --hops) each.nodes.push_back(workers[random() % workers.size()]);
  }
  auto x = torch::ones({4}, torch::requires_grad());
  double expected = 0;
  troupe::context pass(here);
  std::vector<troupe::future<troupe::call_reply>> replies;
  for (const auto& each : routes) replies.push_back(go(here, x, each.nodes));
  at::Tensor sum = torch::zeros({4});
  for (std::size_t i = 0; i < routes.size(); ++i) {
    auto y = replies[i].get().tensors.at(0);
    if (!routes[i].used) continue;
    sum = sum + y;
    expected += static_cast<double>(1 << routes[i].nodes.size());
  }
  pass.backward({sum.sum()}).get();
  if (auto gradient = pass.gradient(x); !gradient.defined() || !at::equal(gradient, torch::full({4}, expected)))
    throw std::logic_error("wrong gradients");
}

void add_functions(troupe::node& here) {
  here.functions().add("go", [](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * torch::full({4}, 2.0);
    auto way = nodes_of(troupe::get<std::string>(arguments.values, "way"));
    return troupe::call_reply{{way.empty() ? y : go(arguments.here, y, way).get().tensors.at(0)}};
  });
  here.functions().add("pass", [](troupe::call_arguments& arguments) {
    run_pass(arguments.here, static_cast<std::uint64_t>(troupe::get<std::int64_t>(arguments.values, "seed")));
    return troupe::call_reply{};
  });
  here.functions().add("cut", [](troupe::call_arguments& arguments) {
    troupe::test::cut_connections_to(static_cast<std::uint16_t>(troupe::get<std::int64_t>(arguments.values, "port")));
    return troupe::call_reply{};
  });
}

void be_worker(const std::string& name, std::uint16_t port) {
  auto options = chaos_settings(name);
  options.workers = 2;
  troupe::test::be_node("chaos", std::move(options), port, add_functions);
}

struct fault {
  enum class kind { none, kill, freeze, blink, cut };
  kind what = kind::none;
  std::vector<std::string> on;  // the nodes that have the fault
  std::chrono::microseconds at{0};

  std::string text() const {
    static constexpr const char* names[] = {"nothing", "kill", "freeze", "blink", "cut"};
    std::string result = names[static_cast<int>(what)];
    for (const auto& each : on) result += " " + each;
    return result + " after " + std::to_string(at.count()) + " us";
  }
};

struct counts {
  int passes = 0, succeeded = 0, failed = 0, suspected = 0;
  int hangs = 0, wrong = 0, late = 0, leaks = 0;
};

/// How a pass ended.
struct outcome {
  std::optional<troupe::error> failure;
  std::string wrong;
  clock_type::time_point over;
};

class chaos {
 public:
  chaos(troupe::test::nursery& processes, std::uint64_t seed)
      : random_(seed), cluster_(processes, chaos_settings("driver"), workers) {
    at::set_num_threads(1);
    add_functions(cluster_.driver());
  }

  const counts& result() const { return counts_; }

  /// Runs two passes at the same time, and causes a random fault meanwhile.
  void round() {
    const auto missing = cluster_.meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
    const auto next = draw();
    std::vector<std::thread> threads;
    std::vector<outcome> outcomes(2);
    over_ = 0;
    const auto begin = clock_type::now();
    for (auto& each : outcomes)
      threads.emplace_back([this, &each, from = draw_initiator(), seed = random_()] { run(from, seed, each); });
    const auto struck = strike(next, begin + next.at);
    {
      std::unique_lock lock(mutex_);
      if (!ended_.wait_for(lock, hang, [&] { return over_ == 2; })) {
        ++counts_.hangs;
        std::fprintf(stderr, "chaos: a pass hangs: %s\n", next.text().c_str());
        lock.unlock();
        for (const auto& name : workers) cluster_.signal(name, SIGKILL);
      }
    }
    for (auto& each : threads) each.join();
    for (const auto& each : outcomes) judge(each, next, struck);
    clean_up(next);
  }

 private:
  fault draw() {
    fault next;
    const auto dice = random_() % 100;
    using kind = fault::kind;
    next.what = dice < 15   ? kind::none
                : dice < 55 ? kind::kill
                : dice < 65 ? kind::blink
                : dice < 75 ? kind::freeze
                            : kind::cut;
    next.at = std::chrono::microseconds(random_() % 5000);
    if (next.what == kind::none) return next;
    const auto one = random_() % workers.size();
    next.on = {workers[one]};
    if (next.what == kind::cut) {
      const auto other = random_() % workers.size();
      next.on.push_back(other == one ? "driver" : workers[other]);
    }
    return next;
  }

  std::string draw_initiator() { return random_() % 3 == 0 ? workers[random_() % workers.size()] : "driver"; }

  void run(const std::string& from, std::uint64_t seed, outcome& result) {
    try {
      if (from == "driver")
        run_pass(cluster_.driver(), seed);
      else
        cluster_.driver().peer(from, detection).call("pass", {}, {{"seed", static_cast<std::int64_t>(seed)}}).get();
    } catch (const troupe::error& problem) {
      result.failure = problem;
    } catch (const std::exception& problem) {
      result.wrong = problem.what();
    }
    result.over = clock_type::now();
    std::lock_guard lock(mutex_);
    ++over_;
    ended_.notify_all();
  }

  void wait_until(clock_type::time_point moment) {
    std::unique_lock lock(mutex_);
    ended_.wait_until(lock, moment, [] { return false; });
  }

  clock_type::time_point strike(const fault& next, clock_type::time_point moment) {
    wait_until(moment);
    const auto struck = clock_type::now();
    switch (next.what) {
      case fault::kind::none:
        break;
      case fault::kind::kill:
        cluster_.signal(next.on[0], SIGKILL);
        break;
      case fault::kind::freeze:
        cluster_.signal(next.on[0], SIGSTOP);
        break;
      case fault::kind::blink:
        cluster_.signal(next.on[0], SIGSTOP);
        wait_until(struck + heartbeat / 2);
        cluster_.signal(next.on[0], SIGCONT);
        break;
      case fault::kind::cut:
        cut(next.on[0], next.on[1]);
        cut(next.on[1], next.on[0]);
        break;
    }
    return struck;
  }

  void cut(const std::string& one, const std::string& other) {
    auto& driver = cluster_.driver();
    const auto port = other == "driver" ? driver.port() : cluster_.address(other).port;
    if (one == "driver")
      troupe::test::cut_connections_to(port);
    else
      driver.peer(one).call("cut", {}, {{"port", static_cast<std::int64_t>(port)}});
  }

  void judge(const outcome& how, const fault& next, clock_type::time_point struck) {
    ++counts_.passes;
    if (!how.wrong.empty()) return wrong(next, how.wrong);
    if (!how.failure) {
      ++counts_.succeeded;
      return;
    }
    ++counts_.failed;
    const std::string text = how.failure->what();
    using troupe::errc;
    const auto code = how.failure->code();
    const bool of_nodes = code == errc::peer_down || code == errc::unknown_peer || code == errc::unknown_context;
    bool named = false;
    for (const auto& each : next.on) named |= text.find("'" + each + "'") != std::string::npos;
    if (of_nodes && !named && text.find("no sign of life") != std::string::npos) {
      ++counts_.suspected;  // the machine is so busy that a living node could not answer
      return;
    }
    if (!of_nodes || !named) return wrong(next, text);
    if (how.over - struck < detection + most_after_detection) return;
    ++counts_.late;
    std::fprintf(stderr, "chaos: %lld ms after the fault (%s): %s\n", static_cast<long long>((how.over - struck) / 1ms),
                 next.text().c_str(), text.c_str());
  }

  void wrong(const fault& next, const std::string& text) {
    ++counts_.wrong;
    std::fprintf(stderr, "chaos: wrong end of a pass (%s): %s\n", next.text().c_str(), text.c_str());
  }

  /// Counts what the passes left on every living node. Then replaces each node that may be down in the view of other nodes.
  void clean_up(const fault& next) {
    if (next.what == fault::kind::freeze) cluster_.signal(next.on[0], SIGCONT);
    count_leak(next, "driver", cluster_.left_on_driver());
    for (const auto& name : workers)
      if (next.what != fault::kind::kill || name != next.on[0]) count_leak(next, name, cluster_.left_on(name));
    for (const auto& name : workers) {
      const bool befallen = next.what != fault::kind::none && next.what != fault::kind::blink && name == next.on[0];
      if (befallen || !cluster_.is_up(name)) cluster_.replace(name);
    }
  }

  void count_leak(const fault& next, const std::string& where, const std::string& left) {
    if (left.empty()) return;
    ++counts_.leaks;
    std::fprintf(stderr, "chaos: left on %s after %s: %s\n", where.c_str(), next.text().c_str(), left.c_str());
  }

  std::mt19937_64 random_;
  troupe::test::process_cluster cluster_;
  counts counts_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int over_ = 0;
};

std::uint64_t argument(const std::string& name, std::uint64_t otherwise) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  for (int i = 1; i + 1 < suite.argc; ++i)
    if (suite.argv[i] == name) return std::stoull(suite.argv[i + 1]);
  return otherwise;
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct chaos_nursery {
  chaos_nursery() { processes = &own; }
  troupe::test::nursery own{be_worker};
  static inline troupe::test::nursery* processes = nullptr;
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(chaos_nursery);

BOOST_AUTO_TEST_CASE(no_pass_hangs_lies_or_leaks_whatever_happens_to_its_nodes) {
  const auto passes = argument("--passes", 200);
  const auto seed = argument("--seed", std::random_device{}());
  std::printf("chaos: --passes %llu --seed %llu\n", static_cast<unsigned long long>(passes),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  chaos play(*chaos_nursery::processes, seed);
  for (std::uint64_t i = 0; i < passes; i += 2) play.round();
  const auto& all = play.result();
  std::printf(
    "chaos: %d passes, %d succeeded, %d failed with the right error (%d of them by suspicion); "
    "%d hangs, %d wrong ends, %d late errors, %d leaks\n",
    all.passes, all.succeeded, all.failed - all.wrong - all.late, all.suspected, all.hangs, all.wrong, all.late, all.leaks);
  BOOST_TEST(all.hangs == 0);
  BOOST_TEST(all.wrong == 0);
  BOOST_TEST(all.late == 0);
  BOOST_TEST(all.leaks == 0);
  BOOST_TEST(all.failed > 0);
  BOOST_TEST(all.succeeded > 0);
}
