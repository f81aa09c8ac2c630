// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <caf/error.hpp>

#include <troupe/actors/gate/connection_gate.hpp>
#include <troupe/actors/gate/reception.hpp>

namespace troupe::network {

/// Connects to addresses, and finds out which programs listen there, on one thread for all nodes of a process. Other threads
/// look host names up (`support::name_lookups`). Any thread may use it.
///   DW-1  a process has at most one dial thread, however many addresses are dialled. The thread begins with the first attempt
///         and ends with the last.
///   DW-2  `done` of an attempt is called once, by the deadline of the attempt, or never if the attempt is given up before.
///         Once give_up() has returned, `done` is destroyed.
///   DW-3  an attempt waits neither for another attempt nor for the name look-up of another attempt. But a look-up waits if
///         name_lookups::most_threads look-ups are under way.
class dial_thread {
 public:
  using clock = std::chrono::steady_clock;

  struct outcome {
    std::string host;              // the address that answered, in numbers
    caf::error problem;            // see `membership::dialer_actor`
    gate::proven_connection made;  // without a problem: the connection to the address
  };
  /// Gets the outcome of an attempt. It is called under a lock, so it must be short, must not throw and must not use the
  /// dial_thread.
  using receiver = std::function<void(outcome)>;
  /// Names a user of this class. give_up() ends all attempts of one owner.
  using owner = std::uint64_t;

  static std::shared_ptr<dial_thread> of_process();

  dial_thread();
  ~dial_thread();
  dial_thread(const dial_thread&) = delete;
  dial_thread& operator=(const dial_thread&) = delete;

  /// Returns an owner that no earlier call has returned.
  owner new_owner();
  /// Begins an attempt to connect. `gate`: decides with whom the owner talks. Throws std::system_error if the system gives no
  /// thread or no descriptor.
  void dial(owner who, gate::connection_gate gate, std::string host, std::uint16_t port, clock::time_point deadline,
            receiver done);
  void give_up(owner who);

 private:
  class state;

  std::shared_ptr<state> state_;  // shared with the thread
};

}  // namespace troupe::network
