// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/settings.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <charconv>
#include <string_view>

#include <troupe/messages/errors.hpp>

namespace troupe {

namespace {

constexpr const char* known_options =
  "--name=, --host=, --port=, --join=, --workers=, --deadline-ms=, --heartbeat-ms=, --no-direct-memory, "
  "--no-shared-memory, --network=, --log-level=, --log-file=, --trace and --profile";

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
constexpr std::uint64_t most_milliseconds = 7ull * 24 * 3600 * 1000;

void check_range(const char* what, long long value, long long least, long long most) {
  if (value < least || value > most)
    refuse("settings: " + std::string(what) + " is " + std::to_string(value) + ", expected " + std::to_string(least) + " to " +
           std::to_string(most));
}

}  // namespace

bool valid_node_name(const std::string& name) noexcept {
  if (name.empty() || name.size() > 64 || name.front() == '.') return false;
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
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

bool is_loopback(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
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

void check(const settings& options) {
  if (!valid_node_name(options.name))
    refuse("settings: '" + options.name +
           "' is no name for a node: expected 1 to 64 letters, digits, '.', '_' or '-', "
           "not beginning with a dot");
  if (options.host.empty()) refuse("settings: the host to listen on is empty; 127.0.0.1 is the usual one");
  for (const auto& address : options.join) parse_address(address);
  check_range("workers", static_cast<long long>(options.workers), 1, most_workers);
  check_range("deadline in ms", options.deadline.count(), 1, most_milliseconds);
  check_range("heartbeat in ms", options.heartbeat.count(), 1, most_milliseconds);
}

settings::settings(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto equals = argument.find('=');
    const auto option = argument.substr(0, equals);
    if (argument == "--profile") {
      profile = true;
      continue;
    }
    if (argument == "--no-direct-memory") {
      direct_memory = false;
      continue;
    }
    if (argument == "--no-shared-memory") {
      shared_memory = false;
      continue;
    }
    if (argument == "--trace") {
      trace = true;
      continue;
    }
    const std::string value(equals == std::string_view::npos ? std::string_view{} : argument.substr(equals + 1));
    const auto number = [&](std::uint64_t least, std::uint64_t most) { return parse_number(option, value, least, most); };
    const bool valued = option == "--name" || option == "--host" || option == "--port" || option == "--join" ||
                        option == "--workers" || option == "--deadline-ms" || option == "--heartbeat-ms" ||
                        option == "--network" || option == "--log-level" || option == "--log-file";
    if (!valued) refuse("unknown option '" + std::string(argument) + "'; a node takes " + known_options);
    if (value.empty()) refuse(std::string(option) + ": expected a value, as in " + std::string(option) + "=VALUE");
    if (option == "--name")
      name = value;
    else if (option == "--host")
      host = value;
    else if (option == "--port")
      port = static_cast<std::uint16_t>(number(0, 65535));
    else if (option == "--join")
      join.push_back(value);
    else if (option == "--network")
      network = network_named(value);
    else if (option == "--log-level")
      log_level = severity_named(value);
    else if (option == "--log-file")
      log_file = value;
    else if (option == "--workers")
      workers = number(1, most_workers);
    else if (option == "--deadline-ms")
      deadline = std::chrono::milliseconds(number(1, most_milliseconds));
    else
      heartbeat = std::chrono::milliseconds(number(1, most_milliseconds));
  }
  check(*this);
}

}  // namespace troupe
