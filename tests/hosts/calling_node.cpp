// SPDX-License-Identifier: BSD-3-Clause
/// A node for tests: `calling_node OPTION... -- PEER...` joins, calls each of these peers, and serves until SIGTERM. The options are
/// those of troupe::settings. For each call it prints "NAME called PEER", for a failed one the error. PEER is the name of a node, or
/// NAME*COUNT: then the call has COUNT tensors of 300 KiB, or NAME>OTHER: then the node calls OTHER in turn.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/actors/node.hpp>

namespace {

constexpr auto patience = std::chrono::seconds(20);

troupe::call_reply call_other(troupe::node& here, const std::string& other) { return here.peer(other).call("name").get(); }

void call(troupe::node& here, const std::string& peer) {
  if (const auto arrow = peer.find('>'); arrow != std::string::npos) {
    here.peer(peer.substr(0, arrow), patience).call("call", {}, {{"other", peer.substr(arrow + 1)}}).get();
    return;
  }
  const auto star = std::min(peer.find('*'), peer.size());
  std::vector<at::Tensor> tensors;
  if (star < peer.size()) tensors.assign(std::stoul(peer.substr(star + 1)), at::zeros({300 << 10}, at::kByte));
  for (auto& each : tensors) each = each.clone();  // a tensor that is there twice would leave once
  const auto answer = here.peer(peer.substr(0, star), patience).call("name", tensors).get();
  std::printf("%s called %s\n", here.name().c_str(), troupe::get<std::string>(answer.values, "name").c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigprocmask(SIG_BLOCK, &stop, nullptr);  // before the node starts its threads
  try {
    char** const separator = std::find(argv, argv + argc, std::string_view("--"));
    troupe::settings options(static_cast<int>(separator - argv), argv);
    const auto join = std::exchange(options.join, {});
    troupe::node here(std::move(options));
    here.functions().add("name", [&](troupe::call_arguments&) { return troupe::call_reply{{}, {{"name", here.name()}}}; });
    here.functions().add("call", [&](troupe::call_arguments& arguments) {
      return call_other(here, troupe::get<std::string>(arguments.values, "other"));
    });
    for (const auto& address : join) {
      const auto [host, port] = troupe::parse_address(address);
      here.join(host, port, patience);
    }
    for (char** peer = std::min(separator + 1, argv + argc); peer < argv + argc; ++peer) call(here, *peer);
    int signal = 0;
    sigwait(&stop, &signal);
  } catch (const std::exception& problem) {
    std::printf("calling_node: %s\n", problem.what());
    return 1;
  }
  return 0;
}
