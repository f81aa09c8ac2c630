// SPDX-License-Identifier: BSD-3-Clause
#include "host_process.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string_view>

#include <ATen/Parallel.h>

#include "apps/process_group.hpp"
#include "processes.hpp"

namespace troupe::bench {

namespace {

std::vector<std::string> arguments_of(const std::string& name, const std::vector<std::string>& node,
                                      const values_by_name& values) {
  std::vector<std::string> all{"process", name};
  all.insert(all.end(), node.begin(), node.end());
  all.emplace_back("--");
  for (const auto& [key, value] : values) all.push_back(key + "=" + value);
  return all;
}

}  // namespace

std::string last_words(hosts::program& of) {
  constexpr std::size_t most = 10;
  const auto lines = of.lines();
  std::string text;
  for (auto i = lines.size() - std::min(lines.size(), most); i < lines.size(); ++i) text += "\n   | " + lines[i];
  return text;
}

host_process::host_process(const hosts::host& on, const std::string& name, const std::vector<std::string>& node,
                           const values_by_name& values)
    : name_(name), program_(on.start(apps::own_program(), arguments_of(name, node, values))) {}

std::uint16_t host_process::ready() { return static_cast<std::uint16_t>(figure("ready", std::chrono::seconds(60))); }

double host_process::figure(const std::string& name, std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  const auto prefix = "figure " + name + " ";
  while (true) {
    for (const auto& line : program_.lines())
      if (line.starts_with(prefix)) return std::stod(line.substr(prefix.size()));
    const auto end = program_.how_it_ends(std::chrono::milliseconds(5));
    if (end != "still runs" || std::chrono::steady_clock::now() > until)
      throw std::runtime_error("expected '" + name + "' of the process '" + name_ + "', but the process " + end +
                               "; it wrote:" + last_words(program_));
  }
}

figures_by_name host_process::figures(std::chrono::seconds patience) {
  if (const auto end = program_.how_it_ends(patience); end != "exited with 0")
    throw std::runtime_error("the process '" + name_ + "' " + end + "; it wrote:" + last_words(program_));
  figures_by_name found;
  for (const auto& line : program_.lines()) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    double value = 0;
    if (words >> kind >> name >> value && kind == "figure") found[name] = value;
  }
  return found;
}

std::vector<std::string> node_options(const std::string& name, int port, const std::vector<std::string>& join) {
  // Hosts never share memory. These processes could, because they are on one machine.
  std::vector<std::string> all{"--name=" + name,     "--host=0.0.0.0",     "--port=" + std::to_string(port),
                               "--no-shared-memory", "--no-direct-memory", "--insecure"};
  for (const auto& address : join) all.push_back("--join=" + address);
  return all;
}

figures_by_name figures_of_two(const hosts::testbed& all, const std::string& process, const values_by_name& values,
                               const std::string& process_of_b) {
  host_process node(all["h2"], process_of_b, node_options("b", port_of_nodes), {});
  node.ready();
  host_process driver(all["h1"], process, node_options("a", 0, {"h2:" + std::to_string(port_of_nodes)}), values);
  return driver.figures();
}

void limit_both(hosts::testbed& all, const std::string& rate) {
  for (const auto* each : {"h1", "h2"}) all.limit_rate(each, rate);
}

int run_process(int argc, char** argv) {
  try {
    if (argc < 3) throw std::runtime_error("expected the name of a process");
    const auto processes = host_processes();
    const auto process = processes.find(argv[2]);
    if (process == processes.end()) throw std::runtime_error("there is no process '" + std::string(argv[2]) + "'");
    char** const separator = std::find(argv + 2, argv + argc, std::string_view("--"));
    process_arguments arguments{settings(static_cast<int>(separator - (argv + 2)), argv + 2), {}};
    for (char** each = separator + 1; each < argv + argc; ++each) {
      const std::string word = *each;
      const auto equals = word.find('=');
      arguments.values[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
    }
    at::set_num_threads(1);
    process->second(arguments);
    return 0;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "hosts_bench, process: %s\n", failed.what());
    return 1;
  }
}

namespace {

std::chrono::system_clock::time_point now() { return std::chrono::system_clock::now(); }

}  // namespace

kits::kits() : authority_(certificates::authority::create(folder_.path() / "authority", "bench", now())) {}

std::string kits::file(const std::string& node, const std::vector<std::string>& addresses) const {
  auto result = (folder_.path() / (node + ".pem")).string();
  if (!std::filesystem::exists(result)) certificates::write_kit(authority_.issue(node, "member", addresses, now()), result);
  return result;
}

std::vector<std::string> kits::options(const std::string& name, int port, const std::vector<std::string>& join) const {
  auto result = node_options(name, port, join);
  std::erase(result, "--insecure");
  result.push_back("--certificates=" + file(name));
  return result;
}

}  // namespace troupe::bench
