// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/settings.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <CLI/CLI.hpp>

#include <troupe/devices/device_map.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

namespace {

[[noreturn]] void refuse(const std::string& text) { throw error(errc::misuse, text); }

std::uint64_t parse_number(std::string_view option, std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t result = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (problem != std::errc{} || end != text.data() + text.size() || result < least || result > most)
    refuse(std::string(option) + ": expected a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
           ", got '" + std::string(text) + "'");
  return result;
}

constexpr std::uint64_t most_workers = 1024;
constexpr std::uint64_t most_mebibytes = std::uint64_t{1} << 30;
constexpr std::uint64_t most_short_work = 1'000'000;  // microseconds
constexpr std::uint64_t most_milliseconds = 7ull * 24 * 3600 * 1000;

void check_range(const char* what, long long value, long long least, long long most) {
  if (value < least || value > most)
    refuse("settings: " + std::string(what) + " is " + std::to_string(value) + ", expected " + std::to_string(least) + " to " +
           std::to_string(most));
}

[[noreturn]] void refuse_missing_value(const std::string& option) {
  refuse(option + ": expected a value, as in " + option + "=VALUE");
}

void refuse_option_as_value(const std::string& option, const std::string& text) {
  if (text.starts_with("--")) refuse(option + ": expected a value, got the option '" + text + "'");
}

/// An option with one value, which `read` accepts or refuses by an exception.
template <class F>
void add(CLI::App& app, const std::string& option, F read) {
  app.add_option_function<std::string>(option, [=](const std::string& text) {
    refuse_option_as_value(option, text);
    read(text);
  });
}

std::string known_options(const CLI::App& app) {
  std::string list;
  for (const auto* option : app.get_options())
    list += (list.empty() ? "" : ", ") + option->get_name() + (option->get_expected_max() > 0 ? "=" : "");
  return list;
}

/// Refuses two forms that CLI11 misreads. CLI11 reads `--no-shared-memory=false` as `--no-shared-memory`, and after `--name=`
/// it reads the next argument as the value.
void refuse_misread_values(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const auto& argument : arguments) {
    const auto equals = std::min(argument.find('='), argument.size());
    const auto* option = app.get_option_no_throw(argument.substr(0, equals));
    if (option == nullptr || equals == argument.size()) continue;
    if (option->get_expected_max() > 0 && equals + 1 == argument.size()) refuse_missing_value(option->get_name());
    if (option->get_expected_max() == 0)
      refuse(option->get_name() + ": expected no value, got '" + argument.substr(equals + 1) + "'");
  }
}

/// Takes the options that `app` knows out of argv, with their values.
std::vector<std::string> take_known(const CLI::App& app, int& argc, char** argv) {
  std::vector<std::string> taken;
  int left = std::min(argc, 1);
  bool all_stay = false;
  for (int i = left; i < argc; ++i) {
    const std::string argument = argv[i];
    all_stay = all_stay || argument == "--";
    const auto equals = argument.find('=');
    const auto* option = all_stay ? nullptr : app.get_option_no_throw(argument.substr(0, equals));
    if (option == nullptr) {
      argv[left++] = argv[i];
      continue;
    }
    taken.push_back(argument);
    if (equals == std::string::npos && option->get_expected_max() > 0 && i + 1 < argc) taken.emplace_back(argv[++i]);
  }
  if (left < argc) argv[left] = nullptr;
  argc = left;
  return taken;
}

/// Throws an error that names the argument and says what was expected. CLI11's text is used only for other mistakes.
[[noreturn]] void refuse(const CLI::App& app, const std::vector<std::string>& arguments, const CLI::ParseError& mistake) {
  if (const auto unknown = app.remaining(); !unknown.empty())
    refuse("unknown option '" + unknown.front() + "'; a node takes " + known_options(app));
  for (const auto* option : app.get_options()) {
    const auto name = option->get_name();
    if (option->get_expected_max() == 1 && option->count() > 1)
      refuse(name + ": expected once, got " + std::to_string(option->count()) + " times");
  }
  // Options are read from the left, so only the last option can lack its value.
  const auto name = arguments.back().substr(0, arguments.back().find('='));
  if (app.get_option_no_throw(name) != nullptr) refuse_missing_value(name);
  refuse(mistake.what());
}

