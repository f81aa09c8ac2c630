// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/testbed.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <stdexcept>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "apps/ready_line.hpp"

namespace troupe::hosts {

namespace {

constexpr const char* mark = "troupe-test-";  // every namespace of a testbed begins so; the process number follows
const std::filesystem::path namespaces = "/run/netns";
const std::filesystem::path files_of_namespaces = "/etc/netns";  // `ip netns exec` shows NAME/FILE as /etc/FILE

/// Runs the lines as a shell script that ends at the first error.
void run(const std::string& script) {
  FILE* shell = ::popen(("exec 2>&1; set -e\n" + script).c_str(), "re");
  if (shell == nullptr) throw std::runtime_error("no shell can be started");
  std::string output;
  char part[256];
  while (std::fgets(part, sizeof part, shell) != nullptr) output += part;
  if (const int status = ::pclose(shell); status != 0)
    throw std::runtime_error("expected these commands to succeed:\n" + script + "they said: " + output);
}

bool lives(const std::string& net_namespace) {
  pid_t owner = 0;
  const auto* begin = net_namespace.data() + std::string_view(mark).size();
  std::from_chars(begin, net_namespace.data() + net_namespace.size(), owner);
  return owner > 0 && (::kill(owner, 0) == 0 || errno != ESRCH);
}

/// The namespaces, or folders of files, whose names begin with `prefix`.
std::vector<std::string> names_in(const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator(folder, none))
    if (const auto name = each.path().filename().string(); name.starts_with(prefix)) found.push_back(name);
  return found;
}

void remove(const std::string& net_namespace) noexcept {
  std::error_code ignored;
  try {
    if (std::filesystem::exists(namespaces / net_namespace, ignored)) run("ip netns del " + net_namespace + "\n");
  } catch (const std::exception& problem) {  // another process may have removed it meanwhile
    std::fprintf(stderr, "hosts: %s\n", problem.what());
  }
  std::filesystem::remove_all(files_of_namespaces / net_namespace, ignored);
}

void remove_what_the_dead_left() {
  for (const auto& folder : {namespaces, files_of_namespaces})
    for (const auto& name : names_in(folder, mark))
      if (!lives(name)) remove(name);
}

std::string interface_of(int network) { return "eth" + std::to_string(network); }
std::string plug_of(const host& which, int network) { return which.name() + "." + std::to_string(network); }
std::string bridge_of(int network) { return "bridge" + std::to_string(network); }

boost::test_tools::assertion_result succeeds(const char* needs, const std::function<void()>& what) {
  try {
    what();
    return true;
  } catch (const std::exception& problem) {
    boost::test_tools::assertion_result result(false);
    result.message() << needs << ": " << problem.what();
    std::printf("SKIPPED: %s; %s\n", needs, problem.what());
    return result;
  }
}

}  // namespace

std::string host::ipv4(int network) const { return "10.77." + std::to_string(network) + "." + std::to_string(number_); }

std::string host::ipv6(int network) const { return "fd77:" + std::to_string(network + 1) + "::" + std::to_string(number_); }

program host::troupe(std::vector<std::string> arguments) const {
  const auto has = [&](const char* option) { return std::find(arguments.begin(), arguments.end(), option) != arguments.end(); };
  const bool connects = !arguments.empty() && (arguments[0] == "node" || arguments[0] == "train" || arguments[0] == "status");
  if (connects && !has("--certificates") && !has("--insecure")) arguments.emplace_back("--insecure");
  return start(apps::test::program_under_test(), arguments);
}

program host::start(const std::string& file, const std::vector<std::string>& arguments) const {
  // Each of these programs becomes the next one, so signals reach the last one.
  std::vector<std::string> all{"netns", "exec", net_namespace_, "sh", "-c", "cd \"$0\" && exec \"$@\"", folder_.string(), file};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return program(std::move(all), "ip");
}

nlohmann::json host::status(const std::string& address) const {
  auto asking = troupe({"status", address, "--json"});
  if (asking.how_it_ends() != "exited with 0") throw std::runtime_error("no status of " + address + ": " + asking.text());
  return nlohmann::json::parse(asking.text());
}

testbed::testbed(const std::vector<std::string>& names) {
  static std::atomic<int> count{0};
  remove_what_the_dead_left();
  prefix_ = mark + std::to_string(::getpid()) + "-" + std::to_string(++count) + "-";
  switch_ = prefix_ + "switch";
  try {
    run("ip netns add " + switch_ + "\n");
    for (const auto& name : names) {
      const host& added = hosts_.emplace_back(name, static_cast<int>(hosts_.size()) + 1, prefix_ + name, folder_.path() / name);
      std::filesystem::create_directory(added.folder());
      const auto& there = added.net_namespace();
      run("ip netns add " + there + "\nip -n " + there + " link set lo up\n");
    }
    write_names();
    add_network(names);
  } catch (...) {
    remove_hosts();
    throw;
  }
}

testbed::~testbed() { remove_hosts(); }

void testbed::remove_hosts() noexcept {
  for (const auto& folder : {namespaces, files_of_namespaces})
    for (const auto& name : names_in(folder, prefix_)) remove(name);
}

const host& testbed::operator[](const std::string& name) const {
  const auto found = std::find_if(hosts_.begin(), hosts_.end(), [&](const host& each) { return each.name() == name; });
  if (found == hosts_.end()) throw std::out_of_range("the testbed has no host '" + name + "'");
  return *found;
}

