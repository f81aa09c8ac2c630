// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// Functions that one thread recorded in a row, at one place of the program.
struct recording {
  std::uint64_t thread = 0;  // libtorch's number, as in Node::thread_id()
  std::uint64_t from = 0;    // the first sequence number
  std::uint64_t to = 0;      // one past the last sequence number
  program_place place;
  std::string calls;  // in anomaly mode: the remote calls that led to this place, as text
};

/// The order in which one process would have recorded functions that several threads recorded. Sequence numbers alone do not
/// give that order, because each thread counts its own.
///   RO-1  functions compare by keys, lexicographically: a function that was recorded at place P has the key (P, its sequence
///         number, `last`). So the functions of a call come between those that the caller recorded before the call and those
///         that it recorded after the call. This holds on any node or thread.
///   RO-2  a function that no recording contains comes before all functions with a recording.
///   RO-3  functions of one rank compare by their sequence numbers. The accumulation functions of leaves have the highest rank.
class recording_order {
 public:
  static constexpr std::uint64_t last = ~std::uint64_t{0};
  static constexpr std::uint32_t highest = 0xffffffff;

  explicit recording_order(std::vector<recording> of);

  std::uint32_t rank(const torch::autograd::Node& function) const;
  program_place key(const torch::autograd::Node& function) const;
  /// Returns the recording that contains the function; null if none does.
  const recording* find(const torch::autograd::Node& function) const;

 private:
  /// All functions that were recorded at one place. A call that was made at that place cuts the strand into two parts, if
  /// functions of the call are on this node too. The functions of the call come between the parts.
  struct strand {
    std::vector<std::uint64_t> cuts;   // the sequence number at which each part begins
    std::vector<std::uint32_t> ranks;  // the rank of each part
  };

  void give_ranks();

  std::vector<recording> recordings_;  // sorted by thread, then by start (ascending), then by length (descending)
  std::vector<std::uint32_t> strand_;  // by recording: its strand
  std::vector<strand> strands_;
};

/// Notes at which places a pass with create_graph records functions. In one process, a pass runs functions in descending order
/// of their keys. The functions that are recorded while function F runs get this place: the place of the pass, followed by the
/// bitwise complement of F's key. The complement reverses the order.
struct pass_recorder {
  program_place pass;           // where backward() was called
  std::vector<recording> made;  // recordings that were not taken yet

  /// Returns the place of the functions that are recorded while the function with this key runs.
  program_place place_of(const program_place& key) const;

  /// Notes that the functions that this thread has recorded since sequence number `from`, if any, belong at `place`. Functions
  /// that were noted before keep their places.
  void note(std::uint64_t from, program_place place);
};

/// Returns a recording that begins with the next function of this thread and has no end yet.
recording recording_from_now(program_place place);

}  // namespace troupe::engine
