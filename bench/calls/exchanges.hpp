// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace troupe::bench {

/// What carries the messages of two processes on loopback.
enum class carrier { caf, tcp, tls, shared_memory };

/// Runs `measure` in a process of its own and returns what it returns: actor systems of different parts then do not disturb each other.
/// To be called while this process has one thread. Throws std::runtime_error if the process fails; the process has printed why.
std::vector<double> in_own_process(const std::function<std::vector<double>()>& measure);

/// What `part` returns, in some turns, each in a process of its own: one value for each figure of the part and each turn.
class turns_of_part {
 public:
  turns_of_part(int turns, const std::function<std::vector<double>()>& part);
  /// A figure of all turns. `figure`: its place in what the part returns.
  std::vector<double> all(std::size_t figure) const;
  double median(std::size_t figure) const;

 private:
  std::vector<std::vector<double>> turns_;
};

/// The parts of suite_bench. Each one is to be called in a process of its own and starts the process that answers. Microseconds of
/// each run, unless said otherwise.

/// The bytes of a small call of troupe, with its header.
inline constexpr std::size_t small_message = 200;

/// A request of CAF with `bytes` bytes to an actor of another process and its answer with as many, over CAF's own network. `pause`: before
/// each.
std::vector<double> caf_requests(int runs, std::size_t bytes = small_message, std::chrono::microseconds pause = {});
/// `bytes` bytes to another process and back by gRPC, over TCP. Throws std::runtime_error if the suite was built without gRPC.
std::vector<double> grpc_calls(int runs, std::size_t bytes);
/// `bytes` bytes to another process and back over TCP, and nothing else.
std::vector<double> tcp_exchanges(int runs, std::size_t bytes);
/// A call of troupe with two tensors of one element.
std::vector<double> small_calls(carrier by, int runs);
/// A call of troupe with one tensor of `bytes` bytes, which comes back.
std::vector<double> echo_calls(carrier by, int runs, std::size_t bytes);
/// `bytes` bytes to another process and back, in shared memory that both processes watch without a pause.
std::vector<double> spinning_exchanges(int runs, std::size_t bytes = small_message);
/// As spinning_exchanges(), but a process that waits sleeps until the other process wakes it (futex).
std::vector<double> sleeping_exchanges(int runs, std::size_t bytes = small_message);
/// `bytes` bytes copied within this process, there and back.
std::vector<double> copies(int runs, std::size_t bytes);
/// The milliseconds, from the common start on, until each of `count` equal passes over two nodes is over. A pass has eight steps.
std::vector<double> times_of_passes(int count);
/// Bytes by which the resident memory grows for a context that is open and idle: of the node that opened it, and of the node that answered
/// one call in it.
std::vector<double> bytes_of_context(int count);
/// Bytes by which the resident memory of the node grows that holds an object without tensors for another node, and that of its owner.
std::vector<double> bytes_of_object(int count);

}  // namespace troupe::bench
