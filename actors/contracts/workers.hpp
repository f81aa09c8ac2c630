// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/passes/cpu_continuation_test.cpp, tests/actors/distributed_pass_test.cpp, tests/actors/transfers/memory_reader_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

/// The actors that compute or copy. Each actor has a thread of its own (support/thread_actor.hpp).
namespace troupe::devices {

class foreign_copy;

}  // namespace troupe::devices

namespace troupe::contracts {

/// A burst to run, and the graph task to which it returns.
struct burst_job {
  burst_ptr work;
  graph_task_actor owner;
};

/// A thread of a node that runs bursts, one at a time (services::burst_threads).
///   CC-1  the thread uses the state machine of a burst only while it runs the burst. Afterwards the thread stores nothing of
///         the state machine.
///   CC-2  every burst that has begun is returned to its graph task, whatever its functions throw.
using burst_thread_actor = caf::typed_actor<caf::reacts_to<burst_job>>;

/// Asks for a new table with the sums of both tables.
struct merge_gradients {
  gradients_ptr all;
  table_ptr more;
};

/// Graphs and tensors that another thread has to free, because freeing them may take too long on a network thread.
struct discarded {
  std::vector<std::shared_ptr<void>> all;
};

/// The thread of a node that adds gradients and frees graphs.
using cpu_continuation_actor =
  caf::typed_actor<caf::replies_to<merge_gradients>::with<gradients_ptr>, caf::reacts_to<discarded>>;

/// A thread that runs one remote call at a time: it attaches the arguments to the graph, runs the registered function and
/// attaches the result.
///   CW-1  every call is answered, with a result or a failure that names node and function, and returned to `gateway`.
///         `gateway` sends the answer if the result has large tensors. Answer and return wait for elements that still come from
///         a device; the worker does not wait for them.
///   CW-2  the worker tells `gateway` before the call blocks on a future, and when the call goes on.
///   CW-3  the call runs in the grad mode and the inference mode of its caller, and under the caller's autocast if the request
///         brings it. Changes that the function makes to libtorch's thread-local state end with the call.
using call_worker_actor = caf::typed_actor<caf::reacts_to<incoming_call_ptr>>;

/// An offer whose elements the memory reader has to read out of the memory of another process.
struct incoming_offer {
  tensor_offer offer;
  arriving_tensors::prepared_piece piece;
  caf::response_promise promise;  // to be delivered only by `gateway`
  std::optional<error> failure;
  std::shared_ptr<devices::foreign_copy> copy = nullptr;  // of an offer on a device: the copy that runs
};
using incoming_offer_ptr = std::shared_ptr<incoming_offer>;

/// A thread that reads offered elements, one offer after another. So the network thread copies only small ones. Elements on
/// devices are copied by a device; the thread only asks it whether the copies are done.
///   MR-1  every offer is returned to `gateway`, either read or with a failure.
///   MR-2  an offer on a device is returned when its copy is done, also if its transfer has ended before: the answer makes the
///         sender let go of the memory. It waits for no other copy.
///   MR-3  memory of another process is closed when the last copy out of it is done.
using memory_reader_actor = caf::typed_actor<caf::reacts_to<incoming_offer_ptr>, caf::reacts_to<support::tick_atom>>;

/// A transfer on a device whose copy to the host is done, or has failed. Or the part of a copy.
struct host_copy {
  node_id to;
  std::uint64_t transfer = 0;
  std::uint64_t end = 0;     // of a part, in bytes; 0: of a whole copy
  at::Tensor elements = {};  // on the host
  std::optional<error> failure = {};
};
using host_copy_ptr = std::shared_ptr<host_copy>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::burst_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::merge_gradients)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::discarded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::incoming_offer_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::host_copy_ptr)
