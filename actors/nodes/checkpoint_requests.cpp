// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_checkpoints_test.cpp, tests/actors/optimizer_saves_test.cpp, tests/actors/optimizer_test.cpp, tests/actors/peer_rights_test.cpp
#include <troupe/actors/nodes/serve_request.hpp>

#include <memory>
#include <string>

#include <caf/send.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::nodes {

namespace {

std::shared_ptr<objects::local_optimizer> optimizer_of(node_services& here, const call_arguments& arguments) {
  return here.objects.find_optimizer(arguments.target);
}

/// The id of the save that a request names. Throws refused_request unless the id has the form of a save id, because the id
/// becomes part of a file name.
const std::string& save_in(const auto& what) {
  if (!objects::is_save_id(what.save))
    throw support::refused_request("a save is named by 16 hexadecimal digits, and the request names another");
  return what.save;
}

/// While it lives, another call has the worker slot of this one, which waits for the disk. The wait counts as work all the
/// same: a call that takes long does not run on a network thread.
class disk_wait {
 public:
  explicit disk_wait(uses<with_actors> here) : here_(here) {
    caf::anon_send(here_.actors.gateway, support::blocked_atom::value);
  }
  ~disk_wait() { caf::anon_send(here_.actors.gateway, support::resumed_atom::value); }
  disk_wait(const disk_wait&) = delete;
  disk_wait& operator=(const disk_wait&) = delete;

 private:
  const uses<with_actors> here_;
};

}  // namespace

/// Checks the folder of this node's parts, if a folder is named. Replies with the estimated size of a part.
call_reply serve(node_services& here, call_arguments& arguments, const requests::expect_disk_space& what) {
  const auto bytes = optimizer_of(here, arguments)->estimated_bytes();
  // During a save the disk also holds the previous checkpoint.
  if (!what.folder.empty()) objects::expect_disk_space(what.folder, here.data.nearest(what.folder), 2 * bytes);
  return {{}, {{"bytes", calls::to_attribute(bytes)}}};
}

/// Writes the snapshot of this node's part to a folder below the data folder. Replies with the digest of the file.
call_reply serve(node_services& here, call_arguments& arguments, const requests::save& what) {
  const auto& save = save_in(what);
  const auto one = optimizer_of(here, arguments);
  const support::file_location location(here.data.find_or_make(what.folder),
                                        objects::part_file_name(here.objects.node_name(), save));
  const disk_wait waiting(here);
  return {{}, calls::to_attributes(one->write_snapshot(location, save))};
}

/// Removes this node's part of the save from a folder below the data folder, or with `others` its parts of all other saves.
/// Does nothing if no folder is named. With `others` does nothing if this node has taken part in a later save.
call_reply serve(node_services& here, call_arguments& arguments, const requests::remove& what) {
  const auto& save = save_in(what);
  if (what.folder.empty()) return {};
  const auto folder = here.data.find(what.folder);
  const bool is_late = what.others && !optimizer_of(here, arguments)->has_saved_last(save);
  if (!folder || is_late) return {};
  const auto which = what.others ? objects::own_parts::of_other_saves : objects::own_parts::of_this_save;
  objects::remove_own_parts(*folder, here.objects.node_name(), save, which);
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::snapshot& what) {
  const auto digest = optimizer_of(here, arguments)->snapshot(here.objects.node_name(), save_in(what));
  return {{}, calls::to_attributes(digest)};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::piece& what) {
  return {{optimizer_of(here, arguments)->piece(save_in(what), what.offset, what.size)}};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::receive& what) {
  optimizer_of(here, arguments)->receive(save_in(what), what.offset, what.total, arguments.tensor(0));
  return {};
}

/// Reads and checks the part of this node. If the request names a folder, the part lies in this folder below the data folder.
/// Otherwise the caller has sent the part before (requests::receive). The caller names no file: a node reads only its own
/// parts.
call_reply serve(node_services& here, call_arguments& arguments, const requests::load& what) {
  const auto& save = save_in(what);
  support::expect_checksum_name(what.sum_kind);
  const support::file_digest digest{what.bytes, what.sum};
  const auto one = optimizer_of(here, arguments);
  if (what.folder.empty()) {
    one->stage_received(what.path, digest, save);
    return {};
  }
  const auto folder = here.data.find(what.folder);
  const auto file = objects::part_file_name(here.objects.node_name(), save);
  if (!folder)
    throw error(errc::function_failed,
                "can't read '" + what.folder + "/" + file + "': there is no such folder in the node's data folder");
  one->stage({*folder, file}, digest, save);
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::apply& what) {
  optimizer_of(here, arguments)->apply(save_in(what), {what.number});
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::discard&) {
  optimizer_of(here, arguments)->discard();
  return {};
}

}  // namespace troupe::nodes
