// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/checkpoint_functions.hpp>

#include <filesystem>
#include <memory>
#include <string>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/nodes/node_parts.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/checkpoint_room.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::nodes {

namespace {

namespace fs = std::filesystem;

std::shared_ptr<objects::local_optimizer> optimizer_of(node_parts& here, const call_arguments& arguments) {
  return here.objects.find_optimizer(arguments.target);
}

std::string text(const call_arguments& arguments, const char* name) { return get<std::string>(arguments.values, name); }

std::uint64_t number(const call_arguments& arguments, const char* name) { return calls::number_from(arguments.values, name); }

/// The folder that the caller names, on this node. Throws troupe::error (misuse) if it is outside of settings::data_dir.
fs::path folder_of(const node_parts& here, const call_arguments& arguments) {
  return fs::absolute(here.data.path_of(text(arguments, "folder"))).lexically_normal();
}

/// Checks the folder of this node's parts, if a folder is named. Replies with the estimated size of a part.
call_reply expect_room(node_parts& here, call_arguments& arguments) {
  const auto bytes = optimizer_of(here, arguments)->estimated_bytes();
  // While a checkpoint is saved, the one before it is there too.
  if (!text(arguments, "folder").empty()) objects::expect_room(folder_of(here, arguments), 2 * bytes);
  return {{}, {{"bytes", calls::to_attribute(bytes)}}};
}

/// Writes this node's part to a folder of this node. Replies with the folder's absolute path and the digest of the part.
call_reply save(node_parts& here, call_arguments& arguments) {
  const auto folder = folder_of(here, arguments);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw error(errc::function_failed, "can't make the folder '" + folder.string() + "': " + failed.message());
  const auto& name = here.objects.node_name();
  const auto save = text(arguments, "save");
  const auto path = (folder / objects::part_file_name(name, save)).string();
  auto values = calls::to_attributes(optimizer_of(here, arguments)->save(path, name, save));
  values.emplace("folder", folder.string());
  return {{}, std::move(values)};
}

/// Removes parts from a folder of this node: those of all other saves if "others" is true, else those of this save. Does
/// nothing without a folder.
call_reply remove(node_parts& here, call_arguments& arguments) {
  if (text(arguments, "folder").empty()) return {};
  const auto folder = folder_of(here, arguments).string();
  const auto save = text(arguments, "save");
  get<bool>(arguments.values, "others") ? objects::remove_other_parts(folder, save) : objects::remove_parts(folder, save);
  return {};
}

call_reply snapshot(node_parts& here, call_arguments& arguments) {
  const auto digest = optimizer_of(here, arguments)->snapshot(here.objects.node_name(), text(arguments, "save"));
  return {{}, calls::to_attributes(digest)};
}

call_reply piece(node_parts& here, call_arguments& arguments) {
  return {
    {optimizer_of(here, arguments)->piece(text(arguments, "save"), number(arguments, "offset"), number(arguments, "size"))}};
}

call_reply receive(node_parts& here, call_arguments& arguments) {
  optimizer_of(here, arguments)
    ->receive(text(arguments, "save"), number(arguments, "offset"), number(arguments, "total"), arguments.tensor(0));
  return {};
}

/// Reads and checks the part of this node: the one that was received, or the one at "path" on this node.
call_reply load(node_parts& here, call_arguments& arguments) {
  const auto digest = calls::digest_from(arguments.values);
  const auto one = optimizer_of(here, arguments);
  get<bool>(arguments.values, "received")
    ? one->stage_received(text(arguments, "path"), digest, text(arguments, "save"))
    : one->stage(here.data.path_of(text(arguments, "path")), digest, text(arguments, "save"));
  return {};
}

call_reply apply(node_parts& here, call_arguments& arguments) {
  optimizer_of(here, arguments)->apply(text(arguments, "save"));
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
