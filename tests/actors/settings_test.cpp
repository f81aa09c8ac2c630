// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/settings.hpp>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <troupe/messages/errors.hpp>

#include "support/contains.hpp"
#include "support/environment_variable.hpp"

namespace {

using troupe::settings;
using namespace std::chrono_literals;

constexpr auto shutdown_limit = "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT";

settings read(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  return settings(static_cast<int>(argv.size()), argv.data());
}

// Returns the text of the error that `run` throws. The code of the error has to be misuse.
template <class F>
std::string refusal(F run) {
  try {
    run();
  } catch (const troupe::error& problem) {
    BOOST_TEST(static_cast<int>(problem.code()) == static_cast<int>(troupe::errc::misuse));
    return problem.what();
  }
  BOOST_ERROR("nothing was thrown");
  return {};
}

using troupe::test::contains;

}  // namespace

BOOST_AUTO_TEST_CASE(no_arguments_give_the_defaults_and_those_pass_the_check) {
  const auto options = read({});
  BOOST_TEST(options.name == "node");
  BOOST_TEST(options.host == "127.0.0.1");
  BOOST_TEST(options.advertise == "");
  BOOST_TEST(options.port == 0);
  BOOST_TEST(options.direct_memory);
  BOOST_TEST(options.shared_memory);
  BOOST_TEST(!options.trace);
  BOOST_TEST(!options.allow_scripts);
  BOOST_TEST(!options.carry_autocast);
  BOOST_TEST(options.warn_detached);
  BOOST_TEST((options.log_level == troupe::severity::warn));
  BOOST_TEST(options.log_file == "");
  BOOST_TEST((options.log_format == troupe::line_format::text));
  BOOST_CHECK_NO_THROW(troupe::check(options));
}

BOOST_AUTO_TEST_CASE(device_maps_are_read_and_refused_with_their_text) {
  const auto options = read({"--device-map=stage1:cuda:0=cuda:1,cpu=cuda:0", "--device-map", "b:cpu=cuda"});
  const std::map<std::string, troupe::device_names> expected{{"b", {{"cpu", "cuda:0"}}},
                                                             {"stage1", {{"cpu", "cuda:0"}, {"cuda:0", "cuda:1"}}}};
  BOOST_TEST((options.device_maps == expected));
  for (const std::string text : {"stage1", "stage1:", ":cpu=cuda:0", "no name:cpu=cuda:0", "cpu=cuda:0", "b:cpu", "b:cpu=x:0"})
    BOOST_TEST(contains(refusal([&] { read({"--device-map", text}); }), "got '"), text);
  BOOST_TEST(contains(refusal([] { read({"--device-map=b:cpu=cuda:0", "--device-map=b:cuda:0=cpu"}); }), "two device maps"));
  settings named;
  named.device_maps["b"] = {{"cuda:0", "cpu"}, {"cuda", "cuda:1"}};
  const auto text = refusal([&] { troupe::check(named); });
  BOOST_TEST(contains(text, "settings: the device map to node 'b'"), text);
  BOOST_TEST(contains(text, "leads to two devices"), text);
  named.device_maps = {{"../b", {}}};
  BOOST_TEST(contains(refusal([&] { troupe::check(named); }), "'../b'"));
}