int testbed::add_network(const std::vector<std::string>& names) {
  const int network = networks_++;
  // Without multicast snooping the bridge passes on the look-ups of IPv6 neighbours at once.
  run("ip -n " + switch_ + " link add " + bridge_of(network) + " type bridge mcast_snooping 0\n" +  //
      "ip -n " + switch_ + " link set " + bridge_of(network) + " up\n");
  for (const auto& name : names) attach((*this)[name], network);
  return network;
}

void testbed::attach(const host& which, int network) {
  const auto& there = which.net_namespace();
  const auto plug = plug_of(which, network);
  const auto own = interface_of(network);
  run("ip -n " + switch_ + " link add " + plug + " type veth peer name " + own + " netns " + there + "\n" +  //
      "ip -n " + switch_ + " link set " + plug + " master " + bridge_of(network) + " up\n" +                 //
      "ip -n " + there + " addr add " + which.ipv4(network) + "/24 dev " + own + "\n" +                      //
      "ip -n " + there + " addr add " + which.ipv6(network) + "/64 dev " + own + " nodad\n" +                //
      "ip -n " + there + " link set " + own + " up\n");
}

void testbed::write_names() {
  std::string known = "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 loopback\n";
  for (const auto& each : hosts_) {
    const auto& name = each.name();
    known += each.ipv4() + " " + name + " " + name + "-both\n" + each.ipv6() + " " + name + "-v6 " + name + "-both\n";
  }
  for (const auto& [name, address] : more_names_) known += address + " " + name + "\n";
  for (const auto& each : hosts_) {
    const auto folder = files_of_namespaces / each.net_namespace();
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "hosts") << known;
    std::ofstream(folder / "nsswitch.conf") << "hosts: files\n";  // no host asks a name server
  }
}

void testbed::add_name(const std::string& of, const std::string& name) {
  more_names_[name] = (*this)[of].ipv4();
  write_names();
}

void testbed::remove_name(const std::string& name) {
  more_names_.erase(name);
  write_names();
}

void testbed::limit_rate(const std::string& name, const std::string& rate) {
  const auto limit = " root tbf burst 512k limit 4m rate " + rate + "\n";
  const auto& limited = (*this)[name];
  run("tc -n " + limited.net_namespace() + " qdisc replace dev " + interface_of(0) + limit +  //
      "tc -n " + switch_ + " qdisc replace dev " + plug_of(limited, 0) + limit);
}

void testbed::unplug(const std::string& name) {
  run("ip -n " + switch_ + " link set " + plug_of((*this)[name], 0) + " down\n");
}

void testbed::plug(const std::string& name) { run("ip -n " + switch_ + " link set " + plug_of((*this)[name], 0) + " up\n"); }

void testbed::cut(const std::string& one, const std::string& other) { filter("-A", one, other); }

void testbed::mend(const std::string& one, const std::string& other) { filter("-D", one, other); }

void testbed::filter(const std::string& action, const std::string& one, const std::string& other) {
  for (const auto& [at, from] : {std::pair{one, other}, std::pair{other, one}})
    for (int network = 0; network < networks_; ++network) {
      const auto in = "ip netns exec " + (*this)[at].net_namespace() + " ";
      const auto& source = (*this)[from];
      run(in + "iptables -w " + action + " INPUT -s " + source.ipv4(network) + " -j DROP\n" +  //
          in + "ip6tables -w " + action + " INPUT -s " + source.ipv6(network) + " -j DROP\n");
    }
}

void testbed::lose_bytes(const std::string& from, const std::string& to) { filter_bytes("-A", from, to); }

void testbed::keep_bytes(const std::string& from, const std::string& to) { filter_bytes("-D", from, to); }

void testbed::filter_bytes(const std::string& action, const std::string& from, const std::string& to) {
  constexpr const char* more_than_headers = " -p tcp -m length --length 90:65535 -j DROP\n";
  run("ip netns exec " + (*this)[to].net_namespace() + " iptables -w " + action + " INPUT -s " + (*this)[from].ipv4() +
      more_than_headers);
}

void testbed::break_ipv6(const std::string& name) {
  run("ip netns exec " + (*this)[name].net_namespace() + " ip6tables -w -A INPUT -s fd77::/16 -j DROP\n");
}

std::string address_of(program& node) {
  const auto ready =
    apps::ready_line::parse(node.line_that([](const auto& line) { return apps::ready_line::parse(line).has_value(); }));
  BOOST_REQUIRE_MESSAGE(
    ready, "the node has no address; it " << node.how_it_ends(std::chrono::milliseconds(0)) << "; it said: " << node.text());
  return ready->address();
}

boost::test_tools::assertion_result makes_hosts(boost::unit_test::test_unit_id) {
  return succeeds("no hosts can be made here, which takes root and Debian's packages iproute2 and iptables", [] {
    testbed probe({"one", "other"});
    probe.cut("one", "other");
  });
}

boost::test_tools::assertion_result makes_slow_links(boost::unit_test::test_unit_id) {
  return succeeds("no slow links can be made here, which takes hosts and the kernel's token bucket filter", [] {
    testbed probe({"one"});
    probe.limit_rate("one", "100mbit");
  });
}

}  // namespace troupe::hosts
