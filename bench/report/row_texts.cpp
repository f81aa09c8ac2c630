// SPDX-License-Identifier: BSD-3-Clause
#include "row_texts.hpp"

#include <map>

namespace troupe::bench {

namespace {

using texts = std::map<std::string, std::string>;

const texts& of_engine() {
  static const texts all{
    {"one_function", "A backward pass over one function without work."},
    {"chain_10", "A pass over a chain of 10 functions without work."},
    {"chain_1000", "A pass over a chain of 1,000 functions without work."},
    {"chain_100000", "A pass over a chain of 100,000 functions without work."},
    {"chain_1000000", "A pass over a chain of 1,000,000 functions; ratio: its cost of a function by that of chain_1000."},
    {"wide_1000", "A pass over 1,000 functions side by side."},
    {"wide_100000", "A pass over 100,000 functions side by side."},
    {"fan_in_1000", "1,000 gradients that add up in one function."},
    {"lattice_30000", "300 layers of 100 functions, each with two inputs."},
    {"drop_in_1", "A program of libtorch with troupe's engine in its place: one function."},
    {"drop_in_10", "A program of libtorch with troupe's engine in its place: a chain of 10 functions."},
    {"drop_in_1000", "A program of libtorch with troupe's engine in its place: a chain of 1,000 functions."},
    {"parallel_wide", "Functions of 200 µs side by side: one thread (peer) and one more worker (troupe)."},
    {"parallel_no_work", "Functions without work: what a worker costs where it can't help. Peer: one thread."},
    {"mlp_batch_1", "A pass over a small perceptron with a batch of 1."},
    {"lstm_64", "A pass over an LSTM of 64 steps."},
    {"transformer_64", "A pass over a transformer layer, 64 tokens."},
    {"conv_small", "A pass over a small convolutional network."},
    {"mlp_batch_1_memory", "Memory at the peak of a pass over a small perceptron with a batch of 1."},
    {"lstm_64_memory", "Memory at the peak of a pass over an LSTM of 64 steps."},
    {"transformer_64_memory", "Memory at the peak of a pass over a transformer layer, 64 tokens."},
    {"conv_small_memory", "Memory at the peak of a pass over a small convolutional network."},
    {"one_lane_chain_1000", "chain_1000 on one thread, with an earlier program (peer) and with this one."},
    {"one_lane_wide_1000", "wide_1000 on one thread, with an earlier program (peer) and with this one."},
    {"one_lane_mlp_batch_1", "mlp_batch_1 on one thread, with an earlier program (peer) and with this one."},
    {"hand_over", "A function goes to a worker thread and comes back; peer: a message to a detached actor and back."},
    {"hand_over_pass",
     "A function of a pass goes to a worker thread, unless the thread of the pass runs it first; peer: a message and back."},
    {"two_devices", "Functions of 200 µs on the CPU and two simulated accelerators: one thread (peer) and lanes."},
    {"wire_bf16", "A pass that sends 16 MiB of gradients over 1 Gbit/s: exact (peer) and as bfloat16; ratio: troupe by peer."},
    {"wire_int8", "A pass that sends 16 MiB of gradients over 1 Gbit/s: exact (peer) and as int8; ratio: troupe by peer."},
  };
  return all;
}

const texts& of_distributed() {
  static const texts all{
    {"small_call", "A call with two tensors of one element to another process and back."},
    {"context_call_backward", "A context is opened, a call is made in it, and gradients come back."},
    {"backward_1", "A distributed pass after one call."},
    {"backward_4", "A distributed pass after 4 calls, one after the other."},
    {"backward_16", "A distributed pass after 16 calls, one after the other."},
    {"chain_4", "A pass through four processes in a chain."},
    {"in_flight_16", "16 calls at once, and the pass over them."},
    {"smart_over_fast", "A pass in smart mode; peer: the same in fast mode, the only one of PyTorch."},
    {"tensor_1mib", "A call with 1 MiB and the pass that brings its gradient back."},
    {"tensor_16mib", "A call with 16 MiB and the pass that brings its gradient back."},
    {"nodes_2", "Forward and backward through 2 nodes in one process, by node."},
    {"nodes_4", "Forward and backward through 4 nodes in one process, by node; ratio: by one of two."},
    {"nodes_8", "Forward and backward through 8 nodes in one process, by node; ratio: by one of two."},
    {"nodes_16", "Forward and backward through 16 nodes in one process, by node; ratio: by one of two."},
    {"nodes_32", "Forward and backward through 32 nodes in one process, by node; ratio: by one of two."},
    {"nodes_64", "Forward and backward through 64 nodes in one process, by node; ratio: by one of two."},
    {"contexts_100000", "Memory that stays after 100,000 contexts were opened and closed; ratio in MiB."},
  };
  return all;
}

const texts& of_hosts() {
  static const texts all{
    {"bulk_1gbit", "Large tensors over a link of 1 Gbit/s; ratio: by the rate of the link."},
    {"bulk_100mbit", "Large tensors over a link of 100 Mbit/s; ratio: by the rate of the link."},
    {"bulk_both_ways", "Large tensors both ways over a link of 1 Gbit/s, the slower way; ratio: by the rate of the link."},
    {"bulk_50ms", "Large tensors over a link with round trips of 50 ms; peer: without that delay."},
    {"small_call_hosts", "A small call between two hosts; ratio: by the floor."},
    {"heartbeat_late_link", "99th percentile of a heartbeat's way while tensors fill a link of 1 Gbit/s; ratio in ms."},
    {"slow_peer", "Memory that grows while a node answers slowly; ratio: by the limit of what may wait."},
    {"idle_100", "CPU of a node among 100 nodes that do nothing; ratio in percent of a core."},
    {"join_100", "Seconds until the hundredth node and all others know each other."},
    {"idle_100_one_process", "CPU of a node among 100 nodes of one process that do nothing; ratio in percent of a core."},
    {"join_100_one_process", "Seconds until 100 nodes of one process know each other."},
    {"simulated_messages", "Messages of membership that a node sends among 10,000 nodes; peer: among 100. Simulated."},
    {"simulated_news", "Intervals of heartbeats until 10,000 nodes know that one is frozen; peer: 100 nodes. Simulated."},
    {"train_hosts", "The example with its stages on hosts of their own; peer: on one host."},
    {"train_100mbit", "The example with its stages on hosts with links of 100 Mbit/s; peer: on one host."},
    {"driver_bytes", "Bytes of a step on the driver's link; peer: if all values passed through the driver."},
    {"chaos_hosts", "Promises broken while hosts are killed, frozen and cut off at random; ratio: their count."},
    {"gate_small_call", "A small call with certificates through shared memory; peer: without certificates."},
    {"tls_small_call", "A small call between hosts by TLS; peer: plain TCP."},
    {"tls_bulk", "Large tensors between hosts by TLS; peer: plain TCP; floor: the cipher alone."},
    {"handshakes", "Connections that prove both ends, each second, with both ends on one core."},
    {"stalled_memory", "Memory that connections take which stall in the handshake; ratio in MiB."},
    {"hostile_disturbance",
     "99th percentile of a small call while a stranger sends what no node sends; peer: without the stranger."},
    {"hostile_inputs", "Crashes, leaks and lost nodes while a hostile client plays its inputs; peer: the count of inputs."},
  };
  return all;
}

const texts& of_suite() {
  static const texts all{
    {"small_call_over_caf", "A small call over CAF's network; peer: a request of bare CAF with as many bytes."},
    {"small_call_own_network", "A small call over troupe's network; peer: a request of bare CAF over CAF's network."},
    {"small_call_memory", "A small call through shared memory; floor: two processes that watch shared memory; ratio in µs."},
    {"heartbeat_late", "99th percentile of a heartbeat's way while all cores compute; ratio in ms."},
    {"fairness", "The slowest of 1,000 equal passes that start together; peer: their median."},
    {"idle_context", "Memory of a context that is open and does nothing; ratio in bytes."},
    {"idle_object", "Memory of a small object that a node holds for another; ratio in bytes."},
    {"idle_actor", "Memory of an actor of CAF that is scheduled and does nothing; ratio in bytes."},
    {"idle_thread_actor", "Memory of an actor of CAF with a thread of its own that does nothing; ratio in bytes."},
    {"idle_node", "Memory of a node that has met no other, among many of one process; ratio in bytes."},
    {"idle_connection", "Memory of a connection to an idle node of another process; ratio in bytes."},
    {"small_call_layers",
     "The work of both processes for a small call; peer: what CAF, headers and tensors take, each measured alone; ratio: the "
     "share of the "
     "rest."},
    {"scale_busiest", "Messages at the busiest node of a simulated tree of 10,000 nodes, by those at 100."},
    {"scale_purse", "Bytes of the purse in a message among 10,000 participants."},
    {"scale_membership", "Messages of membership a second and node, 10,000 nodes by 100."},
    {"scale_error", "The simulation by real runs at 2 to 16 processes, the worst of all shapes."},
    {"soak_hours", "Hours of simulated clusters under faults, with no promise broken."},
    {"training_pipelining", "Tokens per second of the example; peer: PyTorch's pipelining over gloo with the same model."},
  };
  return all;
}

}  // namespace

std::string text_of_row(const std::string& name) {
  for (const auto* all : {&of_engine(), &of_distributed(), &of_hosts(), &of_suite()})
    if (const auto found = all->find(name); found != all->end()) return found->second;
  return "";
}

}  // namespace troupe::bench