BOOST_AUTO_TEST_CASE(every_option_is_read) {
  const auto options =
    read({"--name=stage-1",     "--host=0.0.0.0",    "--advertise=h1",     "--port=4000",        "--join=a:1",
          "--join=[::1]:65535", "--join-wait=7",     "--workers=3",        "--pass-workers=2",   "--deadline-ms=1500",
          "--heartbeat-ms=50",  "--stop-limit=7",    "--no-direct-memory", "--no-shared-memory", "--network=caf",
          "--insecure",         "--log-level=debug", "--log-file=a=b.log", "--log-format=json",  "--trace"});
  BOOST_TEST(options.name == "stage-1");
  BOOST_TEST(options.host == "0.0.0.0");
  BOOST_TEST(options.advertise == "h1");
  BOOST_TEST(options.port == 4000);
  BOOST_TEST(options.join == (std::vector<std::string>{"a:1", "[::1]:65535"}), boost::test_tools::per_element());
  BOOST_TEST(options.join_wait.count() == 7000);
  BOOST_TEST(options.workers == 3);
  BOOST_TEST(options.pass_workers == 2);
  BOOST_TEST(options.deadline.count() == 1500);
  BOOST_TEST(options.heartbeat.count() == 50);
  BOOST_TEST(options.stop_limit.count() == 7000);
  BOOST_TEST(!options.direct_memory);
  BOOST_TEST(!options.shared_memory);
  BOOST_TEST((options.network == troupe::network_kind::caf));
  BOOST_TEST(options.insecure);
  BOOST_TEST((options.log_level == troupe::severity::debug));
  BOOST_TEST(options.log_file == "a=b.log");
  BOOST_TEST((options.log_format == troupe::line_format::json));
  BOOST_TEST(options.trace);
}

BOOST_AUTO_TEST_CASE(the_send_limit_is_read_in_mebibytes) {
  const auto read = [](std::string value) {
    std::string program = "program";
    std::string option = "--send-limit=" + std::move(value);
    char* arguments[] = {program.data(), option.data()};
    return troupe::settings(2, arguments).send_limit;
  };
  BOOST_TEST(troupe::settings().send_limit == std::uint64_t{256} << 20);
  BOOST_TEST(read("16") == std::uint64_t{16} << 20);
  BOOST_CHECK_THROW(read("0"), troupe::error);
  troupe::settings none;
  none.send_limit = 0;
  BOOST_CHECK_THROW(check(none), troupe::error);
}

BOOST_AUTO_TEST_CASE(the_length_of_short_work_is_read_in_microseconds) {
  std::string program = "program";
  std::string option = "--short-work-us=0";
  char* arguments[] = {program.data(), option.data()};
  BOOST_TEST(troupe::settings(2, arguments).short_work.count() == 0);
  troupe::settings longest;
  longest.short_work = std::chrono::seconds(2);
  BOOST_TEST(troupe::test::contains(refusal([&] { check(longest); }), "short_work is 2000000 us, expected 0 to"));
}

BOOST_AUTO_TEST_CASE(the_feedback_limit_is_read_in_mebibytes) {
  std::string program = "program";
  std::string option = "--feedback-limit=16";
  char* arguments[] = {program.data(), option.data()};
  BOOST_TEST(troupe::settings(2, arguments).feedback_limit == std::uint64_t{16} << 20);
  troupe::settings none;
  none.feedback_limit = 0;
  BOOST_TEST(troupe::test::contains(refusal([&] { check(none); }), "feedback_limit is 0 bytes"));
}

