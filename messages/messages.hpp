// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/messages/attributes.hpp>
#include <troupe/messages/compute_modes.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/requests.hpp>
#include <troupe/messages/weight_share.hpp>
#include <troupe/messages/wire_format.hpp>

namespace troupe::devices {

class shared_event;
struct unfinished;

}  // namespace troupe::devices

/// The typed messages between nodes. Each struct is one CAF message type. On the wire a struct is a protobuf header and the
/// bytes of its tensors. Within one process messages are not serialised. Tensors in a message do not change after the message
/// was sent.
namespace troupe {

/// Which tensors of a message left ahead of the message, in pieces (see tensor_piece). `transfers` has one entry for each
/// component of the tensors (a sparse tensor has two components, indices and values): the number of the transfer, or 0 if the
/// elements come with the message. Empty if all elements come with the message. Empty, too, in a message that was read.
struct sent_ahead {
  node_id from;
  std::vector<std::uint64_t> transfers;
  // On the sending node: when the elements of the tensors on each device are made. The receiver gets them as offers.
  std::vector<std::pair<c10::Device, std::shared_ptr<devices::shared_event>>> made = {};
  // On the sending node: what devices still make of the tensors; null: nothing.
  std::shared_ptr<const devices::unfinished> unfinished = {};
};

/// A piece of the elements of a large tensor, for a node that will get the message with that tensor. Transfer numbers ascend,
/// and the pieces of a transfer follow each other. When a node reads the piece, the elements go to its arriving_tensors.
struct tensor_piece {
  node_id from;
  std::uint64_t transfer = 0;
  std::uint64_t total = 0;                           // bytes of all elements; 0 calls the transfer off
  std::uint64_t offset = 0;                          // where this piece begins, in bytes
  at::Tensor elements;                               // the bytes of this piece; undefined after reading
  c10::Device destination = c10::Device(c10::kCPU);  // to which the receiver probably moves the elements
};

/// Asks a node on the same machine whether it will read large tensors out of the sender's memory. If it will, it answers with a
/// memory_mark.
struct request_mark {
  node_id from;
  std::uint64_t process = 0;  // process number (pid) of the sender
};
/// Random bytes. The reader of a sender's memory draws them for this sender alone. The sender stores the bytes in its memory,
/// and its offers name their address (see foreign_memory).
struct memory_mark {
  std::array<std::uint64_t, 4> words{};
  /// If one offer has a whole transfer of at most this many bytes, the receiver reads the elements before it reads the next
  /// message. So the message that has the tensor need not wait for the answer to the offer.
  std::uint64_t read_at_once = 0;
};

/// A piece whose elements the receiver reads out of the sender's memory. The elements stay there until the offer is answered.
/// If the answer is an error, the sender sends the whole transfer again, in tensor_pieces. Elements on a device are offered as
/// one piece, with the handles of devices/memory_sharing.hpp.
struct tensor_offer {
  node_id from;
  std::uint64_t transfer = 0;
  std::uint64_t total = 0;  // total and offset: as in tensor_piece
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;      // bytes of this piece
  std::uint64_t address = 0;    // address of the elements of this piece; on a device: their place in the allocation
  std::uint64_t process = 0;    // process number of the sender
  std::uint64_t mark = 0;       // address of the receiver's mark in the sender's memory
  std::string allocation = {};  // on a device: the handle of the allocation
  std::string event = {};       // on a device: the handle of the event after which the elements are made
  /// What became of the elements of a small offer when this message was read; nothing: a memory reader has to read them. Not
  /// written.
  std::optional<errc> read_at_once = {};
};

/// Tensors that join the graphs of two nodes. The tensors travel detached; `requires_grad` says which of them the receiver
/// attaches to a recv_backward. Without a context no graph is joined.
struct autograd_message {
  context_id context;
  message_id message;
  std::vector<at::Tensor> tensors;
  std::vector<bool> requires_grad;          // one per tensor; empty if no tensor requires grad
  std::vector<c10::Device> devices;         // one per tensor: its device on both nodes; empty if all are on the CPU
  program_place place;                      // the program place at which the receiver uses the tensors; empty in a reply
  sent_ahead ahead;                         // transfers of `tensors`
  wire_format format = wire_format::exact;  // the format of the answer, and of gradients of `tensors`
  std::vector<packing> packings;            // one per tensor: how it was compressed; empty if all travel exactly
  compute_modes modes;                      // of the sender's thread: the receiver works with the tensors in these modes
  bool detached = false;                    // whether a tensor required grad, and no context was open to join the graphs
};

/// What a node tells other nodes about itself or about another node.
struct member {
  std::string name;
  node_id id;
  std::string host;
  std::uint16_t port = 0;
  std::uint32_t formats = 0;  // the wire formats that the node reads, one bit each (wire_format.hpp); 0 in news and in a status
  std::vector<c10::Device> devices = {};  // of the node's process; empty: not known, as in news
};

/// Counts how often two nodes have dropped state of each other. Both nodes store these counts. A node takes over a count of the
/// other node if that count is higher. The two nodes work together only while their counts are equal.
struct bond {
  std::uint32_t partings = 0;     // how often one node considered the other node gone, and dropped all that they shared
  std::uint32_t separations = 0;  // since the last parting: how often one of the two considered the other unreachable, and
                                  // failed all calls and passes between them
  auto operator<=>(const bond&) const = default;
};

/// The state of a member, as nodes tell each other. Of two states with the same incarnation, the one that is later in this list
/// counts.
enum class member_state : std::uint8_t {
  up,
  suspected,  // some node gets no answer from the member
  gone,       // the member's process has ended, or the member was suspected for too long
  left        // the member has said farewell
};

/// News about a member that nodes pass on to each other.
struct member_news {
  member who;
  std::uint32_t incarnation = 0;  // raised by the member itself when it hears that it is suspected or gone
  member_state state = member_state::up;
};

/// Tells a neighbour the news that the sender has heard of members.
struct gossip {
  node_id from;
  std::vector<member_news> news;
  bool introduces = false;  // whether the two nodes have just met: the receiver greets its new neighbours at once
};

/// The first message on a connection: who the sender is, and where others reach it.
struct hello {
  std::string name;
  node_id id;
  std::string host;
  std::uint16_t port = 0;
  std::uint32_t protocol = 0;  // see protocol_version
  std::uint64_t digest = 0;    // a hash of all that the sender has heard of other nodes (membership::roster)
  node_id to = {};             // the node that has to answer; empty if the sender knows only an address
  bond between = {};           // the sender's bond with `to`
  std::string to_name = {};    // name that the receiver must have; empty: any name
  std::uint32_t incarnation = 0;
  std::uint32_t formats = 0;              // as in `member`
  std::vector<c10::Device> devices = {};  // as in `member`
};

/// The answer to `hello`: who answers. If the digest in `hello` differs from the answering node's digest, the answer has all
/// news of the answering node.
struct welcome {
  member self;
  std::vector<member_news> news;
  bond between;  // the bond of the answering node with the node that greeted
  std::uint32_t incarnation = 0;
};

/// Shows that the sender lives, and has the time of the sender's steady clock in nanoseconds. The answer, heartbeat_seen, has
/// the times of both nodes.
struct heartbeat {
  node_id from;
  std::int64_t sent_ns = 0;
  bond between = {};  // the sender's bond with the receiver
};
struct heartbeat_seen {
  node_id from;
  std::int64_t sent_ns = 0;      // copied from the heartbeat
  std::int64_t answered_ns = 0;  // steady clock of the answering node
  bond between = {};             // the bond of the answering node with the node that sent the heartbeat
};

/// The sender is stopping.
struct farewell {
  node_id from;
  std::string reason;
};

/// Asks the receiver for `what`. `target`: the object of the receiver that the call is on; the null id if the call is on no
/// object.
struct call_request {
  request what;
  object_id target;
  attributes values;  // the user's own
  autograd_message payload;
  std::int64_t deadline_ns = 0;     // time left for the call when the request was sent, in nanoseconds
  std::uint64_t span = 0;           // not 0 if the caller profiles; the answer then carries spans
  pass_number completed;            // the last pass of the context that the caller knows to be over
  std::vector<pass_number> failed;  // those passes up to `completed` that failed: their gradients do not count
  std::uint32_t depth = 0;          // how many calls led to this call, one within another
  std::string calls;                // in anomaly mode: the calls that led to this call, as text; otherwise empty
  bool from_itself = false;         // the node calls itself, and no call of another node led to this call; never sent
};

/// The answer to call_request.
struct call_result {
  attributes values;
  autograd_message payload;
  std::vector<node_id> participants;  // nodes that joined the context because of this call
  std::string spans;  // if the caller profiles: what ran, by the clock of the answering node (see tracing/tracer.hpp)
  bool is_child =
    false;  // whether the answering node has joined the context by a call of the caller: it is a child in the tree of calls
};

/// Carries the gradients of the tensors of `message` back to the node that sent those tensors. Undefined gradients stay
/// undefined. In a pass that creates a graph, the message joins the graphs of the two nodes, as forward messages do.
struct propagate_gradients {
  context_id context;
  pass_number pass;
  message_id message;
  std::vector<at::Tensor> gradients;
  weight_share carried;
  bool keep_graph = false;
  bool create_graph = false;
  std::string from;                 // name of the sending node
  message_id joint;                 // the send of the gradients that require grad
  std::vector<bool> requires_grad;  // one per gradient; empty if no gradient requires grad
  program_place place;              // program place of the pass; empty unless the pass creates a graph
  // One per gradient, or empty: the whole shape of a gradient that travels without its repeated elements
  // (repeated_elements.hpp).
  std::vector<std::vector<std::int64_t>> shapes;
  sent_ahead ahead;                         // transfers of `gradients`
  wire_format format = wire_format::exact;  // with create_graph: the format of gradients of `gradients`
  std::vector<packing> packings;            // as in autograd_message
  std::uint32_t answers = 0;                // not 0 if the sender has nothing left to run for now: as in participant_quiet
  std::vector<bool> unreached;              // one per gradient, or empty: whether nothing of the pass leads to the tensor
};

/// The sender has nothing left to run in the pass for now. It gives its weight to the node that called it first in the context,
/// or to the initiator.
struct participant_quiet {
  context_id context;
  pass_number pass;
  node_id from;
  weight_share carried;  // without weight if `answers` is not 0 and the sender has none
  std::uint32_t answers =
    0;  // how many messages with gradients of the receiver are answered, since the pass began; 0 to the initiator
};

/// A participant had an error. `code` is a troupe::errc.
struct participant_failed {
  context_id context;
  pass_number pass;
  node_id from;
  std::uint8_t code = 0;
  std::string text;
};

/// Asks to which recvs the given sends of the receiver lead. Answered by `discovered`.
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
  std::vector<message_id> recvs;  // each id names the node that sent the tensors
  bool settled = false;           // no send of the answering node waits
};

