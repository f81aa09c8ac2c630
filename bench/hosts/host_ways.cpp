// SPDX-License-Identifier: BSD-3-Clause
#include "host_ways.hpp"

#include "../support/peers.hpp"
#include "../support/scratch_folder.hpp"
#include "processes.hpp"

namespace troupe::bench {

using hosts::testbed;

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string list;
  for (const auto number : numbers) list += (list.empty() ? "" : ",") + std::to_string(number);
  return list;
}

way way::of_troupe(std::string name, role as, const kits* proofs) {
  const auto options = [=](const std::string& node, int at, const std::vector<std::string>& join) {
    return proofs != nullptr ? proofs->options(node, at, join) : node_options(node, at, join);
  };
  return {
    std::move(name), as, "node", "", options("b", port_of_nodes, {}), options("a", 0, {"h2:" + std::to_string(port_of_nodes)})};
}

figures_by_name way::figures(const testbed& all, const std::string& name_of_process, values_by_name values) const {
  host_process other(all["h2"], other_side, options_there, {{"listen", all["h2"].ipv4()}});
  values["address"] = all["h2"].ipv4();
  values["port"] = std::to_string(other.ready());
  host_process driver(all["h1"], prefix + name_of_process, options_here, values);
  return driver.figures();
}

namespace {

/// The figures "sizes" of gRPC. `kit`: empty without TLS.
figures_by_name sizes_of_grpc(const testbed& all, const std::string& kit, const std::vector<std::int64_t>& sizes,
                              std::int64_t bytes) {
  const auto with_kit = [&](std::vector<std::string> words) {
    if (!kit.empty()) words.push_back(kit);
    return words;
  };
  auto server = all["h2"].start(grpc_program(), with_kit({"serve", all["h2"].ipv4()}));
  const std::string word = "port ";
  const auto line = server.line_that([&](const std::string& text) { return text.starts_with(word); });
  if (line.empty()) throw std::runtime_error("expected a port of grpc_echo; it wrote:" + last_words(server));
  const auto address = all["h2"].ipv4() + ":" + line.substr(word.size());
  figures_by_name found;
  for (const auto size : sizes) {
    const auto runs = runs_of_size(size, bytes);
    auto asking = all["h1"].start(grpc_program(), with_kit({"ask", address, std::to_string(size), std::to_string(runs)}));
    if (const auto end = asking.how_it_ends(longest_process); end != "exited with 0")
      throw std::runtime_error("grpc_echo " + end + "; it wrote:" + last_words(asking));
    found.merge(figures_of_size(size, times_of_echo("grpc_echo", asking.lines(), runs)));
  }
  return found;
}

/// The figures "sizes" of PyTorch's RPC on TensorPipe.
figures_by_name sizes_of_tensorpipe(const testbed& all, const std::vector<std::int64_t>& sizes, std::int64_t bytes) {
  figures_by_name found;
  for (const auto size : sizes) {
    const scratch_folder folder;
    const auto at = [&](const std::string& host, const std::string& side, std::vector<std::string> more) {
      more.insert(more.begin(), {side, folder.path() / "meeting", "tcp", all[host].ipv4()});
      return all[host].start(tensorpipe_program(), more);
    };
    const auto runs = runs_of_size(size, bytes);
    auto server = at("h2", "serve", {});
    auto asking = at("h1", "ask", {std::to_string(size), std::to_string(runs)});
    if (const auto end = asking.how_it_ends(longest_process); end != "exited with 0")
      throw std::runtime_error("tensorpipe_echo " + end + "; it wrote:" + last_words(asking) +
                               "\nand the side that answers:" + last_words(server));
    found.merge(figures_of_size(size, times_of_echo("tensorpipe_echo", asking.lines(), runs)));
  }
  return found;
}

sizes_of_way sizes_of(const testbed& all, const way& each) {
  return {each.name, each.as, [&all, each](const std::vector<std::int64_t>& sizes, std::int64_t bytes) {
            return each.figures(all, "sizes", {{"sizes", list_of(sizes)}, {"bytes", std::to_string(bytes)}});
          }};
}

sizes_of_way grpc(const testbed& all, const std::string& name, const std::string& kit) {
  return {name, role::peer, [&all, kit](const std::vector<std::int64_t>& sizes, std::int64_t bytes) {
            return sizes_of_grpc(all, kit, sizes, bytes);
          }};
}

}  // namespace

std::vector<sizes_of_way> plain_ways(const testbed& all) {
  std::vector<sizes_of_way> result{sizes_of(all, way::of_tcp()), sizes_of(all, way::of_caf())};
  if (has_grpc()) result.push_back(grpc(all, "a call of gRPC", ""));
  result.push_back({"a call of TensorPipe", role::peer, [&all](const std::vector<std::int64_t>& sizes, std::int64_t bytes) {
                      return sizes_of_tensorpipe(all, sizes, bytes);
                    }});
  result.push_back(sizes_of(all, way::of_troupe("a call of troupe over TCP", role::troupe, nullptr)));
  return result;
}

std::vector<sizes_of_way> ways(const testbed& all, const kits& proofs) {
  auto result = plain_ways(all);
  if (has_grpc()) result.push_back(grpc(all, "a call of gRPC over TLS", proofs.file("grpc", {all["h2"].ipv4()})));
  result.push_back(sizes_of(all, way::of_troupe("a call of troupe over TLS", role::variant, &proofs)));
  return result;
}

}  // namespace troupe::bench