void check_security(const settings& options) {
  if (options.network == network_kind::caf && !options.insecure)
    refuse(
      "settings: on the network 'caf' a node can't refuse anybody who reaches its port; use the network 'troupe', or allow "
      "it with --insecure");
  if (options.insecure && !options.certificates.empty())
    refuse("settings: --certificates lets in who proves who they are, --insecure lets everybody in; leave one of the two out");
  if (options.certificates.empty() && !options.revoked.empty())
    refuse("settings: --revoked '" + options.revoked + "' has no effect without --certificates; name the node's kit, too");
  if (options.certificates.empty() && !options.policy.empty())
    refuse("settings: --policy '" + options.policy +
           "' has no effect without --certificates: roles stand in certificates; name the node's kit, too");
  if (options.allow_scripts && !options.policy.empty())
    refuse("settings: with --policy '" + options.policy +
           R"(' the policy says which roles may send TorchScript ("scripts": true); leave out --allow-scripts)");
  if (options.certificates.empty() && !options.insecure && !is_loopback(options.host))
    refuse("settings: host " + options.host +
           " is reached from other machines, and this node has no certificate. Where the cluster's authority is (`troupe certs "
           "init` "
           "makes one), run `troupe certs node " +
           options.name + "`; copy " + options.name + ".pem to this host, and add --certificates " + options.name +
           ".pem. Or let everybody in who reaches the port, with --insecure");
}

void check_device_map(const std::string& peer, const device_names& names) {
  try {
    device_map::of(names);
  } catch (const error& why) {
    refuse("settings: the device map to node '" + peer + "': " + why.what());
  }
}

constexpr const char* shutdown_limit = "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT";
constexpr double most_seconds = 86'400;

}  // namespace

std::chrono::milliseconds stop_limit_of_environment() {
  const char* const given = std::getenv(shutdown_limit);  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
  if (given == nullptr) return std::chrono::seconds(10);
  const std::string_view text(given);
  double seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (problem != std::errc{} || end != text.data() + text.size() || !(seconds >= 0 && seconds <= most_seconds))
    refuse(std::string("the environment variable ") + shutdown_limit + ": expected a number of seconds from 0 to 86400, got '" +
           given + "'");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

bool valid_node_name(const std::string& name) noexcept {
  if (name.empty() || name.size() > 64 || name.front() == '.') return false;
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

void add_device_map(settings& to, const std::string& text) {
  const auto colon = text.find(':');
  const auto peer = text.substr(0, colon);
  if (colon == std::string::npos || !valid_node_name(peer))
    refuse("expected a device map 'PEER:DEVICE HERE=DEVICE THERE,...' such as 'stage1:cuda:0=cuda:1,cpu=cuda:0', got '" + text +
           "'");
  const auto map = device_map::parse(text.substr(colon + 1));
  if (!to.device_maps.try_emplace(peer, map.names()).second)
    refuse("node '" + peer + "' has two device maps; write all entries into one, got '" + text + "' after another map");
}

std::pair<std::string, std::uint16_t> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  auto host = colon == std::string::npos ? std::string{} : text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed)
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string::npos)
    host.clear();
  if (host.empty()) refuse("expected an address 'host:port' ('[::1]:4000' for IPv6), got '" + text + "'");
  return {host, static_cast<std::uint16_t>(
                  parse_number("port of '" + text + "'", std::string_view(text).substr(colon + 1), 1, 65535))};
}

