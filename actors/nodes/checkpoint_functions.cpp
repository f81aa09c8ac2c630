// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_checkpoints_test.cpp, tests/actors/optimizer_test.cpp, tests/actors/peer_rights_test.cpp
#include <troupe/actors/nodes/builtin_functions.hpp>

#include <memory>
#include <string>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/nodes/node_parts.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::nodes {

namespace {

std::shared_ptr<objects::local_optimizer> optimizer_of(node_parts& here, const call_arguments& arguments) {
  return here.objects.find_optimizer(arguments.target);
}

std::string text(const call_arguments& arguments, const char* name) { return get<std::string>(arguments.values, name); }

std::uint64_t number(const call_arguments& arguments, const char* name) { return calls::number_from(arguments.values, name); }

/// The save that the caller names. Throws refused_request unless it can be the name of one: it becomes part of a file name.
std::string save_in(const call_arguments& arguments) {
  auto save = text(arguments, "save");
  if (!objects::is_save_id(save))
    throw support::refused_request("a save is named by 16 hexadecimal digits, and the request names another");
  return save;
}

/// Checks the folder of this node's parts, if a folder is named. Replies with the estimated size of a part.
call_reply expect_room(node_parts& here, call_arguments& arguments) {
  const auto bytes = optimizer_of(here, arguments)->estimated_bytes();
  // While a checkpoint is saved, the one before it is there too.
  if (const auto folder = text(arguments, "folder"); !folder.empty())
    objects::expect_room(folder, here.data.nearest(folder), 2 * bytes);
  return {{}, {{"bytes", calls::to_attribute(bytes)}}};
}

/// Writes this node's part to a folder below the data folder. Replies with the digest of the part.
call_reply save(node_parts& here, call_arguments& arguments) {
  const auto save = save_in(arguments);
  const auto one = optimizer_of(here, arguments);
  const auto& name = here.objects.node_name();
  const support::file_place place(here.data.find_or_make(text(arguments, "folder")), objects::part_file_name(name, save));
  return {{}, calls::to_attributes(one->save(place, name, save))};
}

/// Removes this node's parts from a folder below the data folder: those of all other saves if "others" is true, else those of this
/// save. Does nothing without a folder, and of other saves nothing once a later save is here.
call_reply remove(node_parts& here, call_arguments& arguments) {
  const auto path = text(arguments, "folder");
  const auto save = save_in(arguments);
  if (path.empty()) return {};
  const bool others = get<bool>(arguments.values, "others");
  const auto folder = here.data.find(path);
  const bool is_late = others && !optimizer_of(here, arguments)->has_saved_last(save);
  if (!folder || is_late) return {};
  const auto which = others ? objects::own_parts::of_other_saves : objects::own_parts::of_this_save;
  objects::remove_own_parts(*folder, here.objects.node_name(), save, which);
  return {};
}

call_reply snapshot(node_parts& here, call_arguments& arguments) {
  const auto digest = optimizer_of(here, arguments)->snapshot(here.objects.node_name(), save_in(arguments));
  return {{}, calls::to_attributes(digest)};
}

call_reply piece(node_parts& here, call_arguments& arguments) {
  return {{optimizer_of(here, arguments)->piece(save_in(arguments), number(arguments, "offset"), number(arguments, "size"))}};
}

call_reply receive(node_parts& here, call_arguments& arguments) {
  optimizer_of(here, arguments)
    ->receive(save_in(arguments), number(arguments, "offset"), number(arguments, "total"), arguments.tensor(0));
  return {};
}

/// Reads and checks the part of this node: the one in a folder below the data folder, or, without a folder, the one that was
/// received. The caller names no file: a node reads parts of its own alone.
call_reply load(node_parts& here, call_arguments& arguments) {
  const auto save = save_in(arguments);
  const auto digest = calls::digest_from(arguments.values);
  const auto one = optimizer_of(here, arguments);
  const auto path = text(arguments, "folder");
  if (path.empty()) {
    one->stage_received(text(arguments, "path"), digest, save);
    return {};
  }
  const auto folder = here.data.find(path);
  const auto file = objects::part_file_name(here.objects.node_name(), save);
  if (!folder)
    throw error(errc::function_failed,
                "can't read '" + path + "/" + file + "': there is no such folder in the node's data folder");
  one->stage({*folder, file}, digest, save);
  return {};
}

call_reply apply(node_parts& here, call_arguments& arguments) {
  objects::change which;
  if (arguments.values.contains("number")) which.number = number(arguments, "number");
  optimizer_of(here, arguments)->apply(save_in(arguments), which);
  return {};
}

call_reply discard(node_parts& here, call_arguments& arguments) {
  optimizer_of(here, arguments)->discard();
  return {};
}

}  // namespace

void add_checkpoint_functions(node_parts& here) {
  const auto add = [&](const char* name, call_reply (*run)(node_parts&, call_arguments&)) {
    here.functions.add(name, [&here, run](call_arguments& arguments) { return run(here, arguments); });
  };
  add("troupe.optimizer.expect_room", expect_room);
  add("troupe.optimizer.save", save);
  add("troupe.optimizer.remove", remove);
  add("troupe.optimizer.snapshot", snapshot);
  add("troupe.optimizer.piece", piece);
  add("troupe.optimizer.receive", receive);
  add("troupe.optimizer.load", load);
  add("troupe.optimizer.apply", apply);
  add("troupe.optimizer.discard", discard);
}

}  // namespace troupe::nodes
