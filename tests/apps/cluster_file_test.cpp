// SPDX-License-Identifier: BSD-3-Clause
#include "apps/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <functional>
#include <stdexcept>

#include "support/temporary_folder.hpp"

using namespace troupe::apps;
using troupe::apps::test::temporary_folder;

namespace {

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

struct mistake {
  const char* text;
  const char* error;
};

const mistake mistakes[] = {
  {R"({"nodes": [{"name": "a"})", "f.json: not valid JSON: parse error at line 1, column 25: "},
  {R"([])", "f.json: expected an object such as {\"nodes\": [...]}, got []"},
  {R"({})", "f.json: the field \"nodes\" is missing; expected a list of nodes"},
  {R"({"nodes": []})", "f.json: nodes: expected a list of 1 to 256 nodes, got 0"},
  {R"({"nodes": {"a": 1}})", "f.json: nodes: expected a list of 1 to 256 nodes, got {\"a\":1}"},
  {R"({"nodes": [{"name": "a"}], "node": 1})", "f.json: unknown field \"node\"; expected only nodes"},
  {R"({"nodes": [7]})", "f.json: nodes[0]: expected an object such as {\"name\": \"stage1\"}, got 7"},
  {R"({"nodes": [{}]})", "f.json: nodes[0]: the field \"name\" is missing; expected a text in quotes"},
  {R"({"nodes": [{"name": 3}]})", "f.json: nodes[0].name: expected a text in quotes, got 3"},
  {R"({"nodes": [{"name": ""}]})", "f.json: nodes[0].name: expected a text in quotes, got \"\""},
  {R"({"nodes": [{"name": "a b"}]})", "f.json: nodes[0].name: expected 1 to 64 letters, digits, '-', '_' or '.'"},
  {R"({"nodes": [{"name": "-a"}]})", "got \"-a\""},
  {R"({"nodes": [{"name": "a", "prot": 4001}]})",
   "f.json: nodes[0]: unknown field \"prot\"; expected one of name, host, advertise, port, join_wait, "},
  {R"({"nodes": [{"name": "a"}, {"name": "b", "port": 65536}]})",
   "f.json: nodes[1].port: expected a whole number from 0 to 65535, got 65536"},
  {R"({"nodes": [{"name": "a", "port": -1}]})", "f.json: nodes[0].port: expected a whole number from 0 to 65535, got -1"},
  {R"({"nodes": [{"name": "a", "port": 18446744073709551615}]})",
   "expected a whole number from 0 to 65535, got 18446744073709551615"},
  {R"({"nodes": [{"name": "a", "port": "4001"}]})", "expected a whole number from 0 to 65535, got \"4001\""},
  {R"({"nodes": [{"name": "a", "workers": 0}]})", "f.json: nodes[0].workers: expected a whole number from 1 to 1024, got 0"},
  {R"({"nodes": [{"name": "a", "threads": 1.5}]})",
   "f.json: nodes[0].threads: expected a whole number from 1 to 1024, got 1.5"},
  {R"({"nodes": [{"name": "a", "host": 1}]})", "f.json: nodes[0].host: expected a text in quotes, got 1"},
  {R"({"nodes": [{"name": "a", "trace": 1}]})", "f.json: nodes[0].trace: expected true or false, got 1"},
  {R"({"nodes": [{"name": "a", "join": ["h1:1"]}]})", "f.json: nodes[0]: unknown field \"join\""},
  {R"({"nodes": [{"name": "a", "log_level": "loud"}]})",
   "f.json: nodes[0].log_level: expected debug, info, warn, error or off, got \"loud\""},
  {R"({"nodes": [{"name": "a"}, {"name": "b"}, {"name": "a"}]})",
   "f.json: nodes[2].name: \"a\" is the name of nodes[0] already"},
  {R"({"nodes": [{"name": "a", "port": 4001}, {"name": "b", "port": 4001}]})",
   "f.json: nodes[1].port: 127.0.0.1:4001 is the address of nodes[0] already"},
  {R"({"nodes": [{"name": "a", "ssh": "-oProxyCommand=x"}]})",
   "f.json: nodes[0].ssh: expected a text that does not begin with '-', got \"-oProxyCommand=x\""},
  {R"({"nodes": [{"name": "a", "ssh": "h1 h2"}]})",
   "f.json: nodes[0].ssh: expected a host, or user@host, without blanks, got \"h1 h2\""},
  {R"({"nodes": [{"name": "a", "program": "-c"}]})",
   "f.json: nodes[0].program: expected a text that does not begin with '-', got \"-c\""},
  {R"({"nodes": [{"name": "a", "advertise": "0.0.0.0"}]})", "f.json: nodes[0].advertise: expected an address or a host name"},
  {R"({"nodes": [{"name": "a", "options": "--trace"}]})", "f.json: nodes[0].options: expected a list of texts in quotes"},
  {R"({"nodes": [{"name": "a", "options": [1]}]})", "f.json: nodes[0].options: expected a list of texts in quotes"},
  {R"({"nodes": [{"name": "a", "device_maps": ["b"]}]})",
   "f.json: nodes[0].device_maps: expected an object such as {\"stage1\": {"},
  {R"({"nodes": [{"name": "a", "device_maps": {"a": {}}}]})", "f.json: nodes[0].device_maps.a: expected an object such as"},
  {R"({"nodes": [{"name": "a", "device_maps": {"a": {"cpu": 0}}}]})",
   "f.json: nodes[0].device_maps.a.cpu: expected the name of a device in quotes, got 0"},
  {R"({"nodes": [{"name": "a", "device_maps": {"a": {"cpu": "gpu:0"}}}]})",
   "f.json: nodes[0].device_maps.a: expected the name of a device"},
  {R"({"nodes": [{"name": "a", "device_maps": {"a": {"cpu": "cuda:0", "cuda:0": "cuda"}}}]})",
   "device cuda:0 is the end of two devices"},
  {R"({"nodes": [{"name": "a", "device_maps": {"b": {"cpu": "cpu"}}}]})",
   "f.json: nodes[0].device_maps: no node of this file has the name \"b\"; a map to another node goes to \"options\""},
  {R"({"nodes": [{"name": "a", "name": "b"}]})", "f.json: the field \"name\" is written twice in one object"},
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_node_that_says_nothing_but_its_name_listens_on_loopback_on_any_port) {
  auto cluster = cluster_file::parse(R"({"nodes": [{"name": "stage1"}]})", "f.json");
  BOOST_REQUIRE_EQUAL(cluster.nodes.size(), 1u);
  BOOST_TEST(cluster.nodes[0].name == "stage1");
  BOOST_TEST(cluster.nodes[0].host == "127.0.0.1");
  BOOST_TEST(cluster.nodes[0].port == 0);
  BOOST_TEST(cluster.nodes[0].workers == 1u);
  BOOST_TEST(cluster.nodes[0].threads == 1u);
}

BOOST_AUTO_TEST_CASE(every_field_is_read_and_the_order_kept) {
  auto cluster = cluster_file::parse(
    R"({"nodes": [{"name": "b", "host": "127.0.0.2", "port": 4001, "workers": 3, "pass_workers": 2, "threads": 4}, {"name": "a", "port": 4001}]})",
    "f.json");
  BOOST_REQUIRE_EQUAL(cluster.nodes.size(), 2u);
  BOOST_TEST(cluster.nodes[0].name == "b");
  BOOST_TEST(cluster.nodes[0].host == "127.0.0.2");
  BOOST_TEST(cluster.nodes[0].port == 4001);
  BOOST_TEST(cluster.nodes[0].workers == 3u);
  BOOST_TEST(cluster.nodes[0].pass_workers == 2u);
  BOOST_TEST(cluster.nodes[1].pass_workers == 0u);
  BOOST_TEST(cluster.nodes[0].threads == 4u);
  BOOST_TEST(cluster.nodes[1].name == "a");
}

BOOST_AUTO_TEST_CASE(every_option_of_a_node_is_a_field) {
  troupe::settings unless_told;
  unless_told.log_level = troupe::severity::error;
  const auto cluster = cluster_file::parse(
    R"({"nodes": [{"name": "a", "send_limit": 512, "forget_after": 7, "shared_memory": false, "detached_warning": false, "trace": true,
                   "network": "caf", "data_dir": "/var/lib/a", "log_level": "debug"}, {"name": "b", "port": 4001}]})",
    "f.json", unless_told);
  const auto& told = cluster.nodes[0];
  BOOST_TEST(told.send_limit == std::uint64_t{512} << 20);
  BOOST_TEST(told.forget_after.count() == 7000);
  BOOST_TEST(!told.shared_memory);
  BOOST_TEST(!told.warn_detached);
  BOOST_TEST(told.trace);
  BOOST_TEST((told.network == troupe::network_kind::caf));
  BOOST_TEST(told.data_dir == "/var/lib/a");
  BOOST_TEST((told.log_level == troupe::severity::debug));
  BOOST_TEST((cluster.nodes[1].log_level == troupe::severity::error));
  BOOST_TEST(cluster.nodes[1].shared_memory);
}

