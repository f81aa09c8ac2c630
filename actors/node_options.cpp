// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/node_options.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include <troupe/actors/support/texts.hpp>
#include <troupe/devices/device_map.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe {

namespace {

using number = node_option::number;
using text = node_option::text;
using choice = node_option::choice;
using list = node_option::list;
using flag = node_option::flag;

constexpr std::int64_t week_s = 7 * 24 * 3600;
constexpr std::int64_t most_threads = 1024;
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t most_mebibytes = std::int64_t{1} << 30;

constexpr std::int64_t most_of_all = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const std::string& text) { throw error(errc::misuse, text); }

/// Makes the option for a member of `settings` that is a whole number or a time. The number of a time is its count().
template <auto Member>
number number_of(std::int64_t least, std::int64_t most, std::int64_t unit = 1, const char* unit_of_setting = "") {
  using type = std::remove_cvref_t<decltype(settings{}.*Member)>;
  const auto get = [](const settings& of) {
    if constexpr (std::is_integral_v<type>)
      return static_cast<std::int64_t>(std::min<std::uint64_t>(of.*Member, most_of_all));
    else
      return static_cast<std::int64_t>((of.*Member).count());
  };
  return {
    get, [](settings& to, std::int64_t value) { to.*Member = static_cast<type>(value); }, least, most, unit, unit_of_setting};
}

/// The text of the troupe::error that `run` throws; empty if `run` throws none.
template <class F>
std::optional<std::string> failure_of(F run) {
  try {
    run();
    return std::nullopt;
  } catch (const error& why) {
    return why.what();
  }
}

std::string device_map_text(const std::string& peer, const device_names& names) {
  return peer + ":" + device_map::of(names).text();
}

