// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/system_config.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include <caf/atom.hpp>
#include <caf/io/middleman.hpp>
#include <caf/timespan.hpp>

#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/network/quiet_scheduler.hpp>
#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/registration.hpp>

namespace troupe::nodes {

namespace {

// Limits on bytes of tensors that came from one sender ahead of their messages. The larger limit counts. A sender holds
// messages back beyond its send limit, but separately for calls of each depth, for answers and for gradients: so one sender may
// need several send limits.
constexpr std::uint64_t least_of_sender = std::uint64_t{8} << 30;
constexpr std::uint64_t send_limits_of_sender = 8;

std::shared_ptr<rights::policy_file> policy_for(const settings& options) {
  if (options.policy.empty()) return nullptr;
  try {
    return std::make_shared<rights::policy_file>(options.policy);
  } catch (const std::runtime_error& problem) {
    throw error(errc::misuse, std::string("--policy: ") + problem.what());
  }
}

gate::connection_gate gate_for(const settings& options) {
  if (!options.certificates.empty())
    return gate::connection_gate(std::make_shared<gate::credentials>(options.certificates, options.revoked),
                                 policy_for(options));
  using rule = gate::connection_gate::rule;
  return gate::connection_gate(options.insecure ? rule::anyone : rule::same_user);
}

}  // namespace

system_config::system_config(const settings& options) : gate_(gate_for(options)) {
  arriving().limit_sender(std::max(least_of_sender, send_limits_of_sender * options.send_limit));
  troupe::add_message_types(*this);  // not the template of the same name
  // A blocking request to a local actor takes 15 us with one shared queue. It takes 86 us with work stealing, because idle
  // workers sleep.
  set("scheduler.policy", caf::atom("sharing"));
  // The pool has little work, because actors that compute are detached and brokers run on the network threads.
  set("scheduler.max-threads", std::size_t{2});
  // The network threads read messages themselves, because a thread in between would double the time of a round trip.
  set("middleman.workers", std::size_t{0});
  set("middleman.heartbeat-interval", caf::timespan{0});
  set("middleman.connection-timeout", caf::timespan{std::chrono::hours{24}});
  caf::put(content, "troupe.shared-memory", options.shared_memory);  // shared_multiplexer reads this
  const bool own_network = options.network == network_kind::troupe;
  own_network ? load<caf::io::middleman, network::shared_multiplexer>() : load<caf::io::middleman>();
  if (options.configure) options.configure(*this);
  if (own_network && caf::get_or(*this, "scheduler.policy", caf::atom("")) == caf::atom("sharing"))
    load<network::quiet_scheduler>();
}

system_config::system_config(for_tests) {
  troupe::add_message_types(*this);  // not the template of the same name
  set("scheduler.policy", caf::atom("testing"));
}

}  // namespace troupe::nodes
