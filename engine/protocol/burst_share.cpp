// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/protocol/burst_share.hpp>

#include <algorithm>

namespace troupe::protocol {

burst_share::message_share burst_share::give(node_id to, bool more) {
  message_share result;
  if (more) {
    result.carried = given.split(carried);
  } else {
    if (settles) ++carried.settled;
    result.carried = take(carried);
    const bool child_was_engaged = position && std::any_of(sent.begin(), sent.end(), [this](const auto& each) {
                                     return position->children.contains(each.first);
                                   });
    if (position && to == position->parent && !child_was_engaged) {
      result.answers = answers;
      answered = answers > 0;
    }
  }
  ++sent[to];
  return result;
}

}  // namespace troupe::protocol