/// The discovery is over. Sends of the receiver that are not in `live` will get no gradient. `carried` is the weight with which
/// the receiver continues.
struct prune {
  context_id context;
  pass_number pass;
  std::vector<message_id> live;  // all sends of the receiver that will get gradients
  weight_share carried;
  bool keep_graph = false;
  bool create_graph = false;
};

/// Stops a pass and frees its buffers. Answered by pass_aborted, which names the nodes to which gradients were sent.
struct abort_pass {
  context_id context;
  pass_number pass;
};
struct pass_aborted {
  context_id context;
  pass_number pass;
  node_id from;
  std::vector<node_id> sent_to;
  bool settled = false;  // the node takes no part in the pass, or was done with the pass
};

/// Sent to the node that opened the context, it says that the sender holds a part of the context. The receiver may not know of
/// this part, because a node between the two went down. Sent to any other node, it says that the sender has released its part,
/// or cannot reach the node that opened the context. If the receiver holds a part, it then sends its own context_joined to the
/// node that opened the context.
struct context_joined {
  context_id context;
  node_id from;
};

/// Sent when two nodes reach each other again. Lists the objects of the receiver that the sender's handles own. The receiver
/// drops all other ownerships of the sender.
struct held_objects {
  node_id from;
  std::vector<std::uint64_t> numbers;  // of the objects; an object with two handles is listed twice
};

