// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <troupe/actors/metrics/page_server.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::nodes {

class node_runtime;

/// The pages of a node at settings::metrics: /healthz for probes, /metrics for Prometheus.
///   NP-1  /healthz has status 200 while the node serves and its gateway answers, and otherwise 503 with the reason: the node
///         still joins, it stops, or it does not answer.
///   NP-2  however many requests come, the server asks the gateway at most once in `memory`.
class node_pages {
 public:
  static constexpr std::chrono::milliseconds memory{250};
  static constexpr std::chrono::milliseconds patience{1000};

  /// Throws troupe::error (misuse) if the server can't listen at the address. Until serves() is called, /healthz says that the
  /// node starts.
  explicit node_pages(node_runtime& of);
  ~node_pages();

  std::uint16_t port() const noexcept { return port_; }

  void serves() noexcept { state_ = state::serves; }
  void stops() noexcept { state_ = state::stops; }
  /// Stops serving pages. Idempotent.
  void end();

 private:
  enum class state { starts, serves, stops };

  metrics::page make(const std::string& path);
  metrics::page health();
  /// Throws troupe::error if the node does not answer.
  const node_status& status();
  std::string why_not() const;

  node_runtime& of_;
  std::atomic<state> state_{state::starts};
  // last_, problem_ and asked_ are used only by the thread of the server.
  node_status last_;
  error problem_{errc::none, {}};
  std::chrono::steady_clock::time_point asked_{};
  std::uint16_t port_ = 0;
  checked_mutex mutex_;
  std::unique_ptr<metrics::page_server> server_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::nodes
