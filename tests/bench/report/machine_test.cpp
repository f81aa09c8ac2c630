// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <map>
#include <stdexcept>
#include <string>

#include "bench/report/machine.hpp"
#include "../support/own_folder.hpp"

using namespace troupe::bench;
using troupe::test::has;
using troupe::test::own_folder;

namespace {

const versions some_versions{"0.1.0", "Release", "Clang 14", "2.11.0", "0.17.6", "3.0.19"};

void describe_machine(const own_folder& root) {
  root.write(
    "proc/cpuinfo",
    "processor\t: 0\nmodel name\t: Some CPU 9000\nflags\t\t: fpu hypervisor avx\n\nprocessor\t: 1\nmodel name\t: Other\n");
  root.write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 5 kB\n");
  root.write("proc/loadavg", "1.25 0.50 0.10 2/300 4711\n");
  root.write("etc/os-release", "NAME=\"Some\"\nPRETTY_NAME=\"Some System 12\"\n");
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(facts_of_a_machine)

BOOST_AUTO_TEST_CASE(they_are_read_from_the_system) {
  const own_folder root;
  describe_machine(root);
  const auto found = this_machine(some_versions, root.path);
  BOOST_TEST(found.cpu == "Some CPU 9000");
  BOOST_TEST(found.cores == 2);
  BOOST_TEST(found.is_virtual);
  BOOST_TEST(found.memory_mib == 16384);
  BOOST_TEST(found.system == "Some System 12");
  BOOST_TEST(found.governor == "performance");
  BOOST_TEST(found.load == 1.25);
  BOOST_TEST(has(found.kernel, "Linux "));
  BOOST_TEST(found.date.size() == std::string("2026-11-25 19:00 UTC").size());
}

BOOST_AUTO_TEST_CASE(what_the_system_does_not_tell_is_left_out) {
  const own_folder root;
  const auto found = this_machine(some_versions, root.path);
  BOOST_TEST(found.cpu == "");
  BOOST_TEST(found.cores == 0);
  BOOST_TEST(!found.is_virtual);
  const auto facts = facts_of(found);
  const std::map<std::string, std::string> by_name(facts.begin(), facts.end());
  BOOST_TEST(by_name.count("clock governor") == 0);
  BOOST_TEST(by_name.count("processor") == 0);
  BOOST_TEST(by_name.count("memory") == 0);
  BOOST_TEST(by_name.at("libraries") == "libtorch 2.11.0, CAF 0.17.6, OpenSSL 3.0.19");
}

BOOST_AUTO_TEST_CASE(they_come_back_from_their_file) {
  const own_folder folder;
  describe_machine(folder);
  auto made = this_machine(some_versions, folder.path);
  made.quick = true;
  made.commit = "abc1234";
  write_machine(folder.path, made);
  const auto came = read_machine(folder.path);
  BOOST_REQUIRE(came.has_value());
  BOOST_TEST((facts_of(*came) == facts_of(made)));
  BOOST_TEST(came->quick);
  const auto facts = facts_of(*came);
  const std::map<std::string, std::string> by_name(facts.begin(), facts.end());
  BOOST_TEST(by_name.at("measured") == made.date + ", quick run");
  BOOST_TEST(by_name.at("processor") == "Some CPU 9000, 2 cores, virtual machine");
  BOOST_TEST(by_name.at("memory") == "16.0 GiB");
  BOOST_TEST(by_name.at("load before") == "1.25");
  BOOST_TEST(by_name.at("troupe") == "0.1.0 (abc1234), Release, Clang 14");
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_no_machine_and_a_malformed_one_an_error) {
  const own_folder folder;
  BOOST_TEST(!read_machine(folder.path).has_value());
  folder.write("machine.json", "{\"cpu\": 3}");
  BOOST_CHECK_EXCEPTION(read_machine(folder.path), std::runtime_error,
                        [](const auto& error) { return has(error.what(), "machine.json' describes no machine"); });
}

BOOST_AUTO_TEST_SUITE_END()