BOOST_AUTO_TEST_CASE(a_node_on_another_host_listens_on_all_addresses) {
  auto cluster = cluster_file::parse(
    R"({"nodes": [{"name": "a", "ssh": "me@h1", "port": 4001, "program": "/my programs/troupe", "folder": "/my work", "advertise": "h1-fast",
                   "options": ["--load", "libmine.so"]}, {"name": "b", "ssh": "h2", "port": 4001, "host": "10.0.0.2"}]})",
    "f.json");
  BOOST_TEST(cluster.nodes[0].host == "0.0.0.0");
  BOOST_TEST(cluster.nodes[0].ssh == "me@h1");
  BOOST_TEST(cluster.nodes[0].program == "/my programs/troupe");
  BOOST_TEST(cluster.nodes[0].folder == "/my work");
  BOOST_TEST(cluster.nodes[0].advertise == "h1-fast");
  BOOST_TEST(cluster.nodes[0].options.size() == 2u);
  BOOST_TEST(cluster.nodes[1].host == "10.0.0.2");
  BOOST_TEST(cluster.nodes[0].reached_at() == "h1-fast");
  BOOST_TEST(cluster.nodes[1].reached_at() == "10.0.0.2");
  cluster.nodes[0].advertise.clear();
  BOOST_TEST(cluster.nodes[0].reached_at() == "h1");
  cluster.nodes[0].ssh.clear();
  BOOST_TEST(cluster.nodes[0].reached_at() == "");
}

