// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/outbox_test.cpp, tests/actors/wire_formats_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/engine/send_backward.hpp>
#include <troupe/engine/torch_compat.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>
#include <troupe/messages/residual_book.hpp>
#include <troupe/messages/tensor_memory.hpp>

namespace troupe::services {

/// Makes the contents of the messages of a node. Any thread may use outbox.
class outbox {
 public:
  outbox(const settings& options, const node_identity& self, const membership::peer_directory& directory,
         const logging::node_log& log, const tracing::trace_recorder& recorder, message_clock& clock,
         std::optional<services::departures>& departures)
      : residuals(options.feedback_limit),
        options_(options),
        self_(self),
        directory_(directory),
        log_(log),
        recorder_(recorder),
        clock_(clock),
        departures_(departures) {}

  /// The tensors of a message, detached and on the CPU, and the send that joins them to their graph.
  struct packed {
    autograd_message payload;
    engine::pointer_to<engine::send_backward> send;
    devices::staged arriving;  // has the events that say when the elements are on the CPU
  };
  /// Makes the contents of a message. Throws troupe::error for a tensor that can't travel; `what` names the message in the text
  /// of the error. `format`: the format in which the tensors travel if the node `to` can read this format. If `arriving` has
  /// events, the tensors are not compressed yet: the caller calls compress() when all events have happened. `by_gateway`:
  /// whether the gateway sends the message, so that tensors on devices can be offered.
  packed pack(context_id context, std::vector<at::Tensor> tensors, const std::string& what, node_id to,
              wire_format format = wire_format::exact, bool by_gateway = true);
  /// Copies tensors to the host for a message in this format to node `to`. Large ones stay on their device if the node may read
  /// them there: it is on this machine, and has said nothing against it. If `to` is this node, all stay.
  /// `call_key`: as for compress().
  devices::staged stage(std::vector<at::Tensor> tensors, node_id to, wire_format format, std::uint64_t call_key = 0);
  /// From now on tensors of devices are copied to the host before they leave for the node. The log says so once.
  void go_over_the_host(node_id to, const std::string& why) const;
  /// Warns in the log that a tensor has left detached (autograd_message::detached), once for each `what`, unless
  /// settings::warn_detached is false.
  void warn_detached(const std::string& what);
  /// Logs a warning, once, if libtorch's profiler is on for this thread, which sends a message to node `to`: the profiler does
  /// not see the work on that node.
  void warn_of_profiler(node_id to);
  /// Compresses tensors of pack(), whose elements have all come, for a message to node `to`. Any thread may call this function.
  /// `call_key`: of gradients, so that residuals are found; otherwise 0. If what it returns has events, this function has to
  /// be called again when all have happened.
  devices::staged compress(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, sent_ahead& ahead, node_id to,
                           wire_format format, std::uint64_t call_key = 0);
  /// The format for a message to node `to`: `wanted` if `to` is another node and reads this format, else exact.
  wire_format format_for(node_id to, wire_format wanted) const;

  tensor_memory memory;     // for tensors that are compressed or decompressed
  residual_book residuals;  // the rounding errors of gradients that left in 8 bits

 private:
  residual_line line_to(node_id to, std::uint64_t call_key);
  bool may_offer(node_id to) const;
  std::optional<std::string> why_not_offered(node_id to) const;

  const settings& options_;
  const node_identity& self_;
  const membership::peer_directory& directory_;
  const logging::node_log& log_;
  const tracing::trace_recorder& recorder_;
  message_clock& clock_;
  std::optional<services::departures>& departures_;
  std::atomic<bool> has_warned_of_profiler_{false};
  checked_mutex mutex_;
  std::set<std::string> warned_ TROUPE_GUARDED_BY(mutex_);  // see warn_detached
};

}  // namespace troupe::services
