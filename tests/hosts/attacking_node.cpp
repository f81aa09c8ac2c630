// SPDX-License-Identifier: BSD-3-Clause
/// Attacks on a node: `attacking_node ADDRESS PORT NAME KIT VICTIM`. The node NAME listens at ADDRESS and PORT. VICTIM is another node of
/// the cluster, in whose name this program speaks. The program prints a line for each attack: what it tried, and what came of it.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/gate/liar.hpp"
#include "support/hostile_client.hpp"

namespace {

using namespace troupe;
using test::hostile_client;
using test::liar;

struct target {
  std::string address;
  std::uint16_t port = 0;
  std::string name;
  std::string kit;
  std::string victim;
};

void tell(const std::string& attack, const std::string& outcome) {
  std::printf("%s: %s\n", attack.c_str(), outcome.c_str());
  std::fflush(stdout);
}

void send_bytes(const target& at) {
  hostile_client client(at.address, at.port, at.kit, 1);
  network::message_head large;
  large.payload = ~std::uint32_t{0};
  std::string header(network::message_head::bytes, '\0');
  large.write(header.data());
  const auto outcome = [](bool closed) { return closed ? "closed" : "the connection goes on"; };
  for (const bool proven : {false, true}) {
    const std::string when = proven ? " after the proof" : " without a proof";
    tell("32 bytes" + when, outcome(client.is_closed_after(std::string(32, '\xff'), proven)));
    tell("a header of 4 GiB" + when, outcome(client.is_closed_after(header, proven)));
  }
  client.play(2000);
  tell("2000 hostile inputs", "played");
}

/// What a node with a kit tries by troupe's own interface. Returns the id of the victim.
node_id call_what_is_not_allowed(const target& at) {
  settings with;
  with.name = "mallory";
  with.host = "0.0.0.0";
  with.certificates = at.kit;
  with.log_level = severity::off;
  node own(std::move(with));
  own.join(at.address, at.port);
  const auto there = own.peer(at.name);
  const auto attack = [&](const std::string& what, const std::function<void()>& act) {
    try {
      act();
      tell(what, "done");
    } catch (const error& problem) {
      tell(what, problem.what());
    }
  };
  attack("allowed call", [&] { there.call("name").get(); });
  attack("call", [&] { there.call("secret").get(); });
  attack("script", [&] {
    torch::jit::Module script("Nothing");
    script.define("def forward(self, x):\n  return x\n");
    create_script(there, script);
  });
  attack("file", [&] { node_access::ask(there, requests::save{"", "../../etc/passwd"}).get(); });
  for (const auto* folder : {"../outside", "/outside", "link"})
    attack(std::string("folder ") + folder, [&] {
      node_access::ask(there, requests::remove{"0123456789abcdef", folder, true}).get();
    });
  attack("weights", [&] { node_access::ask(there, requests::read{}).get(); });
  attack("status", [&] { there.status(); });
  return own.peer(at.victim, liar::patience).status().self.id;
}

/// What an actor system with a kit tries that says what no node says.
void lie(const target& at, node_id victim) {
  liar mallory(at.kit);
  caf::scoped_actor self{mallory.system};
  const auto gateway = mallory.gateway_at(at.port, at.address);
  const auto attack = [&](const std::string& what, auto&&... message) {
    std::string outcome = "done";
    self->request(gateway, liar::patience, std::forward<decltype(message)>(message)...)
      .receive([](const caf::message&) {}, [&](const caf::error& problem) { outcome = to_exception(problem).what(); });
    tell(what, outcome);
  };
  self->send(gateway, farewell{victim, "forged"});
  attack("forged heartbeat", heartbeat{victim, 1});
  attack("forged mark", request_mark{victim, 1});
  call_request call;
  call.what = requests::function{"secret"};
  call.payload.message.node = victim;
  attack("forged call", call);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 6) throw std::runtime_error("expected ADDRESS PORT NAME KIT VICTIM");
    const target at{argv[1], static_cast<std::uint16_t>(std::stoi(argv[2])), argv[3], argv[4], argv[5]};
    send_bytes(at);
    lie(at, call_what_is_not_allowed(at));
    tell("end", "all attacks were played");
  } catch (const std::exception& problem) {
    std::printf("attacking_node: %s\n", problem.what());
    return 1;
  }
  return 0;
}
