// SPDX-License-Identifier: BSD-3-Clause
// A tensor to another process and back by PyTorch's RPC on TensorPipe. A program of its own, because a process has one agent.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/op_registration/op_registration.h>
#include <torch/csrc/distributed/rpc/script_call.h>

#include "torch_agent.hpp"

namespace {

using namespace troupe::bench;
namespace rpc = torch::distributed::rpc;

constexpr long most_bytes = 256 << 20;
constexpr int warm_up = 200;
constexpr const char* how_to_call =
  "tensorpipe_echo: expected one of\n"
  "  serve FILE WAY ADDRESS           the side that answers; ends when the other side has\n"
  "  ask FILE WAY ADDRESS BYTES RUNS  the side that asks; prints a line for each run: the microseconds until the answer\n"
  "FILE     the file by which both sides meet, in a folder that exists; must not exist before\n"
  "WAY      tcp or memory\n"
  "ADDRESS  the IPv4 address of this side\n"
  "BYTES    a whole number from 0 to 268435456\n"
  "RUNS     a whole number from 1 on\n";

/// From C++, PyTorch can call only operators on another process.
const auto registered =
  c10::RegisterOperators().op("aten::troupe_bench_echo(Tensor x) -> Tensor", [](const at::Tensor& x) { return x; });

/// The whole number that the word is; -1 if the word is none.
long number_of(const std::string& word) {
  long number = -1;
  const auto* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : -1;
}

/// The name of the interface with this address, by which TensorPipe is told where to listen.
std::string interface_of(const std::string& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) throw std::runtime_error("the interfaces can't be read");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> kept(all, ::freeifaddrs);
  for (const auto* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, text, sizeof text);
    if (address == text) return each->ifa_name;
  }
  throw std::runtime_error("no interface has the address " + address);
}

/// `bytes`: of the tensors, if this side knows it.
std::shared_ptr<rpc::TensorPipeAgent> meet(const std::vector<std::string>& words, int rank, std::optional<long> bytes) {
  ::setenv("TP_SOCKET_IFNAME", interface_of(words[3]).c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  torch_agent_options how{.meeting_file = words[1], .rank = rank};
  if (words[2] == "tcp") {  // two hosts have nothing else; on one host TensorPipe would take shared memory
    how.transports = {"uv"};
    how.channels = {"basic", "mpt_uv"};  // one connection, or several, which are faster from about a MiB on
    if (bytes) how.channels = {*bytes < (1 << 20) ? "basic" : "mpt_uv"};
  }
  return start_torch_agent(how);
}

void measure(rpc::TensorPipeAgent& by, long bytes, long runs) {
  const auto echo = torch_operator("aten::troupe_bench_echo", "");
  const auto& other = by.getWorkerInfo(torch_worker_name(1));
  const auto x = at::ones({bytes}, at::kByte);
  for (long i = -(runs < warm_up ? 3 : warm_up); i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<at::IValue> arguments{x};
    const auto answer = torch_answer(by.send(other, rpc::ScriptCall(echo, std::move(arguments)).toMessage()));
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    if (answer.numel() != x.numel()) throw std::runtime_error("the answer has " + std::to_string(answer.numel()) + " bytes");
    if (i >= 0) std::printf("%.3f\n", taken.count());
  }
}

int run(const std::vector<std::string>& words) {
  const bool asks = words.size() == 6 && words[0] == "ask";
  const bool serves = words.size() == 4 && words[0] == "serve";
  const long bytes = asks ? number_of(words[4]) : 0;
  const long runs = asks ? number_of(words[5]) : 1;
  if (!(asks || serves) || !(words[2] == "tcp" || words[2] == "memory") || bytes < 0 || bytes > most_bytes || runs < 1) {
    std::fputs(how_to_call, stderr);
    return 2;
  }
  if (!std::filesystem::is_directory(std::filesystem::absolute(words[1]).parent_path()))
    throw std::runtime_error("expected a file in a folder that exists, got " + words[1]);
  const auto agent = meet(words, asks ? 0 : 1, asks ? std::optional(bytes) : std::nullopt);
  if (asks) measure(*agent, bytes, runs);
  stop_torch_agent(agent);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const c10::Error& failed) {
    std::fprintf(stderr, "tensorpipe_echo: %s\n", failed.what_without_backtrace());
    return 1;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "tensorpipe_echo: %s\n", failed.what());
    return 1;
  }
}