std::vector<node_option> make_table() {
  return {
    {"--name", "name", "NAME",
     text{&settings::name, "1 to 64 letters, digits, '.', '_' or '-', not beginning with a dot",
          [](auto& name) { return valid_node_name(name); }},
     "Name in the cluster"},
    {"--host", "host", "HOST",
     text{&settings::host, "an address or a host name; 127.0.0.1 is the usual one", [](auto& host) { return !host.empty(); }},
     "Address or host name to listen on; 0.0.0.0, or :: with IPv6: all addresses"},
    {"--advertise", "advertise", "HOST",
     text{&settings::advertise, "an address or a host name by which others reach this node, without a port",
          [](auto& host) { return host.empty() || may_be_advertised(host); }},
     "Address or host name by which nodes of other hosts reach this one, if it is not the one to listen on"},
    {"--port", "port", "PORT", number_of<&settings::port>(0, 65535), "Port to listen on; 0: any free one"},
    {"--join", "join", "HOST:PORT",
     list{[](const settings& of) { return of.join; },
          [](settings& to, const std::string& address) {
            parse_address(address);
            to.join.push_back(address);
          }},
     "Address of a seed, a node to join; may repeat: the node is ready once it has met one of them, and goes on to dial the "
     "others; its own "
     "address among them means that it may be the first one"},
    {"--join-wait", "join_wait", "SECONDS", number_of<&settings::join_wait>(0, week_s, 1000, "ms"),
     "How long to wait for a seed; 0: for ever"},
    {"--workers", "workers", "CALLS", number_of<&settings::workers>(1, most_threads), "Remote calls that run at once"},
    {"--pass-workers", "pass_workers", "THREADS", number_of<&settings::pass_workers>(0, most_threads),
     "Threads that run large functions of passes, in parallel; with one or more, each accelerator has a thread, too"},
    {"--deadline-ms", "deadline", "MILLISECONDS", number_of<&settings::deadline>(1, week_s * 1000, 1, "ms"),
     "How long a call, a pass or a lookup may take"},
    {"--heartbeat-ms", "heartbeat", "MILLISECONDS", number_of<&settings::heartbeat>(1, week_s * 1000, 1, "ms"),
     "Time between two heartbeats; a peer that answers none of 3 is unreachable"},
    {"--forget-after", "forget_after", "SECONDS", number_of<&settings::forget_after>(1, week_s, 1000, "ms"),
     "Time after which an unreachable peer is gone: its objects and contexts are dropped"},
    {"--stop-limit", "stop_limit", "SECONDS", number_of<&settings::stop_limit>(0, week_s, 1000, "ms"),
     "How long the end of the node waits for calls and passes that still run here"},
    {"--short-work-us", "short_work", "MICROSECONDS", number_of<&settings::short_work>(0, 1'000'000, 1, "us"),
     "Time below which a network thread runs calls and parts of passes itself; 0: none"},
    {"--send-limit", "send_limit", "MiB", number_of<&settings::send_limit>(1, most_mebibytes, mebibyte, "bytes"),
     "Calls to a peer, answers and gradients that may be under way; what sends more waits until the peer keeps up"},
    {"--feedback-limit", "feedback_limit", "MiB", number_of<&settings::feedback_limit>(1, most_mebibytes, mebibyte, "bytes"),
     "What rounding has taken from gradients that left as int8, kept for error feedback; as much as these gradients have is "
     "enough"},
    {"--until-left", "until_left", "NAME",
     text{&settings::until_left, "the name of a node", [](auto& name) { return name.empty() || valid_node_name(name); }},
     "Stop when the peer with this name is gone: it has left, has ended, or was unreachable for long"},
    {"--data-dir", "data_dir", "DIR", text{&settings::data_dir},
     "The only folder that other nodes may make this node write to and read from; it is made if it is not there; without it "
     "they may name no "
     "path"},
    {"--metrics", "metrics", "PORT",
     text{&settings::metrics, "a port from 0 to 65535, or HOST:PORT",
          [](auto& address) { return address.empty() || !failure_of([&] { parse_page_address(address); }); }},
     "Serve /healthz and /metrics (Prometheus) by HTTP at this port of loopback (0: any free one), or at HOST:PORT"},
    {"--device-map", "device_maps", "PEER:MAP",
     list{[](const settings& of) {
            std::vector<std::string> all;
            for (const auto& [peer, names] : of.device_maps) all.push_back(device_map_text(peer, names));
            return all;
          },
          add_device_map},
     "Which devices of a peer get the tensors of this node's devices in calls to the peer: PEER:cuda:0=cuda:1,cpu=cuda:0; once "
     "for each peer"},
    {"--no-direct-memory", "direct_memory", "", flag{&settings::direct_memory, false},
     "Send large tensors as messages: processes of this machine then do not read this process's memory"},
    {"--no-shared-memory", "shared_memory", "", flag{&settings::shared_memory, false},
     "Exchange messages and large tensors with processes of this machine by TCP, not in memory"},
    {"--network", "network", "KIND",
     choice{[](const settings& of) { return std::string(of.network == network_kind::caf ? "caf" : "troupe"); },
            [](settings& to, const std::string& name) { to.network = network_named(name); },
            {"troupe", "caf"}},
     "What carries messages: troupe's own network threads, or CAF's, which are slower, know no shared memory and need "
     "--insecure"},
    {"--trace", "trace", "", flag{&settings::trace}, "Record spans from the start"},
    {"--profile", "profile", "", flag{&settings::profile}, "Profile the operators of calls and passes from the start"},
    {"--allow-scripts", "allow_scripts", "", flag{&settings::allow_scripts},
     "Run TorchScript modules that other nodes send; TorchScript is code"},
    {"--carry-autocast", "carry_autocast", "", flag{&settings::carry_autocast},
     "Send the caller's autocast with the node's calls"},
    {"--no-detached-warning", "warn_detached", "", flag{&settings::warn_detached, false},
     "Do not warn when a tensor that requires grad leaves outside any context"},
    {"--certificates", "certificates", "FILE", text{&settings::certificates},
     "A kit that `troupe certs node` made; a node needs the one with its name. With a kit this program talks only to nodes of "
     "its cluster, by "
     "TLS 1.3; without one, only to programs of the same user on this machine",
     "Security"},
    {"--revoked", "revoked", "FILE", text{&settings::revoked},
     "The cluster's list of revoked certificates; read again when it changes", "Security"},
    {"--insecure", "insecure", "", flag{&settings::insecure},
     "Talk to everybody who reaches the port, in plain text; only for a network that is closed to others", "Security"},
    {"--policy", "policy", "FILE", text{&settings::policy},
     "A file that says what the nodes of each role may do with this node: see docs/operations.md. Without it every node of the "
     "cluster may do "
     "everything but send code and name paths",
     "Security"},
    {"--log-level", "log_level", "LEVEL",
     choice{[](const settings& of) { return std::string(to_text(of.log_level)); },
            [](settings& to, const std::string& name) { to.log_level = severity_named(name); },
            {"debug", "info", "warn", "error", "off"}},
     "The least that nodes log", "Log"},
    {"--log-file", "log_file", "FILE", text{&settings::log_file}, "File to append the log to, instead of stderr", "Log"},
    {"--log-format", "log_format", "FORMAT",
     choice{[](const settings& of) { return std::string(of.log_format == line_format::json ? "json" : "text"); },
            [](settings& to, const std::string& name) { to.log_format = line_format_named(name); },
            {"text", "json"}},
     "Lines for people, or an object of JSON in each line", "Log"},
  };
}

