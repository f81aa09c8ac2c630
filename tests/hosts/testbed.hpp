// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/tree/test_unit.hpp>
#include <nlohmann/json_fwd.hpp>

#include "support/program.hpp"
#include "support/temporary_folder.hpp"

/// Hosts for tests, made of Linux network namespaces: each has its own interfaces, addresses, ports, names and folder.
namespace troupe::hosts {

using apps::test::program;

/// One host of a testbed. Handles are copied freely and are valid as long as the testbed.
class host {
 public:
  host(std::string name, int number, std::string net_namespace, std::filesystem::path folder)
      : name_(std::move(name)), number_(number), net_namespace_(std::move(net_namespace)), folder_(std::move(folder)) {}

  const std::string& name() const noexcept { return name_; }
  const std::string& net_namespace() const noexcept { return net_namespace_; }
  /// The folder in which the programs of this host start.
  const std::filesystem::path& folder() const noexcept { return folder_; }

  /// The address of the host in a network of the testbed. Networks are counted from 0.
  std::string ipv4(int network = 0) const;
  std::string ipv6(int network = 0) const;

  /// Starts the program troupe on this host. A command that connects, and is given no certificates, gets --insecure: nobody else
  /// reaches a testbed. The program ends with the object that is returned: `auto a = host.troupe({...})`.
  /// Its signal() freezes (SIGSTOP), thaws (SIGCONT) and kills; another troupe() is a restart.
  program troupe(std::vector<std::string> arguments) const;
  /// Starts any program on this host, by its path or by its name in PATH.
  program start(const std::string& file, const std::vector<std::string>& arguments) const;

  /// What `troupe status ADDRESS --json` answers on this host. Throws std::runtime_error with the program's output if there is no
  /// answer.
  nlohmann::json status(const std::string& address) const;

 private:
  std::string name_;
  int number_;
  std::string net_namespace_;
  std::filesystem::path folder_;
};

/// Hosts that are joined by a network, and perhaps by more networks. Every host finds every other host by name: `NAME` has the IPv4
/// address in network 0, `NAME-v6` the IPv6 address, `NAME-both` first the IPv6 address and then the IPv4 address.
/// `loopback` is 127.0.1.1, which Debian gives a host's own name.
///   TB-1  several testbeds may exist at once, also in other processes. No interface and no rule of the machine itself changes.
///   TB-2  the destructor removes everything. A testbed also removes what is left of processes that were killed.
class testbed {
 public:
  /// Throws std::runtime_error with the output of the command that failed.
  explicit testbed(const std::vector<std::string>& names);
  ~testbed();
  testbed(const testbed&) = delete;
  testbed& operator=(const testbed&) = delete;

  /// Throws std::out_of_range if no host has this name.
  const host& operator[](const std::string& name) const;

  /// Joins these hosts by one more network. Returns the number of the network. No packet passes from one network to another.
  int add_network(const std::vector<std::string>& names);

  /// Gives the host one more name for its IPv4 address in network 0; takes the name away.
  void add_name(const std::string& of, const std::string& name);
  void remove_name(const std::string& name);

  /// Limits what the host sends and what it gets in network 0, as in "100mbit".
  void limit_rate(const std::string& name, const std::string& rate);

  /// Takes the plug of the host out of network 0: the host sees that its link is down.
  void unplug(const std::string& name);
  void plug(const std::string& name);

  /// From now on no packet passes between the two hosts, in any network. Nothing tells the hosts so.
  void cut(const std::string& one, const std::string& other);
  void mend(const std::string& one, const std::string& other);

  /// From now on packets of TCP that carry more than a few bytes get lost on the way: connections are made, and nothing comes.
  void lose_bytes(const std::string& from, const std::string& to);
  void keep_bytes(const std::string& from, const std::string& to);

  /// From now on the host drops all that comes by IPv6, and answers nothing.
  void break_ipv6(const std::string& name);

 private:
  void attach(const host& which, int network);
  void write_names();
  void remove_hosts() noexcept;
  void filter(const std::string& action, const std::string& one, const std::string& other);
  void filter_bytes(const std::string& action, const std::string& from, const std::string& to);

  apps::test::temporary_folder folder_;
  std::string prefix_;
  std::string switch_;
  std::vector<host> hosts_;
  std::map<std::string, std::string> more_names_;  // and the addresses
  int networks_ = 0;
};

/// The address that the node prints once it is ready. Fails the test if the node does not become ready.
std::string address_of(program& node);

/// Preconditions of tests. Where they do not hold, they print "SKIPPED: " and the reason.
boost::test_tools::assertion_result makes_hosts(boost::unit_test::test_unit_id);
boost::test_tools::assertion_result makes_slow_links(boost::unit_test::test_unit_id);

}  // namespace troupe::hosts
