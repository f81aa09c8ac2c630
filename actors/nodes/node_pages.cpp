// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/node_pages.hpp>

#include <utility>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/membership/member_table.hpp>
#include <troupe/actors/metrics/metrics_text.hpp>
#include <troupe/actors/nodes/node_runtime.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

node_pages::node_pages(node_runtime& of) : of_(of) {
  auto& services = of_.services();
  const auto [host, port] = parse_page_address(services.options.metrics);
  server_ = std::make_unique<metrics::page_server>(host, port, [this](const std::string& path) { return make(path); });
  port_ = server_->port();
  services.log.info("nodes",
                    [&, name = host] { return "serves /healthz and /metrics at " + membership::address_text(name, port_); });
}

node_pages::~node_pages() { end(); }

void node_pages::end() {
  std::unique_ptr<metrics::page_server> server;
  const checked_lock lock(mutex_);
  server.swap(server_);
}

metrics::page node_pages::make(const std::string& path) {
  if (path == "/healthz") return health();
  if (path != "/metrics") return {404, {}, "expected /healthz or /metrics\n"};
  try {
    return {200, metrics::text_type, metrics::metrics_text(status())};
  } catch (const error& problem) {
    return {503, {}, problem.what() + std::string("\n")};
  }
}

metrics::page node_pages::health() {
  if (const auto reason = why_not(); !reason.empty()) return {503, {}, reason + "\n"};
  try {
    status();
  } catch (const error& problem) {
    return {503, {}, problem.what() + std::string("\n")};
  }
  return {200, {}, "node '" + of_.services().self.name() + "' serves\n"};
}

std::string node_pages::why_not() const {
  const auto who = "node '" + of_.services().self.name() + "' ";
  switch (state_) {
    case state::starts:
      return who + "starts: it has not joined the nodes that it was told to join";
    case state::stops:
      return who + "stops";
    case state::serves:
      break;
  }
  return {};
}

const node_status& node_pages::status() {
  const auto now = std::chrono::steady_clock::now();
  if (asked_ == std::chrono::steady_clock::time_point{} || now - asked_ >= memory) {
    problem_ = {errc::none, {}};
    const support::logger_release lets_go;
    caf::scoped_actor self{*of_.services().actors.system};
    self->request(of_.services().actors.gateway, patience, support::status_atom::value)
      .receive([&](node_status& all) { last_ = std::move(all); },
               [&](const caf::error& reason) {
                 problem_ = to_exception(reason, "the status of node '" + of_.services().self.name() + "'");
               });
    asked_ = std::chrono::steady_clock::now();
  }
  if (problem_.code() != errc::none) throw error(problem_);
  return last_;
}

}  // namespace troupe::nodes
