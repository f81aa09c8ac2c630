// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/settings.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <charconv>
#include <cstdlib>
#include <string_view>

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

}  // namespace troupe
