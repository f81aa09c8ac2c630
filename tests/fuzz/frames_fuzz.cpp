// SPDX-License-Identifier: BSD-3-Clause
// Reads an input as the bytes of a connection: headers, fragments, payloads, and the rules of what may come.
#include <memory>
#include <string>

#include <troupe/actors/network/fragment_reader.hpp>
#include <troupe/actors/network/message_outline.hpp>
#include <troupe/actors/network/message_rules.hpp>

#include "actors/network/basp_messages.hpp"
#include "fuzzer.hpp"

namespace troupe::fuzz {

void read_input(std::string_view bytes) {
  const auto kind = take_choice(bytes, 8);
  const auto own = std::make_shared<network::own_actors>();
  const auto gateway = own->add(5, network::own_actors::kind::gateway);
  own->add_first(4);
  test::broker_at_the_end broker(false, std::size_t{1} << 20);
  network::message_rules rules((kind & 1) != 0 ? gate::end::calling : gate::end::called, own);
  broker.reader.begin(rules);
  if ((kind & 2) != 0) {
    const auto ids = std::make_shared<network::node_ids>();
    ids->set_own(std::string(network::message_outline::node_bytes, 'n'));  // as the seeds have it
    broker.reader.meet(ids, {"cluster", "node", "role"}, (kind & 4) != 0);
  }
  while (!bytes.empty()) {
    const auto part = bytes.substr(0, 1000);
    if (!broker.feed(std::string(part))) return;
    bytes.remove_prefix(part.size());
  }
}

}  // namespace troupe::fuzz
