// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "parts.hpp"

namespace troupe::bench {

/// Parts of hosts_bench that exchange messages with another host.
///
/// Figures "sizes", for each of the `sizes` in bytes ("0,1024"): us_SIZE (the median), low_SIZE and high_SIZE (its quarters), and
/// tenth_SIZE, late_SIZE and last_SIZE (all messages but one of 10, of 100 and of 1,000 are answered within that time). All messages of a
/// size have about `bytes` bytes together.
/// Figures "rates", for each number of messages under way in `at_once` ("1,16"): per_s_NUMBER (the median), low_NUMBER, high_NUMBER; of
/// `count` messages.
/// Figures "late": us, tenth, late, as above, of `count` messages; mbit, of the megabits a second that fill the link meanwhile.

/// Calls to the node b with so many bytes, which come back.                                  -> sizes
void echo_sizes(const part_arguments& with);
/// Small calls to the node b.                                                                -> rates
void call_at_once(const part_arguments& with);
/// Asks the node b, beside tensors of 16 MiB if `load` is "there" or "both_ways".            -> late, mbit_back, downs
/// `what` "heartbeat": asks for the status. Heartbeats and that question are answered by the same actors, without a worker, and travel
/// alike. `what` "error": runs passes whose function on b throws; the time is from the begin of the pass to its error, which comes
/// when b has answered the abort.
void ask_beside_tensors(const part_arguments& with);

/// The other side of the parts below, by bare CAF. Listens at `listen`, and runs until the process is killed.
void serve_requests_of_caf(const part_arguments& with);
/// Requests to serve_requests_of_caf() at `address` and `port`.                              -> sizes
void echo_sizes_by_caf(const part_arguments& with);
/// Small requests.                                                                           -> rates
void request_at_once_of_caf(const part_arguments& with);
/// Small requests beside those of 16 MiB.                                                    -> late
void request_beside_texts_of_caf(const part_arguments& with);

/// Bytes to the part "echo" at `address` and `port`, and back, by bare TCP.                  -> sizes
void echo_sizes_by_tcp(const part_arguments& with);

/// What fills a link in the part "late" and in the answer of the function "give".
inline constexpr std::int64_t filling_bytes = std::int64_t{16} << 20;

/// How many messages of this size have so many `bytes` together; 5 to 2,000.
int runs_of_size(std::int64_t size, std::int64_t bytes);
/// The figures "sizes" of one size.
std::map<std::string, double> figures_of_size(std::int64_t size, const std::vector<double>& times);

}  // namespace troupe::bench
