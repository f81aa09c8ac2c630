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
  std::uint64_t from = 0;    // their sequence numbers: from here on,
  std::uint64_t to = 0;      // and below this
  program_place place;
  std::string calls;  // in anomaly mode: the calls that led there, as text
};

/// Sequence numbers belong to a thread; this is the order in which one process would have recorded functions of several
/// threads.
///   RO-1  a function that was recorded at place P has the key P, its sequence number, `last`. Keys compare lexicographically,
///         and with them functions: what a call recorded comes after what its caller had recorded when it called, and before
///         what the caller recorded from then on, whichever nodes and threads they ran on.
///   RO-2  a function that no recording knows comes before all others.
///   RO-3  functions of one rank compare by their sequence numbers. The accumulation functions of leaves have the highest rank.
class recording_order {
 public:
  static constexpr std::uint64_t last = ~std::uint64_t{0};
  static constexpr std::uint32_t highest = 0xffffffff;

  explicit recording_order(std::vector<recording> of);

  std::uint32_t rank(const torch::autograd::Node& function) const;
  program_place key(const torch::autograd::Node& function) const;
  /// The recording that the function is of, or null.
  const recording* find(const torch::autograd::Node& function) const;

 private:
  /// What was recorded at one place, cut where calls were made whose functions are on this node too.
  struct strand {
    std::vector<std::uint64_t> cuts;   // sequence numbers; a part begins at each
    std::vector<std::uint32_t> ranks;  // of the parts
  };

  void give_ranks();

  std::vector<recording> recordings_;  // by thread and start; of those that start together the longer first
  std::vector<std::uint32_t> strand_;  // of each recording
  std::vector<strand> strands_;
};

/// What a pass that creates a graph notes of the functions that it records. In one process a pass runs functions in descending
/// order, so what it records while one runs belongs at the place of the pass, followed by the complement of that one's key.
struct pass_recorder {
  program_place pass;           // where backward() was called
  std::vector<recording> made;  // until somebody takes them

  /// The place for what is recorded while the function of that key runs.
  program_place place_of(const program_place& key) const;

  /// Notes what this thread has recorded since sequence number `from`, if anything. Parts that were noted before keep their places.
  void note(std::uint64_t from, program_place place);
};

/// The number of this thread and its next sequence number: where a recording begins.
recording recording_from_now(program_place place);

}  // namespace troupe::engine