std::optional<std::int64_t> read_number(const number& of, const std::string& text) {
  std::int64_t result = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), result);
  const bool is_read = problem == std::errc{} && end == text.data() + text.size();
  return is_read && result >= of.least && result <= of.most ? std::optional(result) : std::nullopt;
}

template <class... Cases>
struct by_kind : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
by_kind(Cases...) -> by_kind<Cases...>;

const node_option* find_option(std::string_view name) {
  const auto all = node_options();
  const auto found = std::ranges::find(all, name, &node_option::name);
  return found == all.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_unknown(std::string_view argument) {
  std::string known;
  for (const auto& each : node_options())
    known += (known.empty() ? "" : ", ") + std::string(each.name) + (each.is_flag() ? "" : "=");
  refuse("unknown option '" + std::string(argument) + "'; a node takes " + known);
}

void check_range(const node_option& option, const number& of, std::int64_t value) {
  const auto most = of.unit_of_setting == std::string_view("bytes") ? most_of_all : of.most * of.unit;
  if (value >= of.least && value <= most) return;
  const auto unit = *of.unit_of_setting == '\0' ? "" : std::string(" ") + of.unit_of_setting;
  refuse("settings: " + std::string(option.setting) + " is " + std::to_string(value) + unit + ", expected " +
         std::to_string(of.least) + " to " + std::to_string(most));
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

}  // namespace

std::string node_option::wrong(const std::string& value_text) const {
  const bool is_right = std::visit(
    by_kind{[&](const number& of) { return read_number(of, value_text).has_value(); },
            [&](const struct text& of) { return of.is_right == nullptr || of.is_right(value_text); },
            [&](const choice& of) { return std::ranges::count(of.names, value_text) > 0; }, [](const auto&) { return true; }},
    kind);
  if (!is_right) return "expected " + expected() + ", got '" + value_text + "'";
  settings scratch;
  const auto* const many = std::get_if<list>(&kind);
  return many == nullptr ? "" : failure_of([&] { many->add(scratch, value_text); }).value_or("");
}

void node_option::set(settings& to, const std::string& value_text) const {
  auto problem = wrong(value_text);
  if (problem.empty())
    std::visit(
      by_kind{[&](const number& of) { of.set(to, *read_number(of, value_text) * of.unit); },
              [&](const struct text& of) { to.*of.where = value_text; }, [&](const choice& of) { of.set(to, value_text); },
              [&](const list& of) { problem = failure_of([&] { of.add(to, value_text); }).value_or(""); },
              [&](const flag& of) { to.*of.where = of.value; }},
      kind);
  if (!problem.empty()) refuse(std::string(name) + ": " + problem);
}

std::vector<std::string> node_option::texts(const settings& of) const {
  using all = std::vector<std::string>;
  return std::visit(by_kind{[&](const number& by) { return all{std::to_string(by.get(of) / by.unit)}; },
                            [&](const struct text& by) { return (of.*by.where).empty() ? all{} : all{of.*by.where}; },
                            [&](const choice& by) { return all{by.get(of)}; }, [&](const list& by) { return by.get(of); },
                            [&](const flag& by) { return of.*by.where == by.value ? all{""} : all{}; }},
                    kind);
}

std::vector<std::string> node_option::arguments(const settings& of) const {
  std::vector<std::string> result;
  for (auto& each : texts(of)) {
    result.emplace_back(name);
    if (!is_flag()) result.push_back(std::move(each));
  }
  return result;
}

std::string node_option::bounds() const {
  if (const auto* of = std::get_if<number>(&kind)) return std::to_string(of->least) + " to " + std::to_string(of->most);
  if (const auto* of = std::get_if<choice>(&kind)) return support::joined_by_or(of->names);
  return {};
}

std::string node_option::expected() const {
  if (const auto* of = std::get_if<struct text>(&kind)) return std::string(of->expected);
  return (std::holds_alternative<number>(kind) ? "a whole number from " : "") + bounds();
}

std::string node_option::field() const {
  std::string result(name.substr(name.starts_with("--no-") ? 5 : 2));
  std::ranges::replace(result, '-', '_');
  return result;
}

std::span<const node_option> node_options() {
  static const auto table = make_table();
  return table;
}

const node_option& node_option_named(std::string_view name) {
  const auto* const option = find_option(name);
  TROUPE_EXPECT(option != nullptr);
  return *option;
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

void check(const settings& options) {
  for (const auto& each : node_options())
    if (const auto* number = std::get_if<node_option::number>(&each.kind))
      check_range(each, *number, number->get(options));
    else if (const auto* text = std::get_if<node_option::text>(&each.kind);
             text != nullptr && text->is_right != nullptr && !text->is_right(options.*text->where))
      refuse("settings: " + std::string(each.setting) + " is '" + options.*text->where + "', expected " +
             std::string(text->expected));
  check_security(options);
  for (const auto& address : options.join) parse_address(address);
  for (const auto& [peer, names] : options.device_maps) {
    if (!valid_node_name(peer)) refuse("settings: device_maps has a map for '" + peer + "', expected the name of a node");
    if (const auto why = failure_of([&, of = std::cref(names)] { device_map::of(of); }))
      refuse("settings: the device map to node '" + peer + "': " + *why);
  }
}

settings::settings(int argc, char** argv) : settings(argc, argv, false) {}

settings settings::take(int& argc, char** argv) { return {argc, argv, true}; }

settings::settings(int& argc, char** argv, bool leave_rest) {
  std::map<std::string_view, int> times;
  const auto is_option = [&](std::string_view text) { return text.starts_with("--"); };
  int left = std::min(argc, 1);
  bool all_stay = false;
  for (int i = left; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto equals = argument.find('=');
    all_stay = all_stay || argument == "--";
    const auto* option = all_stay ? nullptr : find_option(argument.substr(0, equals));
    if (option == nullptr && !leave_rest) refuse_unknown(argument);
    if (option == nullptr) {
      argv[left++] = argv[i];
      continue;
    }
    const std::string name(option->name);
    const bool has_value = equals != std::string_view::npos;
    std::string value(has_value ? argument.substr(equals + 1) : std::string_view());
    if (option->is_flag() && has_value) refuse(name + ": expected no value, got '" + value + "'");
    if (!option->is_flag()) {
      if (has_value ? value.empty() : i + 1 == argc) refuse(name + ": expected a value, as in " + name + "=VALUE");
      if (!has_value) value = argv[++i];
      if (is_option(value)) refuse(name + ": expected a value, got the option '" + value + "'");
    }
    option->set(*this, value);
    if (!option->may_repeat()) ++times[option->name];
  }
  for (const auto& [name, count] : times)
    if (count > 1) refuse(std::string(name) + ": expected once, got " + std::to_string(count) + " times");
  if (leave_rest && left < argc) argv[left] = nullptr;
  if (leave_rest) argc = left;
  check(*this);
}

}  // namespace troupe