/// Tells the receiver to free all that it holds of the context. Answered by context_released.
struct release_context {
  context_id context;
};
struct context_released {
  context_id context;
  node_id from;
};

/// The text in peer_status::transport for a member that the node can't connect to, and was never connected to. Other nodes may
/// reach the member.
inline constexpr const char* not_reached = "not reached from here";

/// What a node reports about one of its peers. Messages and bytes count calls, their results, and the messages of passes.
/// Heartbeats and the answers to aborts and discoveries do not count. Bytes are bytes of tensors.
struct peer_status {
  member who;
  bool up = false;
  std::uint64_t contexts = 0;  // contexts that the peer opened and of which the node holds a part
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_read = 0;            // bytes that the node read directly out of the peer's memory
  bool gone = false;                       // of a peer that is not up: whether it is gone; otherwise it is unreachable
  std::int64_t since_ns = 0;               // for how long the node has known that the peer is up, or is not up
  std::string transport;                   // of a peer that is up: "TCP", "shared memory", or "not connected"
  std::string reason;                      // of a peer that is not up: why
  std::uint64_t plain_bytes_sent = 0;      // what bytes_sent would be without compression
  std::uint64_t plain_bytes_received = 0;  // what bytes_received would be without compression
};

/// What a node reports about one device map of its settings (devices/device_map.hpp).
struct device_map_status {
  std::string peer;
  std::string entries;  // "cpu=cuda:0, cuda:0=cuda:1"
  std::string problem;  // why the map can't be used now; empty: nothing is known against it
};

