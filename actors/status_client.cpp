// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/status_client.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>

#include <troupe/actors/membership/dialer.hpp>
#include <troupe/actors/nodes/status_survey.hpp>
#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe {

struct status_client::connection {
  explicit connection(const settings& how) : config(how) {}
  nodes::system_config config;
  caf::actor_system system{config};
  caf::actor gateway;
};

namespace {

/// The host that a node says it listens on, or `known` if that host is a wildcard.
std::string reached_by(const std::string& told, const std::string& known) { return is_wildcard(told) ? known : told; }

error explain(const caf::error& from, const std::string& where, std::chrono::milliseconds deadline) {
  if (from == caf::sec::request_timeout)
    return {errc::deadline_passed, "no answer from " + where + " within " + support::seconds_text(deadline)};
  if (from == caf::sec::unexpected_message) return {errc::refused, "what listens at " + where + " is no troupe node"};
  if (from == caf::sec::cannot_connect_to_node)
    return {errc::unknown_peer, "no node listens at " + where + "; is it started, and are host and port right?"};
  if (from.category() == caf::error(errc::misuse).category()) return to_exception(from);  // its text names the address
  return to_exception(from, "asking " + where);
}

}  // namespace

status_client::status_client(std::string host, std::uint16_t port, std::chrono::milliseconds deadline, const settings& how)
    : host_(host),
      where_((host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port)),
      connection_(std::make_unique<connection>(how)) {
  const support::logger_release lets_go;
  caf::scoped_actor self{connection_->system};
  const auto dialer = membership::spawn_dialer(connection_->system);
  const auto left = std::int64_t{std::chrono::nanoseconds(deadline).count()};
  caf::error failure;
  self->request(dialer, deadline + std::chrono::seconds(1), caf::connect_atom::value, std::move(host), port, left)
    .receive(
      [&](const caf::node_id&, caf::strong_actor_ptr& gateway, const std::set<std::string>&) {
        if (gateway)
          connection_->gateway = caf::actor_cast<caf::actor>(gateway);
        else
          failure = caf::sec::unexpected_message;
      },
      [&](caf::error& reason) { failure = std::move(reason); });
  self->send_exit(dialer, caf::exit_reason::user_shutdown);
  if (failure) throw explain(failure, where_, deadline);
}

status_client::~status_client() = default;

node_status status_client::ask(std::chrono::milliseconds deadline) {
  const support::logger_release lets_go;
  caf::scoped_actor self{connection_->system};
  node_status result;
  self->request(connection_->gateway, deadline, support::status_atom::value)
    .receive([&](node_status& all) { result = std::move(all); },
             [&](const caf::error& reason) { throw explain(reason, where_, deadline); });
  result.self.host = reached_by(result.self.host, host_);
  return result;
}

cluster_status status_client::ask_cluster(std::chrono::milliseconds deadline) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  cluster_status result{ask(deadline), {}};
  auto survey = std::make_shared<nodes::status_survey>();
  survey->gateway = connection_->gateway;
  for (const auto& each : result.asked.peers) {
    result.others.push_back({each, {}, each.up ? std::string{} : each.reason});
    if (each.up) survey->members.push_back(each.who.id);
  }
  survey->limit = std::max<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now(), std::chrono::milliseconds(1));
  const auto each_limit = std::chrono::ceil<std::chrono::milliseconds>(survey->limit_of_each());
  const support::logger_release lets_go;
  caf::scoped_actor self{connection_->system};
  const auto asker = nodes::spawn_status_survey(connection_->system);
  self->request(asker, deadline + std::chrono::seconds(1), survey)
    .receive([](const nodes::status_survey_ptr&) {},
             [&](const caf::error& reason) { throw explain(reason, where_, deadline); });
  self->send_exit(asker, caf::exit_reason::user_shutdown);
  auto next = survey->answers.begin();
  for (auto& each : result.others) {
    if (!each.seen.up) continue;
    auto& [status, problem] = *next++;
    each.status = std::move(status);
    if (each.status)
      each.status->self.host = reached_by(each.status->self.host, each.seen.who.host);
    else
      each.problem = explain(problem, where_, each_limit).what();
  }
  return result;
}

}  // namespace troupe
