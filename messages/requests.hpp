// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <troupe/messages/attributes.hpp>
#include <troupe/messages/ids.hpp>

/// What a call can ask of a node: to run a function that a user has registered, or one of the requests of this file, which
/// modules, optimizers, checkpoints and traces make. Tensors and the user's values travel beside the request, in call_request.
namespace troupe::requests {

/// Asks to run the user's function with this name.
struct function {
  std::string name;
};
/// Asks to run a method of the module that the call is on.
struct method {
  std::string name;
};
/// Asks for a copy of a parameter of the module that the call is on. The copy is a part of the user's graph.
struct parameter {
  std::string name;
};

// Objects. `owner`: the node in whose name a request takes, lends or drops an object.

struct create_module {
  node_id owner;
  std::string type;
};
struct create_script {
  node_id owner;
};
struct select {
  node_id owner;
  std::vector<std::string> names;
};
struct drop {
  node_id owner;
};
struct lend {
  node_id owner;
  node_id to;
};
struct take {
  node_id owner;
  std::uint64_t ticket = 0;
};

enum class tensors : std::uint8_t { parameters, buffers, state, gradients };
struct read {
  tensors of = tensors::parameters;
};
/// `change`: the number of this change of the object, which the caller counts. `first_change`: the first change for which the
/// caller still waits (objects::object_store::begin_change).
struct write {
  tensors of = tensors::parameters;
  std::vector<std::string> names;  // one per tensor of the call
  std::uint64_t change = 0;
  std::uint64_t first_change = 0;
};
struct train {
  bool on = false;
  std::uint64_t change = 0;
  std::uint64_t first_change = 0;
};

/// Asks the node that opened the context which passes of the context have ended.
struct passes {
  std::uint64_t context = 0;
};

// Optimizers.

struct parameter_group {
  std::uint64_t number = 0;            // counted from 1
  std::vector<std::uint64_t> modules;  // numbers of the modules on the node
  attributes options;                  // those that differ from the options of the optimizer
};
struct create_optimizer {
  node_id owner;
  std::string type;
  attributes options;
  std::vector<parameter_group> groups;
};

/// Learning rates by the number of the parameter group, counted from 0.
using group_rates = std::map<std::size_t, double>;
/// Identifies a change of an optimizer. The caller numbers its changes upwards from 1; 0 is a change without a number.
struct optimizer_change {
  std::uint64_t number = 0;
  std::uint64_t round = 0;  // the caller's number for a round, in which gradients are gathered for one step
  group_rates rates = {};   // learning rates that hold from this change on
};

/// Asks for the norm of gradients. `gathered`: of the gradients gathered so far, instead of the gradients of the call's
/// context.
struct norm {
  bool gathered = false;
};
struct step {
  optimizer_change which;
  double scale = 1;
  bool gathered = false;
};
struct gather {
  std::uint64_t round = 0;
};
struct forget {
  std::uint64_t round = 0;
};
struct set_rates {
  optimizer_change which;
};
struct made {
  std::uint64_t number = 0;
  bool give_up = false;
};

// Checkpoints. `save`: the name of the save; `folder`: below the data folder of the node.

struct expect_disk_space {
  std::string folder;
};
struct save {
  std::string save;
  std::string folder;
};
struct remove {
  std::string save;
  std::string folder;
  bool others = false;  // remove the parts of all other saves instead of those of this save
};
struct snapshot {
  std::string save;
};
struct piece {
  std::string save;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
struct receive {
  std::string save;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
};
struct load {
  std::string save;
  std::string folder;
  std::string path;  // for the texts of errors
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
  std::string sum_kind;
};
struct apply {
  std::string save;
  std::uint64_t number = 0;
};
struct discard {};

// Traces.

struct trace {};
/// Brings spans of a burst that ran on the node with this name, in a pass that the receiver has begun.
struct spans {
  std::string node;
  std::string spans;
};

}  // namespace troupe::requests

namespace troupe::wire {

/// A struct that travels, the protobuf class of its header (messages/troupe.proto), and its name, which never changes. CAF
/// finds the type of a message by this name. Error texts, traces and statistics show the name of a request.
template <class Struct, class Header>
struct message {
  const char* name;
};

template <class... Messages>
struct message_list : Messages... {};
template <class... Messages>
message_list(Messages...) -> message_list<Messages...>;

/// All requests except `function`. All code that writes, reads or names requests goes through this list.
inline constexpr message_list own_requests{
  message<requests::method, class Method>{""},
  message<requests::parameter, class Parameter>{"troupe.parameter"},
  message<requests::create_module, class CreateModule>{"troupe.create"},
  message<requests::create_script, class CreateScript>{"troupe.create_script"},
  message<requests::select, class Select>{"troupe.select"},
  message<requests::drop, class Drop>{"troupe.drop"},
  message<requests::lend, class Lend>{"troupe.lend"},
  message<requests::take, class Take>{"troupe.take"},
  message<requests::read, class Read>{"troupe."},
  message<requests::write, class Write>{"troupe.set_"},
  message<requests::train, class Train>{"troupe.train"},
  message<requests::passes, class Passes>{"troupe.passes"},
  message<requests::create_optimizer, class CreateOptimizer>{"troupe.optimizer.create"},
  message<requests::norm, class Norm>{"troupe.optimizer.norm"},
  message<requests::step, class Step>{"troupe.optimizer.step"},
  message<requests::gather, class Gather>{"troupe.optimizer.gather"},
  message<requests::forget, class Forget>{"troupe.optimizer.forget"},
  message<requests::set_rates, class SetRates>{"troupe.optimizer.set_rate"},
  message<requests::made, class Made>{"troupe.optimizer.made"},
  message<requests::expect_disk_space, class ExpectDiskSpace>{"troupe.optimizer.expect_disk_space"},
  message<requests::save, class Save>{"troupe.optimizer.save"},
  message<requests::remove, class Remove>{"troupe.optimizer.remove"},
  message<requests::snapshot, class Snapshot>{"troupe.optimizer.snapshot"},
  message<requests::piece, class Piece>{"troupe.optimizer.piece"},
  message<requests::receive, class Receive>{"troupe.optimizer.receive"},
  message<requests::load, class Load>{"troupe.optimizer.load"},
  message<requests::apply, class Apply>{"troupe.optimizer.apply"},
  message<requests::discard, class Discard>{"troupe.optimizer.discard"},
  message<requests::trace, class Trace>{"troupe.trace"},
  message<requests::spans, class Spans>{"troupe.spans"}};

template <class... Structs, class... Headers>
std::variant<requests::function, Structs...> request_of(const message_list<message<Structs, Headers>...>&);

}  // namespace troupe::wire

namespace troupe {

using request = decltype(wire::request_of(wire::own_requests));

/// Returns the name of a request for error texts, traces and statistics: the name of the function or method, or a name such as
/// "troupe.optimizer.step".
std::string label_of(const request& what);

/// Estimates the bytes that the request takes, in memory and on the wire.
std::size_t bytes_of(const request& what);

/// Throws troupe::error (misuse) if the request is too large for a message. The text begins with `call`.
void check_can_travel(const request& what, const std::string& call);

}  // namespace troupe
