// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <troupe/messages/messages.hpp>

namespace troupe::metrics {

/// The HTTP content type of metrics_text().
inline constexpr const char* text_type = "text/plain; version=0.0.4; charset=utf-8";

/// The status of a node in Prometheus's text format.
///   PT-1  each metric has one HELP line, one TYPE line and then its samples; no two samples have the same labels. The traffic
///         of a peer is the sum over all nodes with its name: a restarted peer is one peer.
std::string metrics_text(const node_status& of);

}  // namespace troupe::metrics