BOOST_AUTO_TEST_CASE(a_mistake_names_the_file_the_field_and_what_was_expected) {  // CF-1, CF-2, CF-3, CF-4
  for (auto& m : mistakes) {
    auto text = error_of([&] { cluster_file::parse(m.text, "f.json"); });
    BOOST_TEST(text.find(m.error) != std::string::npos, m.text << " gives: " << text);
    BOOST_TEST(text.find('\n') == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(more_nodes_than_a_machine_can_hold_are_refused) {
  std::string text = R"({"nodes": [)";
  for (int i = 0; i < 257; ++i) text.append(i == 0 ? "" : ",").append("{\"name\": \"n").append(std::to_string(i)).append("\"}");
  text += "]}";
  BOOST_TEST(error_of([&] { cluster_file::parse(text, "f.json"); }) ==
             "f.json: nodes: expected a list of 1 to 256 nodes, got 257");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_cluster_file_never_crashes_however_it_is_cut) {
  std::string whole = R"({"nodes": [{"name": "stage1", "port": 4001}, {"name": "\u00e9", "threads": -2}]})";
  for (std::size_t length = 0; length <= whole.size(); ++length)
    BOOST_TEST(error_of([&] { cluster_file::parse(whole.substr(0, length), "f.json"); }).starts_with("f.json: "));
  BOOST_TEST(error_of([&] { cluster_file::parse(std::string(100000, '['), "f.json"); }).starts_with("f.json: "));
  BOOST_TEST(error_of([&] { cluster_file::parse("\xff\xfe\x00{", "f.json"); }).starts_with("f.json: "));
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_is_named) {  // CF-1
  const temporary_folder here;
  auto path = (here.path() / "cluster.json").string();
  BOOST_TEST(error_of([&] { cluster_file::read(path); }).starts_with(path + ": no such file"));
  BOOST_TEST(error_of([&] { cluster_file::read(here.path().string()); }).starts_with(here.path().string() + ": not a file"));
  std::ofstream(path).flush();
  BOOST_TEST(error_of([&] { cluster_file::read(path); }).starts_with(path + ": the file is empty"));
  std::ofstream(path) << std::string((1 << 20) + 1, ' ');
  BOOST_TEST(error_of([&] { cluster_file::read(path); }) == path + ": expected a file of at most 1048576 bytes, got 1048577");
  std::ofstream(path) << R"({"nodes": [{"name": "a"}]})";
  BOOST_TEST(cluster_file::read(path).nodes.size() == 1u);
}
