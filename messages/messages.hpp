// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/messages/attributes.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/purse.hpp>

/// The typed messages between nodes. Each is one CAF message type: a protobuf header and its tensors as raw bytes.
/// In one process none of them is serialised. Tensors in a message are immutable once it is sent.
namespace troupe {

/// What left ahead of a message, in pieces (see tensor_piece): for each part of its tensors (a sparse one has two, indices and
/// values) the number of the transfer, or 0 where the elements come with the message. Empty: all do. Empty once it was read.
struct sent_ahead {
  node_id from;
  std::vector<std::uint64_t> transfers;
};

/// A piece of the elements of a large tensor, to a node that will get the message with that tensor. Numbers ascend, pieces
/// follow each other; whoever read it has handed the elements on (see arriving_tensors).
struct tensor_piece {
  node_id from;
  std::uint64_t transfer = 0;
  std::uint64_t total = 0;   // bytes of all elements; 0: the transfer is called off
  std::uint64_t offset = 0;  // of this piece, in bytes
  at::Tensor elements;       // its bytes; undefined once it was read
};

/// Asks a node on the same machine whether it reads large tensors out of the sender's memory; it answers with a mark if so.
struct request_mark {
  node_id from;
  std::uint64_t process = 0;  // the sender's number, pid
};
/// Drawn at random for one node, which is to keep it where its offers say (see foreign_memory).
struct memory_mark {
  std::array<std::uint64_t, 4> words{};
};

/// A piece whose elements the receiver reads out of the sender's memory. They stay there until it is answered: taken, or an error,
/// and then the transfer comes anew, in tensor_pieces.
struct tensor_offer {
  node_id from;
  std::uint64_t transfer = 0;
  std::uint64_t total = 0;  // of this and the next: as in tensor_piece
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;    // of this piece
  std::uint64_t address = 0;  // of its elements
  std::uint64_t process = 0;  // that has them
  std::uint64_t mark = 0;     // the address where it keeps the receiver's mark
};

/// Tensors that join the graphs of two nodes. They travel detached; `requires_grad` says which of them the receiver
/// attaches to a recv_backward. Without a context no graph is joined.
struct autograd_message {
  context_id context;
  message_id message;
  std::vector<at::Tensor> tensors;
  std::vector<bool> requires_grad;   // as long as `tensors`, or empty: none does
  std::vector<c10::Device> devices;  // the same: where each was, and is to be put. Empty: on the CPU, where all travel
  program_place place;               // where what the receiver does with them stands; of a reply none
  sent_ahead ahead;                  // of `tensors`
};

/// A node as others know it.
struct member {
  std::string name;
  node_id id;
  std::string host;
  std::uint16_t port = 0;
};

/// First message on a connection: who I am, where others reach me, and everyone I know.
struct hello {
  std::string name;
  node_id id;
  std::string host;
  std::uint16_t port = 0;
  std::uint32_t protocol = 0;  // see protocol_version
  std::vector<member> members = {};
};

/// The answer to `hello`: who answers, and everyone it knows.
struct welcome {
  member self;
  std::vector<member> members;
};

/// A sign of life, with the sender's steady clock in nanoseconds; the answer carries both clocks.
struct heartbeat {
  node_id from;
  std::int64_t sent_ns = 0;
};
struct heartbeat_seen {
  node_id from;
  std::int64_t sent_ns = 0;      // of the heartbeat answered
  std::int64_t answered_ns = 0;  // the answerer's steady clock
};

/// The sender stops and says so.
struct farewell {
  node_id from;
  std::string reason;
};

/// Runs `function` on the receiver. `target` names an object that lives there, or none for a free function.
struct call_request {
  std::string function;
  object_id target;
  attributes values;
  autograd_message payload;
  std::int64_t deadline_ns = 0;     // time left for the call when it was sent
  std::uint64_t span = 0;           // not 0: the caller profiles, so the answer carries spans
  pass_number completed;            // the context's last pass that the caller knows to be over
  std::vector<pass_number> failed;  // those up to it that failed: their gradients count nowhere
  std::string calls;                // in anomaly mode: the calls that led to this one, as text; else empty
};

/// The answer to call_request.
struct call_result {
  attributes values;
  autograd_message payload;
  std::vector<node_id> participants;  // nodes that joined the context below this call
  std::string spans;                  // if the caller profiles: what ran, by the clock of who answers (see trace_span.hpp)
};

/// The gradients of the tensors that `message` carried forward, to the node that sent them. Undefined ones stay undefined. Of a
/// pass that creates a graph they join the graphs of the two nodes, as forward messages do.
struct propagate_gradients {
  context_id context;
  pass_number pass;
  message_id message;
  std::vector<at::Tensor> gradients;
  purse carried;
  bool keep_graph = false;
  bool create_graph = false;
  std::string from;                 // name of the sending node
  message_id joint;                 // names the send behind the gradients that require grad
  std::vector<bool> requires_grad;  // as long as `gradients`, or empty: none does
  program_place place;              // of the pass; empty unless it creates a graph
  // As long as `gradients`, or empty: whole shapes of those that travel without the elements that repeat (see repeated_elements.hpp).
  std::vector<std::vector<std::int64_t>> shapes;
  sent_ahead ahead;  // of `gradients`
};

/// A participant has nothing left to run for now: it hands its purse to the initiator.
struct participant_quiet {
  context_id context;
  pass_number pass;
  node_id from;
  purse carried;
};

/// A participant met an error. `code` is a troupe::errc.
struct participant_failed {
  context_id context;
  pass_number pass;
  node_id from;
  std::uint8_t code = 0;
  std::string text;
};

/// Asks which recvs the given sends of the receiver lead to; answered by `discovered`.
struct discover {
  context_id context;
  pass_number pass;
  std::vector<message_id> sends;
  bool keep_graph = false;
  bool create_graph = false;
};
struct discovered {
  context_id context;
  pass_number pass;
  std::vector<message_id> recvs;  // each names the node that sent it forward
};

/// The discovery is over: sends of the receiver that it never named will get no gradient. Carries weight to go on with.
struct prune {
  context_id context;
  pass_number pass;
  std::vector<message_id> live;  // all sends of the receiver that will get one
  purse carried;
  bool keep_graph = false;
  bool create_graph = false;
};

/// Stop this pass and drop its buffers; answered by pass_aborted with the nodes that gradients were sent to.
struct abort_pass {
  context_id context;
  pass_number pass;
};
struct pass_aborted {
  context_id context;
  pass_number pass;
  node_id from;
  std::vector<node_id> sent_to;
};

/// To the node that opened the context: the sender holds a part of it that the receiver may not know of, as a node between them
/// went down. To another: the sender is cut off from the one that opened the context; who holds a part of it is to tell that.
struct context_joined {
  context_id context;
  node_id from;
};

/// Forget the context; answered by context_released.
struct release_context {
  context_id context;
};
struct context_released {
  context_id context;
  node_id from;
};

/// What passed between a node and one of its peers: calls, their results and what passes send, not heartbeats or the answers to
/// aborts and discoveries. Bytes are those of tensors.
struct peer_status {
  member who;
  bool up = false;
  std::uint64_t contexts = 0;  // that it opened, and of which the node holds a part
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_read = 0;  // what came straight out of its memory
};

/// What a node does and has done since it started.
struct node_status {
  member self;
  std::int64_t uptime_ns = 0;
  std::uint64_t contexts = 0;          // parts of contexts that it holds now, whoever opened them
  std::uint64_t contexts_opened = 0;   // in all
  std::uint64_t passes_running = 0;    // of those begun here
  std::uint64_t passes_completed = 0;  // likewise
  std::uint64_t passes_failed = 0;     // likewise
  std::uint64_t pass_parts = 0;        // its parts in passes, whoever began them: at work, or with gradients not gathered yet
  std::uint64_t calls_made = 0;
  std::uint64_t calls_waiting = 0;  // of those made: not answered yet
  std::uint64_t calls_failed = 0;   // likewise: by an error, a deadline or a peer that is down
  std::uint64_t calls_run = 0;      // for others, or for itself
  std::uint64_t calls_running = 0;
  std::uint64_t calls_queued = 0;   // wait for a worker
  std::uint64_t functions_run = 0;  // of autograd graphs, in distributed passes
  std::uint64_t objects = 0;        // modules and optimizers that live there
  std::vector<peer_status> peers;   // by name; of those that are down, the last ones
};

}  // namespace troupe

#include <troupe/messages/inspect.hpp>  // wherever a message is known, so is how it travels
