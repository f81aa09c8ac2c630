// SPDX-License-Identifier: BSD-3-Clause
// Reads an input as the bytes of a connection: headers, fragments, payloads, and the rules of what may come. What the rules let through on a
// connection with certificates is read by CAF: at an exception, or where CAF takes more memory than libFuzzer allows, the target ends.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/error.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/message.hpp>
#include <caf/node_id.hpp>
#include <caf/proxy_registry.hpp>
#include <caf/scoped_execution_unit.hpp>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/network/message_rules.hpp>
#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/rights/policy.hpp>

#include "actors/network/basp_messages.hpp"
#include "actors/temporary_folder.hpp"
#include "frames.hpp"
#include "fuzzer.hpp"

namespace {

/// A type of the program's own.
struct own_value {
  std::string text;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& from, own_value& x) {
  return from(x.text);
}

std::string to_string(const own_value& x) { return x.text; }

}  // namespace

namespace troupe::fuzz {

namespace {

/// Reads as CAF's broker does, but makes no actors.
class reader_of_caf final : public caf::proxy_registry::backend {
 public:
  reader_of_caf() {
    config_.add_message_type<own_value>(own_type);
    system_ = std::make_unique<caf::actor_system>(config_);
    proxies_ = std::make_unique<caf::proxy_registry>(*system_, *this);
    unit_ = std::make_unique<caf::scoped_execution_unit>(system_.get());
    unit_->proxy_registry_ptr(proxies_.get());
  }

  void read(std::string_view message) {
    using caf::io::basp::message_type;
    const auto kind = static_cast<message_type>(network::message_head::read(message.data()).operation);
    message.remove_prefix(network::message_head::bytes);
    caf::binary_deserializer from(unit_.get(), message.data(), message.size());
    caf::node_id sender;
    caf::node_id receiver;
    const bool is_direct = kind == message_type::direct_message;
    if (!is_direct && kind != message_type::routed_message && kind != message_type::down_message) return;
    if (!is_direct && from(sender, receiver)) return;
    caf::error reason;
    std::vector<caf::strong_actor_ptr> stages;
    caf::message content;
    // CAF's broker does not look at the results either: an unreadable message is an empty one.
    if (kind == message_type::down_message)
      static_cast<void>(from(reason));
    else
      static_cast<void>(from(stages, content));
    proxies_->clear();
  }

 private:
  caf::strong_actor_ptr make_proxy(caf::node_id, caf::actor_id) override { return nullptr; }
  void set_last_hop(caf::node_id*) override {}

  nodes::system_config config_{nodes::system_config::for_tests{}};
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<caf::proxy_registry> proxies_;
  std::unique_ptr<caf::scoped_execution_unit> unit_;
};

/// A policy by which no role has the right to actors.
std::shared_ptr<const rights::policy_file> no_rights() {
  static const test::temporary_folder folder;
  static const auto made = std::make_shared<const rights::policy_file>([] {
    auto file = folder / "policy.json";
    std::ofstream(file) << R"({"roles": {"role": {}}})";
    return file;
  }());
  return made;
}

}  // namespace

void read_input(std::string_view bytes) {
  const auto kind = take_choice(bytes, 8);
  test::broker_at_the_end broker(false, std::size_t{1} << 20);
  const auto gateway = broker.known.own->add(5, gate::own_actors::kind::gateway);
  broker.known.own->add_first(4);
  broker.judge.begin(network::message_rules((kind & 1) != 0 ? gate::end::calling : gate::end::called, broker.known.own));
  const bool has_certificates = (kind & 2) != 0;
  if (has_certificates) {
    broker.known.ids->set_own(own_node());
    if ((kind & 4) == 0) broker.known.policy = no_rights();
    broker.judge.meet({"cluster", "node", "role"});
  }
  for (bool is_fine = true; is_fine && !bytes.empty();) {
    const auto chunk = bytes.substr(0, 1000);
    is_fine = broker.feed(std::string(chunk));
    bytes.remove_prefix(chunk.size());
  }
  static auto* const caf = new reader_of_caf;  // lives until the process ends
  if (has_certificates)
    for (const auto& message : broker.messages) caf->read(message);
}

}  // namespace troupe::fuzz
