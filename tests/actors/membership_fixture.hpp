// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/system_messages.hpp>
#include <caf/send.hpp>

#include <troupe/actors/membership/membership.hpp>
#include <troupe/messages/registration.hpp>

#include "actors/deterministic_system.hpp"
#include "support/contains.hpp"

namespace troupe::test {

/// The answer to a request: a value, a failure, or neither while no answer has come.
template <class T>
struct answer {
  std::optional<T> value;
  std::optional<error> failure;
  int count = 0;
};

/// A node that consists of a membership actor and a gateway. The gateway hands all messages on to the membership actor. While
/// `mute` is true, the gateway keeps greetings and heartbeats, which then get no answer.
struct fake_node {
  member who;
  contracts::membership_host membership;
  caf::actor gateway;
  std::shared_ptr<bool> mute = std::make_shared<bool>(false);
  std::vector<std::string> news;
  std::vector<std::string> out_of_reach;  // members, with the reason; without one when that is over
  std::vector<std::string> heard;         // news about members that the node is not connected to
};

inline caf::behavior make_face(caf::event_based_actor* self, contracts::membership_host to, std::shared_ptr<bool> mute) {
  self->set_default_handler(caf::drop);
  return {
    [=](hello& x, caf::strong_actor_ptr& gateway) -> caf::result<welcome> {
      return *mute ? caf::result<welcome>(self->make_response_promise<welcome>())
                   : self->delegate(to, std::move(x), std::move(gateway));
    },
    [=](heartbeat& x) -> caf::result<heartbeat_seen> {
      return *mute ? caf::result<heartbeat_seen>(self->make_response_promise<heartbeat_seen>())
                   : self->delegate(to, std::move(x));
    },
    [=](farewell& x) { self->send(to, std::move(x)); },
    [=](gossip& x) {
      if (!*mute) self->send(to, std::move(x));
    },
  };
}

/// Nodes of a cluster in one actor system. Their membership actors are brokers, as in a node that has a network. Actors run
/// only in run(), and in the functions here that call run().
class fake_cluster {
 public:
  static constexpr std::int64_t ms = 1'000'000;
  static constexpr std::int64_t interval = 100 * ms;
  static constexpr std::int64_t forget_after = 30 * interval;
  static constexpr std::int64_t longest_pause = 31'000 * ms;  // between two dials of a node that is gone