/// What a node does now, and what it has done since it started. An outline (a status for cluster views) lists in `peers` only
/// nodes that the node was connected to, and some that it can't connect to.
struct node_status {
  member self;
  std::int64_t uptime_ns = 0;
  std::uint64_t contexts = 0;          // that the node holds now, whichever node opened them
  std::uint64_t contexts_opened = 0;   // contexts that the node has opened so far
  std::uint64_t passes_running = 0;    // passes begun on this node
  std::uint64_t passes_completed = 0;  // passes begun on this node
  std::uint64_t passes_failed = 0;     // passes begun on this node
  std::uint64_t graph_tasks = 0;       // of passes of any node: running, or with gradients that were not gathered yet
  std::uint64_t calls_made = 0;
  std::uint64_t calls_waiting = 0;  // calls made that are not answered yet
  std::uint64_t calls_failed = 0;   // calls made that ended with an error, a deadline or a peer that is down
  std::uint64_t calls_run = 0;      // calls run, for other nodes or for itself
  std::uint64_t calls_running = 0;
  std::uint64_t calls_queued = 0;         // calls that wait for a worker
  std::uint64_t functions_run = 0;        // autograd functions run in distributed passes
  std::uint64_t objects = 0;              // modules and optimizers that live on the node
  std::vector<peer_status> peers;         // sorted by name; of the peers that are down, only the last ones
  std::string version;                    // of troupe
  std::uint64_t resident_bytes = 0;       // memory of the node's process that is in RAM
  std::uint64_t members_up = 0;           // other members that are up for this node, connected or not
  std::uint64_t connections_refused = 0;  // connections of programs that did not prove that they may talk to the node
  std::uint64_t requests_refused = 0;     // requests of peers that the node does not allow
  std::vector<device_map_status> maps;    // the node's device maps, sorted by the name of the peer
};

}  // namespace troupe

/// The list of all messages. All code that writes, reads, shows, registers or tests messages goes through this list.
namespace troupe::wire {

inline constexpr message_list messages{message<autograd_message, class Autograd>{"troupe.autograd"},
                                       message<hello, class Hello>{"troupe.hello"},
                                       message<member, class Member>{"troupe.member"},
                                       message<std::vector<member>, class Members>{""},
                                       message<welcome, class Welcome>{"troupe.welcome"},
                                       message<heartbeat, class Heartbeat>{"troupe.beat"},
                                       message<heartbeat_seen, class HeartbeatSeen>{"troupe.seen"},
                                       message<farewell, class Farewell>{"troupe.bye"},
                                       message<gossip, class Gossip>{"troupe.gossip"},
                                       message<call_request, class CallRequest>{"troupe.call"},
                                       message<call_result, class CallResult>{"troupe.result"},
                                       message<propagate_gradients, class PropagateGradients>{"troupe.grads"},
                                       message<participant_quiet, class ParticipantQuiet>{"troupe.quiet"},
                                       message<participant_failed, class ParticipantFailed>{"troupe.failed"},
                                       message<discover, class Discover>{"troupe.disc"},
                                       message<discovered, class Discovered>{"troupe.discd"},
                                       message<prune, class Prune>{"troupe.prune"},
                                       message<abort_pass, class AbortPass>{"troupe.abort"},
                                       message<pass_aborted, class PassAborted>{"troupe.abortd"},
                                       message<context_joined, class ContextJoined>{"troupe.joined"},
                                       message<held_objects, class HeldObjects>{"troupe.held"},
                                       message<release_context, class ReleaseContext>{"troupe.rel"},
                                       message<context_released, class ContextReleased>{"troupe.reld"},
                                       message<node_status, class NodeStatus>{"troupe.status"},
                                       message<tensor_piece, class TensorPiece>{"troupe.piece"},
                                       message<request_mark, class RequestMark>{"troupe.askmark"},
                                       message<memory_mark, class MemoryMark>{"troupe.mark"},
                                       message<tensor_offer, class TensorOffer>{"troupe.offer"}};

}  // namespace troupe::wire

#include <troupe/messages/inspect.hpp>  // so that every user of a message can also write and read the message
