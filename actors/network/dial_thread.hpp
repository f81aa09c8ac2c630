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

/// The thread of a process that finds out which programs listen at addresses, for all nodes of the process. Host names are
/// looked up by other threads (`support::name_lookups`). Any thread may use it.
///   DW-1  a process has at most one such thread, however many addresses are dialled. It begins with the first attempt and ends
///         with the last.
///   DW-2  `done` of an attempt is called once, by the deadline of the attempt, or never if the attempt is given up before.
///         Once give_up() has returned, `done` is destroyed.
///   DW-3  an attempt waits neither for another attempt nor for the look-up of another attempt, unless
///         name_lookups::most_threads look-ups are under way.
class dial_thread {
 public:
  using clock = std::chrono::steady_clock;

  struct outcome {
    std::string host;              // the address that answered, in numbers
    caf::error problem;            // see `membership::dialer_actor`
    gate::proven_connection made;  // without a problem: the connection to the address
  };
  /// Called under a lock: it must be short, must not throw and must not use the dial_thread.
  using receiver = std::function<void(outcome)>;
  /// Who dials: give_up() ends all attempts of one owner.
  using owner = std::uint64_t;

  static std::shared_ptr<dial_thread> of_process();

  dial_thread();
  ~dial_thread();
  dial_thread(const dial_thread&) = delete;
  dial_thread& operator=(const dial_thread&) = delete;

  /// An owner that no other call has returned.
  owner new_owner();
  /// Begins an attempt to connect. `gate`: decides with whom the owner talks. Throws std::system_error if the system gives no
  /// thread or no descriptor.
  void dial(owner who, gate::connection_gate gate, std::string host, std::uint16_t port, clock::time_point deadline,
            receiver done);
  void give_up(owner who);

 private:
  class state;

  std::shared_ptr<state> state_;  // the thread holds it too
};

}  // namespace troupe::network