BOOST_AUTO_TEST_CASE(every_level_has_a_name_and_others_are_refused) {
  using troupe::severity;
  for (auto level : {severity::debug, severity::info, severity::warn, severity::error, severity::off})
    BOOST_TEST((troupe::severity_named(to_text(level)) == level));
  for (const auto* name : {"", "Info", "warning", "0"}) {
    const auto text = refusal([&] { troupe::severity_named(name); });
    BOOST_TEST(contains(text, "--log-level: expected debug, info, warn, error or off, got '" + std::string(name) + "'"), text);
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_option_is_refused_with_the_list_of_known_ones) {
  for (const auto* argument : {"--nam=x", "name=x", "file.txt", "-p5", "--help", ""}) {
    const auto text = refusal([&] { read({argument}); });
    BOOST_TEST(contains(text, "'" + std::string(argument) + "'"));
    BOOST_TEST(contains(text, "--heartbeat-ms="));
  }
}

BOOST_AUTO_TEST_CASE(a_bad_value_is_refused_with_the_option_and_the_range) {
  for (const auto* argument : {"--port=65536", "--port=-1", "--port=12x", "--port= 1", "--workers=0", "--pass-workers=1025",
                               "--deadline-ms=0", "--stop-limit=-1", "--heartbeat-ms=99999999999999999999"}) {
    const std::string given = argument;
    const auto text = refusal([&] { read({given}); });
    BOOST_TEST(contains(text, given.substr(0, given.find('='))), text);
    BOOST_TEST(contains(text, "expected a whole number from"), text);
    BOOST_TEST(contains(text, "'" + given.substr(given.find('=') + 1) + "'"), text);
  }
}

BOOST_AUTO_TEST_CASE(a_value_may_be_the_next_argument) {
  const auto options = read({"--name", "stage-1", "--join", "a:1", "--port", "010", "--join", "b:2"});
  BOOST_TEST(options.name == "stage-1");
  BOOST_TEST(options.join == (std::vector<std::string>{"a:1", "b:2"}), boost::test_tools::per_element());
  BOOST_TEST(options.port == 10);
  BOOST_TEST(contains(refusal([] { read({"--join", "a:1", "b:2"}); }), "unknown option 'b:2'"));
}

BOOST_AUTO_TEST_CASE(the_options_of_a_program_stay_where_settings_take_theirs) {
  std::vector<std::string> arguments{"program",    "--rate=0.1", "--name", "stage-1", "in.txt", "--trace", "--epochs", "3",
                                     "--join=a:1", "--port",     "7",      "--join",  "b:2",    "--",      "--port=8"};
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  auto argc = static_cast<int>(arguments.size());
  const auto options = settings::take(argc, argv.data());
  BOOST_TEST(options.name == "stage-1");
  BOOST_TEST(options.port == 7);
  BOOST_TEST(options.trace);
  BOOST_TEST((options.join == std::vector<std::string>{"a:1", "b:2"}));
  const std::vector<std::string> rest(argv.data(), argv.data() + argc);
  BOOST_TEST((rest == std::vector<std::string>{"program", "--rate=0.1", "in.txt", "--epochs", "3", "--", "--port=8"}));
  BOOST_TEST(argv[static_cast<std::size_t>(argc)] == nullptr);

  // What it takes, it checks.
  for (const std::string wrong : {"--port=x", "--port", "--name=", "--trace=no"}) {
    std::string program = "program", last = wrong;
    std::array<char*, 3> given{program.data(), last.data(), nullptr};
    int count = 2;
    BOOST_TEST(contains(refusal([&] { settings::take(count, given.data()); }), "expected"), wrong);
  }
  char* nothing = nullptr;
  int none = 0;
  BOOST_TEST(settings::take(none, &nothing).name == "node");
}

BOOST_AUTO_TEST_CASE(a_missing_value_is_refused) {
  for (const auto* option : {"--name", "--join", "--workers", "--network"}) {
    const std::string name = option;
    for (const auto& argument : {name, name + "="}) {
      const auto text = refusal([&] { read({"--trace", argument}); });
      BOOST_TEST(contains(text, name + ": expected a value, as in " + name + "=VALUE"), text);
    }
  }
  for (const std::string option : {"--host", "--join"}) {
    const auto text = refusal([&] { read({option, "--trace"}); });
    BOOST_TEST(contains(text, option + ": expected a value, got the option '--trace'"), text);
  }
  // After an option with an empty value, the next argument is not taken as the value.
  for (const std::string option : {"--log-file", "--join", "--name"}) {
    const auto text = refusal([&] { read({option + "=", "other"}); });
    BOOST_TEST(contains(text, option + ": expected a value, as in " + option + "=VALUE"), text);
  }
}

BOOST_AUTO_TEST_CASE(a_value_that_is_not_expected_is_refused) {
  for (const auto* argument : {"--trace=yes", "--profile=true", "--no-shared-memory=false", "--trace="}) {
    const std::string given = argument;
    const auto text = refusal([&] { read({given, "--port=1"}); });
    const auto equals = given.find('=');
    BOOST_TEST(contains(text, given.substr(0, equals) + ": expected no value, got '" + given.substr(equals + 1) + "'"), text);
  }
}

BOOST_AUTO_TEST_CASE(a_network_without_a_gate_has_to_be_allowed) {
  const auto text = refusal([] { read({"--network=caf"}); });
  BOOST_TEST(contains(text, "on the network 'caf' a node can't refuse anybody who reaches its port"), text);
  BOOST_TEST(contains(text, "--insecure"), text);
}

BOOST_AUTO_TEST_CASE(an_option_that_comes_twice_is_refused_but_for_addresses_to_join) {
  for (const auto* argument : {"--name=a", "--port=1", "--network=caf"}) {
    const std::string given = argument;
    const auto text = refusal([&] { read({given, "--trace", given}); });
    BOOST_TEST(contains(text, given.substr(0, given.find('=')) + ": expected once, got 2 times"), text);
  }
}

BOOST_AUTO_TEST_CASE(a_name_that_is_no_file_name_is_refused) {
  for (const auto* name : {"a/b", "..", ".hidden", "two words", "\xc3\xa9"})
    BOOST_TEST(contains(refusal([&] { read({"--name=" + std::string(name)}); }), name));
  BOOST_TEST(!troupe::valid_node_name(""));
  BOOST_TEST(!troupe::valid_node_name(std::string(65, 'a')));
  BOOST_TEST(troupe::valid_node_name(std::string(64, 'a')));
}

BOOST_AUTO_TEST_CASE(an_address_is_taken_apart) {
  BOOST_TEST((troupe::parse_address("localhost:80") == std::pair<std::string, std::uint16_t>("localhost", 80)));
  BOOST_TEST((troupe::parse_address("[::1]:80") == std::pair<std::string, std::uint16_t>("::1", 80)));
  for (const auto* address : {"", "host", ":80", "host:", "host:0", "host:70000", "::1:80", "[]:80"})
    BOOST_TEST(contains(refusal([&] { troupe::parse_address(address); }), "'" + std::string(address) + "'"));
}

BOOST_AUTO_TEST_CASE(the_folder_of_data_the_pages_and_the_peer_to_serve_are_read) {
  const auto with = read({"--data-dir=/var/lib/troupe", "--metrics", "0.0.0.0:9100", "--until-left=driver", "--allow-scripts",
                          "--carry-autocast", "--no-detached-warning"});
  BOOST_TEST(with.allow_scripts);
  BOOST_TEST(with.carry_autocast);
  BOOST_TEST(!with.warn_detached);
  BOOST_TEST(with.data_dir == "/var/lib/troupe");
  BOOST_TEST(with.metrics == "0.0.0.0:9100");
  BOOST_TEST(with.until_left == "driver");
  BOOST_TEST(contains(refusal([] { read({"--metrics=70000"}); }),
                      "--metrics: expected a port from 0 to 65535, or HOST:PORT, got '70000'"));
  BOOST_TEST(contains(refusal([] { read({"--metrics=:80"}); }), "or HOST:PORT, got ':80'"));
  BOOST_TEST(contains(refusal([] { read({"--until-left=../x"}); }), "--until-left: expected the name of a node, got '../x'"));
}

BOOST_AUTO_TEST_CASE(the_address_of_pages_is_a_port_of_loopback_or_a_host_and_a_port) {
  BOOST_TEST((troupe::parse_page_address("0") == std::pair<std::string, std::uint16_t>("127.0.0.1", 0)));
  BOOST_TEST((troupe::parse_page_address("[::]:9100") == std::pair<std::string, std::uint16_t>("::", 9100)));
  for (const std::string bad : {"", "x", "-1", "host:0", "9100 "})
    BOOST_TEST(!refusal([&] { troupe::parse_page_address(bad); }).empty(), bad);
}

BOOST_AUTO_TEST_CASE(the_limit_of_a_stop_is_ten_seconds_or_what_the_environment_says) {
  {
    const troupe::test::environment_variable none(shutdown_limit, nullptr);
    BOOST_TEST((troupe::stop_limit_of_environment() == 10s));
  }
  for (const auto& [text, expected] : {std::pair{"0", 0ms}, {"0.25", 250ms}, {"7", 7000ms}, {"86400", 86'400'000ms}}) {
    const troupe::test::environment_variable given(shutdown_limit, text);
    BOOST_TEST((troupe::stop_limit_of_environment() == expected));
  }
}

BOOST_DATA_TEST_CASE(a_limit_of_a_stop_that_is_no_number_of_seconds_is_refused,
                     (std::vector<std::string>{"", "-1", "ten", "5s", "nan", "86401"}), text) {
  const troupe::test::environment_variable given(shutdown_limit, text.c_str());
  BOOST_CHECK_EXCEPTION(troupe::stop_limit_of_environment(), troupe::error, [&](const troupe::error& why) {
    return why.code() == troupe::errc::misuse && why.what() == std::string("the environment variable ") + shutdown_limit +
                                                                 ": expected a number of seconds from 0 to 86400, got '" +
                                                                 text + "'";
  });
}

BOOST_AUTO_TEST_CASE(settings_filled_by_hand_are_checked_too) {
  settings options;
  options.heartbeat = std::chrono::milliseconds(-1);
  BOOST_TEST(contains(refusal([&] { troupe::check(options); }), "heartbeat is -1 ms, expected 1 to 604800000"));
  options = {};
  options.stop_limit = std::chrono::milliseconds(-1);
  BOOST_TEST(contains(refusal([&] { troupe::check(options); }), "stop_limit is -1 ms, expected 0 to 604800000"));
  options = {};
  options.join = {"nowhere"};
  BOOST_TEST(contains(refusal([&] { troupe::check(options); }), "'nowhere'"));
}

BOOST_AUTO_TEST_CASE(only_loopback_addresses_count_as_loopback) {
  for (auto* host : {"127.0.0.1", "127.255.0.9", "localhost", "::1"}) BOOST_TEST(troupe::is_loopback(host), host);
  for (auto* host : {"0.0.0.0", "10.0.0.1", "128.0.0.1", "::", "example.org", "127.0.0.1.example.org", ""})
    BOOST_TEST(!troupe::is_loopback(host), host);
}

BOOST_AUTO_TEST_CASE(only_unspecified_addresses_are_wildcards) {
  for (auto* host : {"0.0.0.0", "::", "0:0::0"}) BOOST_TEST(troupe::is_wildcard(host), host);
  for (auto* host : {"", "127.0.0.1", "::1", "h1", "0"}) BOOST_TEST(!troupe::is_wildcard(host), host);
}

BOOST_AUTO_TEST_CASE(what_can_be_no_address_of_a_host_is_not_advertised) {
  for (auto* host : {"10.0.0.1", "fd00::1", "h1", "node_1.example.org", "127.0.0.1", "7up"})
    BOOST_TEST(troupe::may_be_advertised(host), host);
  for (const std::string host : {"0.0.0.0", "::", "h1:4001", "10.0.0.1:4001", "[fd00::1]", "10.0.0.300", "10.0.0", "-h", ".h",
                                 "two words", "h/1", "*"}) {
    BOOST_TEST(!troupe::may_be_advertised(host), host);
    BOOST_TEST(contains(refusal([&] { read({"--advertise=" + host}); }), "--advertise: expected an address"));
  }
  BOOST_TEST(!troupe::may_be_advertised(""));
  BOOST_TEST(!troupe::may_be_advertised(std::string(254, 'h')));
  BOOST_TEST(troupe::may_be_advertised(std::string(253, 'h')));
}
