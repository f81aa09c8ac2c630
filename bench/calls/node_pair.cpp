// SPDX-License-Identifier: BSD-3-Clause
#include "node_pair.hpp"

#include <filesystem>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/actors/certificates/authority.hpp>

#include "../support/failing_passes.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

struct empty_module final : module {
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return {}; }
};

std::string kit_in(const scratch_folder& kits, const std::string& name) { return kits.path() / (name + ".pem"); }

void make_kits(const scratch_folder& kits) {
  using certificates::authority;
  const auto now = std::chrono::system_clock::now();
  const auto of_cluster = authority::create(kits.path() / "authority", "bench", now);
  for (const std::string name : {"a", "b"})
    certificates::write_kit(of_cluster.issue(name, "member", {}, now, authority::own_life), kit_in(kits, name));
}

settings settings_of(const std::string& name, const pair_settings& how, const scratch_folder& kits) {
  settings result;
  result.name = name;
  result.network = how.by == carrier::caf ? network_kind::caf : network_kind::troupe;
  result.insecure = how.by == carrier::caf;
  result.log_level = severity::error;  // without the warning of --insecure for each pair
  result.shared_memory = how.by == carrier::shared_memory;
  if (how.by == carrier::tls) result.certificates = kit_in(kits, name);
  result.short_work = how.short_work;
  result.workers = how.workers;
  result.configure = how.configure;
  return result;
}

void add_functions(node& here) {
  here.functions().add(
    "add", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(1)}}; });
  here.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
  here.functions().add("spin", [](call_arguments& arguments) {
    for (const auto until = clock::now() + std::chrono::microseconds(get<std::int64_t>(arguments.values, "us"));
         clock::now() < until;) {
    }
    return call_reply{};
  });
  here.functions().add("compute", [](call_arguments&) {
    compute(std::chrono::milliseconds(50));
    return call_reply{};
  });
  here.functions().add("resident", [](call_arguments&) { return call_reply{{}, {{"bytes", resident_bytes()}}}; });
  here.functions().add("forget_peak", [](call_arguments&) {
    forget_peak();
    return call_reply{};
  });
  here.functions().add("peak", [](call_arguments&) { return call_reply{{}, {{"bytes", peak_bytes()}}}; });
  add_throwing_function(here);
  add_module_type(here, "empty", [](const attributes&) { return std::make_shared<empty_module>(); });
}

void serve(const settings& options, const std::function<void(std::uint16_t)>& tell_port, int stop) {
  node here{options};
  add_functions(here);
  tell_port(here.port());
  wait_for(stop);
}

}  // namespace

node_pair::node_pair(pair_settings how)
    : server_([&](int stop, const auto& tell) {
        if (how.by == carrier::tls) make_kits(kits_);
        serve(settings_of("b", how, kits_), tell, stop);
      }) {
  const auto port = server_.told();
  here_.emplace(settings_of("a", how, kits_));
  to_.emplace(here_->peer(here_->join("127.0.0.1", port)));
}

void compute(std::chrono::microseconds for_long) {
  auto x = at::ones({4096});
  for (const auto until = clock::now() + for_long; clock::now() < until;) x = x.sin();
}

}  // namespace troupe::bench