std::pair<std::string, std::uint16_t> parse_page_address(const std::string& text) {
  if (text.find(':') != std::string::npos) return parse_address(text);
  return {"127.0.0.1", static_cast<std::uint16_t>(parse_number("port or host:port of the pages", text, 0, 65535))};
}

bool is_loopback(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

bool is_wildcard(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

bool may_be_advertised(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1) return !is_wildcard(host);
  constexpr std::string_view numbers = "0123456789.";
  constexpr std::string_view all = "0123456789._-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  return !host.empty() && host.size() <= 253 && host.front() != '.' && host.front() != '-' &&
         host.find_first_not_of(all) == std::string::npos && host.find_first_not_of(numbers) != std::string::npos;
}

network_kind network_named(const std::string& name) {
  if (name == "troupe") return network_kind::troupe;
  if (name == "caf") return network_kind::caf;
  refuse("--network: expected troupe or caf, got '" + name + "'");
}

severity severity_named(const std::string& name) {
  for (auto level : {severity::debug, severity::info, severity::warn, severity::error, severity::off})
    if (name == to_text(level)) return level;
  refuse("--log-level: expected debug, info, warn, error or off, got '" + name + "'");
}

line_format line_format_named(const std::string& name) {
  if (name == "text") return line_format::text;
  if (name == "json") return line_format::json;
  refuse("--log-format: expected text or json, got '" + name + "'");
}

void check(const settings& options) {
  if (!valid_node_name(options.name))
    refuse("settings: '" + options.name +
           "' is no name for a node: expected 1 to 64 letters, digits, '.', '_' or '-', "
           "not beginning with a dot");
  if (options.host.empty()) refuse("settings: the host to listen on is empty; 127.0.0.1 is the usual one");
  if (!options.advertise.empty() && !may_be_advertised(options.advertise))
    refuse("settings: advertise is '" + options.advertise +
           "', expected an address or a host name by which others reach this node, without a port");
  check_security(options);
  for (const auto& address : options.join) parse_address(address);
  if (!options.metrics.empty()) parse_page_address(options.metrics);
  if (!options.until_left.empty() && !valid_node_name(options.until_left))
    refuse("settings: until_left is '" + options.until_left + "', expected the name of a node");
  for (const auto& [peer, names] : options.device_maps) {
    if (!valid_node_name(peer)) refuse("settings: device_maps has a map for '" + peer + "', expected the name of a node");
    check_device_map(peer, names);
  }
  check_range("join_wait in ms", options.join_wait.count(), 0, most_milliseconds);
  check_range("workers", static_cast<long long>(options.workers), 1, most_workers);
  check_range("pass_workers", static_cast<long long>(options.pass_workers), 0, most_workers);
  check_range("deadline in ms", options.deadline.count(), 1, most_milliseconds);
  check_range("heartbeat in ms", options.heartbeat.count(), 1, most_milliseconds);
  check_range("short_work in microseconds", options.short_work.count(), 0, most_short_work);
  if (options.send_limit == 0) refuse("settings: send_limit is 0 bytes; expected at least 1");
  if (options.feedback_limit == 0)
    refuse(
      "settings: feedback_limit is 0 bytes; expected at least 1. To compress without error feedback, use bfloat16 or float16");
  check_range("forget_after in ms", options.forget_after.count(), 1, most_milliseconds);
  check_range("stop_limit in ms", options.stop_limit.count(), 0, most_milliseconds);
}

settings::settings(int argc, char** argv) : settings(argc, argv, false) {}

settings settings::take(int& argc, char** argv) { return {argc, argv, true}; }

settings::settings(int& argc, char** argv, bool leave_rest) {
  CLI::App app;
  app.set_help_flag();
  add(app, "--name", [this](const std::string& text) { name = text; });
  add(app, "--host", [this](const std::string& text) { host = text; });
  add(app, "--advertise", [this](const std::string& text) { advertise = text; });
  add(app, "--port",
      [this](const std::string& text) { port = static_cast<std::uint16_t>(parse_number("--port", text, 0, 65535)); });
  app.add_option("--join", join)->allow_extra_args(false)->each([](const std::string& text) {
    refuse_option_as_value("--join", text);
  });
  add(app, "--join-wait", [this](const std::string& text) {
    join_wait = std::chrono::seconds(parse_number("--join-wait", text, 0, most_milliseconds / 1000));
  });
  add(app, "--workers", [this](const std::string& text) { workers = parse_number("--workers", text, 1, most_workers); });
  add(app, "--pass-workers",
      [this](const std::string& text) { pass_workers = parse_number("--pass-workers", text, 0, most_workers); });
  add(app, "--deadline-ms", [this](const std::string& text) {
    deadline = std::chrono::milliseconds(parse_number("--deadline-ms", text, 1, most_milliseconds));
  });
  add(app, "--heartbeat-ms", [this](const std::string& text) {
    heartbeat = std::chrono::milliseconds(parse_number("--heartbeat-ms", text, 1, most_milliseconds));
  });
  add(app, "--short-work-us", [this](const std::string& text) {
    short_work = std::chrono::microseconds(parse_number("--short-work-us", text, 0, most_short_work));
  });
  add(app, "--stop-limit", [this](const std::string& text) {
    stop_limit = std::chrono::seconds(parse_number("--stop-limit", text, 0, most_milliseconds / 1000));
  });
  add(app, "--forget-after", [this](const std::string& text) {
    forget_after = std::chrono::seconds(parse_number("--forget-after", text, 1, most_milliseconds / 1000));
  });
  add(app, "--send-limit", [this](const std::string& text) {
    send_limit = static_cast<std::uint64_t>(parse_number("--send-limit", text, 1, most_mebibytes)) << 20;
  });
  add(app, "--feedback-limit", [this](const std::string& text) {
    feedback_limit = static_cast<std::uint64_t>(parse_number("--feedback-limit", text, 1, most_mebibytes)) << 20;
  });
  app.add_flag("!--no-direct-memory", direct_memory);
  app.add_flag("!--no-shared-memory", shared_memory);
  add(app, "--certificates", [this](const std::string& text) { certificates = text; });
  add(app, "--policy", [this](const std::string& text) { policy = text; });
  add(app, "--revoked", [this](const std::string& text) { revoked = text; });
  app.add_flag("--insecure", insecure);
  add(app, "--network", [this](const std::string& text) { network = network_named(text); });
  add(app, "--log-level", [this](const std::string& text) { log_level = severity_named(text); });
  add(app, "--log-file", [this](const std::string& text) { log_file = text; });
  add(app, "--log-format", [this](const std::string& text) { log_format = line_format_named(text); });
  add(app, "--data-dir", [this](const std::string& text) { data_dir = text; });
  add(app, "--metrics", [this](const std::string& text) { metrics = text; });
  add(app, "--until-left", [this](const std::string& text) { until_left = text; });
  app
    .add_option_function<std::vector<std::string>>("--device-map",
                                                   [this](const std::vector<std::string>& all) {
                                                     for (const auto& text : all) {
                                                       refuse_option_as_value("--device-map", text);
                                                       add_device_map(*this, text);
                                                     }
                                                   })
    ->allow_extra_args(false);
  app.add_flag("--trace", trace);
  app.add_flag("--profile", profile);
  app.add_flag("--allow-scripts", allow_scripts);
  app.add_flag("--carry-autocast", carry_autocast);
  app.add_flag("!--no-detached-warning", warn_detached);

  const auto arguments =
    leave_rest ? take_known(app, argc, argv) : std::vector<std::string>(argv + std::min(argc, 1), argv + argc);
  refuse_misread_values(app, arguments);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& mistake) {
    refuse(app, arguments, mistake);
  }
  check(*this);
}

}  // namespace troupe