  fake_cluster() {
    connector_ = system.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](caf::connect_atom, const std::string&, std::uint16_t port,
                           std::int64_t) -> caf::result<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> {
        ++dialled;
        if (port == mute_port) return self->make_response_promise<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>();
        if (const auto problem = problems.find(port); problem != problems.end()) return problem->second;
        auto found = ports.find(port);
        if (found == ports.end()) return caf::make_error(caf::sec::cannot_connect_to_node);
        return {self->node(), found->second, std::set<std::string>{}};
      }};
    });
    all_.push_back(connector_);
  }

  ~fake_cluster() {
    for (const auto& actor : all_) caf::anon_send_exit(actor, caf::exit_reason::kill);
    run();
  }

  /// Starts a node that other nodes reach at `port`. The clock of the node is `ahead_ns` ahead of the cluster's clock.
  /// `listen`: whether the node is told to listen.
  fake_node& start(const std::string& name, std::uint64_t id, std::uint16_t port, std::int64_t ahead_ns = 0, bool listen = true,
                   const std::string& host = "127.0.0.1", std::vector<c10::Device> devices = {}) {
    auto& node = *nodes_.emplace_back(std::make_unique<fake_node>());
    node.who = {name, node_id{id}, host, port};
    membership::membership_options options;
    options.self = {name, node_id{id}, host, 0, 0, std::move(devices)};
    options.connector = connector_;
    options.heartbeat = std::chrono::nanoseconds(interval);
    options.forget_after = std::chrono::nanoseconds(forget_after);
    options.patience = std::chrono::nanoseconds(1000 * ms);
    options.clock = [this, ahead_ns] { return now() + ahead_ns; };
    options.has_heard = [this](const caf::node_id&, std::chrono::nanoseconds) { return bytes_come; };
    options.accept = [this](node_id who) { return !accept || accept(who); };
    options.route_to = [this](const caf::node_id&) { return route; };
    node.membership = membership::spawn_membership(system, options);
    auto subscriber = system.spawn([&node](caf::event_based_actor*) -> caf::behavior {
      return {[&node](const contracts::peer_up& x) { node.news.push_back((x.again ? "up again " : "up ") + x.who.name); },
              [&node](const contracts::peer_down& x) {
                node.news.push_back((x.is_gone ? "gone " : "unreachable ") + x.who.name + ": " + x.reason);
              },
              [&node](const contracts::member_out_of_reach& x) { node.out_of_reach.push_back(x.who.name + ": " + x.reason); },
              [&node](const contracts::member_heard& x) { node.heard.push_back((x.is_up ? "up " : "lost ") + x.who.name); }};
    });
    caf::anon_send(node.membership, support::subscribe_atom::value, subscriber);
    for (const auto& actor : {caf::actor_cast<caf::actor>(node.membership), subscriber}) all_.push_back(actor);
    open(node, listen);
    return node;
  }

  /// Gives the node a gateway, at the port of the node.
  void open(fake_node& node, bool listen = true) {
    node.gateway = system.spawn(make_face, node.membership, node.mute);
    all_.push_back(node.gateway);
    const auto gateway = caf::actor_cast<caf::strong_actor_ptr>(node.gateway);
    ports[node.who.port] = gateway;
    if (listen) caf::anon_send(node.membership, support::listen_atom::value, gateway, node.who.port);
    run();
  }
  /// The node does nothing any more; its connections stand.
  void freeze(fake_node& node) {
    *node.mute = true;
    caf::anon_send_exit(node.membership, caf::exit_reason::kill);
    run();
  }
  /// Cuts the connections to the node. The node then has a new gateway, at the same port.
  void cut(fake_node& node) {
    caf::anon_send_exit(node.gateway, caf::exit_reason::remote_link_unreachable);
    open(node);
  }
  /// Ends the node without a farewell, as if its process had ended.
  void end(fake_node& node) {
    ports.erase(node.who.port);
    caf::anon_send_exit(node.membership, caf::exit_reason::kill);
    caf::anon_send_exit(node.gateway, caf::exit_reason::remote_link_unreachable);
    run();
  }

  template <class T, class... Ts>
  std::shared_ptr<answer<T>> ask(const contracts::membership_host& whom, Ts... xs) {
    auto result = std::make_shared<answer<T>>();
    const auto untyped = caf::actor_cast<caf::actor>(whom);
    system.spawn([=](caf::event_based_actor* self) {
      const auto failed = [=](const caf::error& x) {
        result->failure = to_exception(x);
        ++result->count;
      };
      const auto request = self->request(untyped, caf::infinite, xs...);
      if constexpr (std::is_same_v<T, caf::unit_t>)  // the answer is an empty message
        request.then(
          [=] {
            result->value.emplace();
            ++result->count;
          },
          failed);
      else
        request.then(
          [=](const T& x) {
            result->value = x;
            ++result->count;
          },
          failed);
    });
    run();
    return result;
  }

  auto join(const fake_node& who, std::uint16_t port, std::int64_t deadline_ns = 10'000 * ms) {
    return ask<member>(who.membership, support::join_atom::value, std::string("127.0.0.1"), port, deadline_ns);
  }
  /// `wait_ns`: 0: for ever.
  auto join_seeds(const fake_node& who, std::vector<std::string> seeds, std::int64_t wait_ns) {
    return ask<member>(who.membership, support::join_atom::value, std::move(seeds), wait_ns);
  }
  auto find(const fake_node& who, const std::string& name, std::int64_t deadline_ns) {
    return ask<contracts::peer_up>(who.membership, support::find_atom::value, name, deadline_ns);
  }
  std::vector<std::string> peers(const fake_node& who) {
    std::vector<std::string> result;
    const auto members = ask<std::vector<member>>(who.membership, support::list_atom::value);
    for (const auto& x : members->value.value()) result.push_back(x.name);
    return result;
  }

  void run() { all.run(); }
  /// Advances the clock in small steps, and runs after each step what is due.
  void pass(std::int64_t ns) {
    for (std::int64_t left = ns; left > 0; left -= 5 * ms) {
      scheduler.advance_time(caf::timespan(std::min(left, 5 * ms)));
      run();
    }
  }
  std::int64_t now() { return std::chrono::nanoseconds(scheduler.clock().now().time_since_epoch()).count(); }

  deterministic_system all;
  caf::actor_system& system = all.system;
  caf::scheduler::test_coordinator& scheduler = all.scheduler();
  std::map<std::uint16_t, caf::strong_actor_ptr> ports;
  std::map<std::uint16_t, caf::error> problems;  // why a port is not reached
  std::uint16_t mute_port = 9999;
  int dialled = 0;
  bool bytes_come = false;                 // whether the network has bytes from every node, mute or not
  std::optional<membership::route> route;  // to every node
  std::function<bool(node_id)> accept;     // see membership_options; empty: each node

 private:
  caf::actor connector_;
  std::vector<std::unique_ptr<fake_node>> nodes_;
  std::vector<caf::actor> all_;
};

/// Two nodes that do not know each other yet.
struct two_nodes {
  fake_cluster all;
  fake_node& a = all.start("a", 1, 4001);
  fake_node& b = all.start("b", 2, 4002);
};

/// Two nodes of which `b` has joined `a`.
struct joined_nodes : two_nodes {
  joined_nodes() { all.join(b, 4001); }
};

template <class T>
bool failed(const std::shared_ptr<answer<T>>& answer, errc code, const std::string& part) {
  BOOST_TEST_REQUIRE(answer->count == 1);
  BOOST_TEST_REQUIRE(answer->failure.has_value());
  BOOST_TEST(to_text(answer->failure->code()) == to_text(code));
  BOOST_TEST(contains(answer->failure->what(), part), answer->failure->what());
  return answer->failure->code() == code;
}

template <class T>
bool pending(const std::shared_ptr<answer<T>>& answer) {
  return answer->count == 0;
}

}  // namespace troupe::test

#define CHECK_NAMES(left, ...) BOOST_TEST((left) == (std::vector<std::string>{__VA_ARGS__}), boost::test_tools::per_element())
